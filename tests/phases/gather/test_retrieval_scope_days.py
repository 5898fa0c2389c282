"""What a query that names days is given: looked at in its packs, on the embedded runtime over a history of several years."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from pandora_dagster.language.dates import MONTHS

pytestmark = pytest.mark.stored

TOLD = {
    800: "We bought the cello in Prague.",
    60: "The roof was repaired by Brandt.",
    25: "I planted leeks behind the shed.",
    0: "The dentist moved my visit to noon.",
}
"""Days ago -> what the user said."""
MONATE = ("Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November", "Dezember")
SOLD = "I sold the old canoe to Miriam."


def _conversation(at, text):
    texts = [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
    stamp = at.replace(microsecond=0).isoformat().replace("+00:00", "Z")
    return json.dumps({"id": f"c{at:%Y%m%d}", "user_id": "anna", "created_at": stamp, "messages": texts}).encode()


@pytest.fixture
def message(anna):
    """A history, and something said on the Thursday of last week."""
    now = datetime.now(UTC)
    lines = [_conversation(now - timedelta(days), text) for days, text in TOLD.items()]
    lines.append(_conversation(now - timedelta(now.weekday() + 4), SOLD))
    assert not anna.app.transfer.import_conversations(lines, where="history").faults
    return anna


def _given(anna, role, document):
    return next(p for p in reversed(anna.runtime.packs) if p.role == role).document(document)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("What did I sell last week?", SOLD),
        ("What did I say last week?", SOLD),
        ("Was habe ich letzte Woche verkauft?", SOLD),
        ("What did we talk about in the last 3 days?", TOLD[0]),
        ("Was war in den letzten 3 Tagen?", TOLD[0]),
    ],
)
def test_what_was_said_on_the_days_that_are_meant_is_given(message, query, says):
    """In words of its own: RETRIEVAL and SYNTHESIS get the days; the answer gets what was said then and nothing of other days."""
    key = message.ask(query, session="new")
    day = message.app.turns.load(key).manifest.created_at[:10]
    first = _given(message, "retrieval", "turn_summaries").partition("\n")[0]
    assert first.startswith("Days that the query names: 20") and _given(message, "context_synthesis", "prior_turns").startswith(first)
    assert (day in first) == ("3" in query)
    given = _given(message, "synthesizer", "context.md")
    assert says in given and not [text for text in (*TOLD.values(), SOLD) if text != says and text in given]
    assert says in message.section(key, 5)


def test_a_year_is_named_by_its_distance(message):
    """Two years ago, or three, as the calendar has it."""
    year = (datetime.now(UTC) - timedelta(800)).year
    back = datetime.now(UTC).year - year
    assert TOLD[800] in message.section(message.ask(f"What did we buy {back} years ago?", session="new"), 5)


@pytest.mark.parametrize("query", ["What did I say about the roof last week?", "What did I do on the last week of my holiday?"])
def test_other_days_and_other_things_are_not_reported(message, query):
    """Of a thing that was not spoken of then nothing is reported, and the last week of something is not last week."""
    assert SOLD not in message.section(message.ask(query, session="new"), 5)


def test_a_query_without_days_is_given_no_line_of_them(message):
    """Nor is what it asks for held to any day."""
    key = message.ask("Who repaired the roof?", session="new")
    assert "Days that" not in _given(message, "context_synthesis", "prior_turns") and TOLD[60] in message.section(key, 5)


@pytest.mark.parametrize(
    "query", ["What did we discuss on {}?", "Summarise our conversation of {}.", "Worüber haben wir am {} gesprochen?"]
)
def test_a_talk_is_found_by_its_date_without_a_year(message, query):
    """The newest such day leads: what was said then is reported, in words of its own, and nothing of other days."""
    day = datetime.now(UTC) - timedelta(25)
    month = (MONATE if "haben" in query else MONTHS)[day.month - 1]
    key = message.ask(query.format(f"{day.day}{'.' * ('haben' in query)} {month.capitalize()}"), session="new")
    answer = message.section(key, 5)
    assert TOLD[25] in answer and not [text for text in TOLD.values() if text != TOLD[25] and text in answer]
