"""136 real conversations with tools: imported, exported equal, imported again, and asked about."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.documents.citations import cited_labels
from pandora_dagster.settings import load_settings

REAL = Path(__file__).parents[3] / "shared" / "data" / "tau_bench" / "airline_conversations.jsonl"
AMOUNT = re.compile(r"\$ ?\d|\bamount\b")
QUESTION = "which reservation did we talk about, and what did it cost?"
pytestmark = pytest.mark.skipif(not REAL.is_file(), reason=f"{REAL} is not on this machine")


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """A house that has imported the file."""
    opened = open_app(load_settings({"PANDORA_ROOT": str(tmp_path_factory.mktemp("real") / "store")}))
    report = imported(opened)
    assert report.conversations == 136 and not report.faults
    yield opened
    opened.close()


def imported(app: App):
    with REAL.open("rb") as lines:
        return app.transfer.import_conversations(lines, where=REAL.name)


def conversations() -> list[dict]:
    return [json.loads(line) for line in REAL.read_text().splitlines()]


def most_talkative(count: int) -> list[str]:
    return [user for user, _ in Counter(c["user_id"] for c in conversations()).most_common(count)]


def test_export_gives_every_conversation_back(app):
    """The same ids and messages, value for value."""
    given = {c["id"]: (c["user_id"], c["messages"]) for c in conversations()}
    back = {c["id"]: (c["user_id"], c["messages"]) for c in app.transfer.export_conversations(None) if c["id"] in given}
    assert back == given


def test_importing_twice_changes_nothing(app):
    """No new turn, no changed byte."""

    def stamps():
        return {p: p.stat().st_mtime_ns for p in app.settings.root.rglob("turn.json")}

    before = stamps()
    report = imported(app)
    assert report.turns == 0 and stamps() == before and app.indexes.verify() == ()


def test_a_user_is_answered_from_their_history_with_citations(app):
    """Saved, an answer about a reservation and an amount, and every citation leads to a document of that user."""
    for user in most_talkative(3):
        key = app.start(QUESTION, user=user)
        report = app.run_turn(key, on_report=lambda _: None)
        answer = app.answer_of(key)
        assert report.halt is None and answer.state == "saved"
        assert "reservation" in answer.response.lower() and AMOUNT.search(answer.response)
        assert answer.citations and {c["label"] for c in answer.citations} == set(cited_labels(answer.response))
        assert all(Path(str(c["path"])).is_file() and f"/{user_id(user)}/" in str(c["path"]) for c in answer.citations)
    assert app.indexes.verify() == ()
