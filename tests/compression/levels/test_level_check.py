"""What may stand of a narrative and a digest: only what their sources bear out, in whole sentences, within their room."""

import pytest

from pandora_dagster.compression.levels.level_check import check_level_digest, check_narrative, trim_digest
from tests.phases.vocabulary import vocabulary

HEAD = "2026-01-04 (flight): "
ENTRIES = [
    f"{HEAD}Asked to move flight AB123 to 3 May for at most $200 extra.",
    f"{HEAD}change_flight failed with 402. A new ticket for $180 was accepted, the window seat is still open.",
]


def narrative(answer, limit=200):
    return check_narrative(answer, ENTRIES, heads=[HEAD], max_tokens=limit, counter=vocabulary())


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("\n".join(f"[{n}] {e}" for n, e in enumerate(ENTRIES, 1)), "\n".join(e.removeprefix(HEAD) for e in ENTRIES)),
        (
            "The person asked to move flight AB123 to 3 May for at most $200 extra. A new ticket for $180 was accepted.",
            "The person asked to move flight AB123 to 3 May for at most $200 extra. A new ticket for $180 was accepted.",
        ),
        ("Here is a summary: A new ticket for $180 was accepted.", "A new ticket for $180 was accepted."),
        ("A new ticket for $280 was accepted. change_flight failed with 402.", "change_flight failed with 402."),
        ("A new ticket for $180 was not accepted. change_flight failed with 402.", "change_flight failed with 402."),
        ("Flight ZZ999 was booked. change_flight failed with 402.", "change_flight failed with 402."),
    ],
)
def test_what_stands_of_a_narrative(answer, text):
    """Numbers, names and denials are those of the entries; marks, heads and preambles are no part of it."""
    made = narrative(answer)
    assert (made.text, made.reasons) == (text, ())


@pytest.mark.parametrize(
    "answer", ["", "I'm sorry, I cannot help with that.", "Could you please provide the text?", "Flight ZZ999 was booked."]
)
def test_an_answer_without_a_true_sentence_is_refused(answer):
    """With the reason."""
    assert narrative(answer).reasons


def test_a_narrative_keeps_to_its_room_in_whole_sentences():
    """The last ones are left out; what the entries say and the narrative does not is counted."""
    made = narrative("change_flight failed with 402. A new ticket for $180 was accepted.", limit=12)
    assert (made.text, made.left_out, made.reasons) == ("change_flight failed with 402.", 2, ())


def test_labelled_lines_stay_and_many_tools_are_no_list_of_values(counter):
    """Over the target the prose goes first; names of tools from several entries in one line are no bare values."""
    tools = [f"look_up_{name}" for name in ("seat", "fare", "user", "route", "meal", "refund", "bag", "visa", "gate")]
    entries = [f"We moved flight AB123 to 3 May.\nTools used: {', '.join(tools[at::2])}" for at in (0, 1)]
    answer = f"We moved flight AB123 to 3 May. The flight was moved.\nTools used: {', '.join(tools)}"
    made = check_narrative(answer, entries, max_tokens=counter.count(answer) - 1, counter=counter)
    assert made.text == f"We moved flight AB123 to 3 May.\nTools used: {', '.join(tools)}" and not made.refused and not made.reasons


def test_a_digest_tells_what_its_summaries_tell():
    """Items that are not borne out go with a reason; tools stand by their name; nothing left is a reason."""
    given = {
        "key_decisions": ["A new ticket for $180 was accepted", "The hotel was booked"],
        "tools_used": ["change_flight", "book_hotel"],
        "errors_encountered": ["change_flight failed with 402", "change_flight failed with 500"],
        "progress_toward_goal": "80%",
        "open_questions": ["the window seat is still open"],
    }
    digest, refused, reasons = check_level_digest(given, ENTRIES)
    assert digest == {
        "key_decisions": ["A new ticket for $180 was accepted"],
        "tools_used": ["change_flight"],
        "errors_encountered": ["change_flight failed with 402"],
        "progress_toward_goal": "",
        "open_questions": ["the window seat is still open"],
    }
    assert len(refused) == 4 and not reasons
    assert check_level_digest({"key_decisions": ["The hotel was booked"]}, ENTRIES)[2]
    assert check_level_digest({}, ENTRIES)[1:] == ((), ())


def test_a_digest_keeps_to_its_room_by_whole_items():
    """The longest list gives up its oldest."""
    digest = {
        "key_decisions": ["one", "two", "three"],
        "tools_used": ["a"],
        "errors_encountered": [],
        "progress_toward_goal": "",
        "open_questions": [],
    }
    shown = trim_digest(digest, 3, lambda text: len(text.split()), lambda d: " ".join((*d["key_decisions"], *d["tools_used"])))
    assert shown["key_decisions"] == ["two", "three"] and shown["tools_used"] == ["a"]


@pytest.mark.parametrize("progress", ["Thank you for your help!", "###STOP###"])
def test_a_courtesy_is_no_progress(progress: str) -> None:
    """A digest says what the sessions were about, even where a summary holds thanks or a mark."""
    answer = {"key_decisions": ["We ordered the desk."], "progress_toward_goal": progress, "open_questions": ["Thank you for your help!"]}
    digest, _, reasons = check_level_digest(answer, [f"We ordered the desk. {progress} Thank you for your help!"])
    assert digest["key_decisions"] == ["We ordered the desk."] and digest["progress_toward_goal"] == "" and not reasons
    assert digest["open_questions"] == []
