"""136 real conversations with tools, archived: exported and found as before, in less than half of the tokens, proved link by link."""

import json
import re
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.app.archive_service import open_archive
from pandora_dagster.archive.archive_run import archive_turns
from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.archive.turn_restoration import restore
from pandora_dagster.settings import load_settings

REAL = Path(__file__).parents[3] / "shared" / "data" / "tau_bench" / "airline_conversations.jsonl"
RESERVATION = re.compile(r"\b(?=[A-Z0-9]*[0-9])[A-Z0-9]{6}\b")
pytestmark = pytest.mark.skipif(not REAL.is_file(), reason=f"{REAL} is not on this machine")


def tree(folder: Path) -> dict[str, bytes]:
    files = (p for p in folder.rglob("*") if p.is_file() and p.name not in ("calls.jsonl", ".lock", "hold.json"))
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


def test_real_conversations_are_archived_and_found_as_before(tmp_path):
    """Every turn is archived; `export` gives the same lines, a search for a reservation the same results; every link of the lineage is
    proved; restored turns are byte-equal."""
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}))
    with REAL.open("rb") as lines:
        assert not app.transfer.import_conversations(lines, where=REAL.name).faults
    keys = list(app.turns.keys())
    exported = [json.dumps(c) for c in app.transfer.export_conversations(None)]
    some = keys[::25]
    before = {key: tree(app.folder(key)) for key in some}
    asked = {
        key: found[0] for key in some if (found := RESERVATION.findall(" ".join(m["content"] or "" for m in messages_of(before[key]))))
    }
    assert len(asked) > 10
    found = {key: app.search.messages(number, user=key.user, budget_tokens=600) for key, number in asked.items()}
    assert all(number in found[key].text for key, number in asked.items())
    ctx = open_archive(app)
    report = app.run(archive_turns(select_turns(ctx), ctx))
    assert report.counts == {"archived": len(keys)} and report.tokens_after < report.tokens_before / 2
    assert [json.dumps(c) for c in app.transfer.export_conversations(None)] == exported
    assert {key: app.search.messages(number, user=key.user, budget_tokens=600) for key, number in asked.items()} == found
    links = list(app.lineage.prove())
    assert len(links) > 2 * len(keys) and [link for link in links if isinstance(link, str) or link.fault] == []
    for key in some:
        restore(key, ctx)
        assert tree(app.folder(key)) == before[key]
    assert app.indexes.verify() == ()
    app.close()


def messages_of(files: dict[str, bytes]) -> list[dict]:
    return [json.loads(line) for line in files["messages.jsonl"].decode().splitlines()]
