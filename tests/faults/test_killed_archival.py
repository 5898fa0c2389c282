"""An archival killed anywhere: each turn is active or archived, never neither, never both; a second run finishes, all comes back.

PANDORA_TEST_KILLS names how often; 200 of itself.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.app.archive_service import open_archive
from pandora_dagster.archive.archive_run import archive_turns
from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.archive.turn_restoration import restore
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.settings import load_settings
from tests.faults.killed_archival import archive, prune_all
from tests.faults.processes import ended, pandora, started
from tests.phases.vocabulary import vocabulary

REPOSITORY = Path(__file__).parents[2]
KILLS = int(os.environ.get("PANDORA_TEST_KILLS", "200"))
SHARES = 8
"""Parts of the kills, each with a seed of its own, so that two processes share them."""
SEED = 41
TURNS, KILLED_TURNS = 30, 12
"""In a store over which processes compete, and in one in which they are killed: both are one batch of an archival, and every turn takes the
same steps, so that fewer turns leave fewer steps without a kill."""


def conversation(number: int) -> bytes:
    """Three turns, each a few hundred tokens with numbers, names and a refusal."""
    messages = []
    for turn in range(3):
        messages.append({"role": "user", "content": f"Which desk did we order for room {number}, in round {turn}?"})
        lines = [
            f"Offer {n}: the oak desk from Miller costs ${400 + n * number} and does not arrive before 2026-01-{10 + n}." for n in range(14)
        ]
        messages.append({"role": "assistant", "content": "\n\n".join(lines)})
    line = {"id": f"c{number}", "user_id": f"user{number % 2}", "created_at": "2026-01-04T10:00:00Z", "messages": messages}
    return json.dumps(line).encode()


def opened(root: Path) -> App:
    return open_app(load_settings({"PANDORA_ROOT": str(root)}), counter=vocabulary())


def documents(root: Path) -> dict[str, bytes]:
    """Every document of every turn; logs, locks, counters and holds are none."""
    files = (p for p in (root / "users").rglob("*") if p.is_file() and p.name not in ("calls.jsonl", ".lock") and "hold.json" not in p.name)
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in files}


def imported(root: Path, turns: int) -> Path:
    app = opened(root)
    report = app.transfer.import_conversations(map(conversation, range(turns // 3)), where="made")
    assert report.turns == turns
    app.close()
    return root


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    return imported(tmp_path_factory.mktemp("prepared") / "store", KILLED_TURNS)


@pytest.fixture(params=range(SHARES))
def killed(prepared, tmp_path, request) -> list[Path]:
    return killed_at("archive", prepared, tmp_path, max(1, KILLS // SHARES), SEED + request.param)


def killed_at(work: str, prepared: Path, copies: Path, kills: int, seed: int = 0) -> list[Path]:
    """Copies of a store in which this was killed; the first in which it was not. 0 kills: one at each disk step."""
    command = [sys.executable, "-W", "error", str(Path(__file__).with_name("killed_archival.py")), work, str(prepared), str(copies)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    limit = 60 + 20 * (kills or 20)
    done = subprocess.run([*command, str(kills), str(seed)], env=environment, capture_output=True, text=True, timeout=limit)
    assert done.returncode == 0, done.stderr
    made = len(done.stdout.splitlines())
    assert made == (kills or int((copies / "steps").read_text()))
    return [copies / "whole", *(copies / str(n) for n in range(made))]


def test_an_archival_killed_anywhere_is_finished_by_the_next(prepared, killed):
    """As the kill left it every turn reads, whole; after the next run all are archived, once; restored, every original is byte-equal."""
    app = opened(prepared)
    keys = list(app.turns.keys())
    before = {key: app.turns.load(key) for key in keys}
    exported = [json.dumps(c) for c in app.transfer.export_conversations(None)]
    found = app.search.messages("oak desk Miller", user="user1", budget_tokens=500).text
    app.close()
    originals, cut = documents(prepared), set()
    for number, root in enumerate(killed):
        app = opened(root)
        states = {key: app.turns.load(key).manifest.state for key in keys}
        cut.add(sum(state == TurnState.ARCHIVED for state in states.values()))
        assert set(states.values()) <= {TurnState.SAVED, TurnState.ARCHIVED}
        assert all(app.turns.original(key) == before[key] for key in keys)
        for part in (root / "cold").rglob("*.part"):
            os.utime(part, (0, 0))  # nobody writes it any more
        ctx = open_archive(app)
        selected = select_turns(ctx)
        report = app.run(archive_turns(selected, ctx))
        assert sum(report.counts.values()) == report.due and not report.failed and not report.stopped
        check_archived(root, app, keys)
        assert [json.dumps(c) for c in app.transfer.export_conversations(None)] == exported
        assert app.search.messages("oak desk Miller", user="user1", budget_tokens=500).text == found
        back = keys if number == 0 else keys[number % 3 :: 3]
        for key in back:
            assert restore(key, ctx).turn == before[key]
        folders = tuple(f"users/{key.user}/turns/{key.turn_id}/" for key in back)
        now = documents(root)
        assert {n: now[n] for n in now if n.startswith(folders)} == {n: originals[n] for n in originals if n.startswith(folders)}
        assert app.indexes.verify() == ()
        app.close()
    assert KILLED_TURNS in cut and len(cut) > 1


@pytest.mark.parametrize("share", range(2))
def test_a_restoring_killed_anywhere_leaves_each_turn_archived_or_restored(prepared, tmp_path, share):
    """As the kill left it every turn reads, and its original is there; restored again, every byte is back and the index agrees."""
    store = tmp_path / "archived"
    shutil.copytree(prepared, store)
    archive(store)
    app = opened(store)
    keys = list(app.turns.keys())
    before = {key: app.turns.original(key) for key in keys}
    app.close()
    originals, cut = documents(prepared), set()
    (copies := tmp_path / "copies").mkdir()
    for number, root in enumerate(killed_at("restore", store, copies, max(1, KILLS // 10), SEED + share)):
        app = opened(root)
        states = [app.turns.load(key).manifest.state for key in keys]
        cut.add(states.count(TurnState.ARCHIVED))
        assert set(states) <= {TurnState.SAVED, TurnState.ARCHIVED}
        assert all(app.turns.original(key) == before[key] for key in keys)
        ctx = open_archive(app)
        if number % 2:  # an archival run comes before the next restoring
            report = app.run(archive_turns(select_turns(ctx), ctx))
            assert not report.failed and not report.stopped
            assert all(app.turns.original(key) == before[key] and app.turns.load(key) for key in keys)
            assert app.indexes.verify() == () and not [one for one in app.lineage.prove(None) if getattr(one, "fault", one)]
        for key in keys:
            restore(key, ctx)
        now = documents(root)
        assert {n: d for n, d in now.items() if "/turns/" in n} == {n: d for n, d in originals.items() if "/turns/" in n}
        assert app.indexes.verify() == () and not select_turns(ctx).due, "restored turns are held"
        app.close()
    assert 0 in cut and len(cut) > 1


def one_turn(store: Path) -> Turn:
    app = opened(store)
    line = json.loads(conversation(1))
    app.transfer.import_conversations([json.dumps({**line, "messages": line["messages"][:2]}).encode()], where="made")
    (key,) = app.turns.keys()
    turn = app.turns.original(key)
    app.close()
    return turn


@pytest.mark.parametrize("work", ["archive", "restore"])
def test_what_was_killed_at_each_step_is_settled_by_the_archival_run(tmp_path, work):
    """At each step the run leaves the turn archived or restored, and index, lineage and documents agree; restored, it is what it
    was."""
    (copies := tmp_path / "copies").mkdir()
    before = one_turn(store := tmp_path / "store")
    key, original = before.key, documents(store)
    if work == "restore":
        archive(store)
    left = set()
    for root in killed_at(work, store, copies, 0):
        app = opened(root)
        ctx = open_archive(app)
        report = app.run(archive_turns(select_turns(ctx), ctx))
        left.add(app.turns.manifest(key).state)
        faults = [one for one in app.lineage.prove(None) if getattr(one, "fault", one)]
        found = app.turns.original(key), app.turns.load(key).key, app.indexes.verify()
        restore(key, ctx)
        app.close()
        assert documents(root) == original, root.name
        assert (report.failed, report.stopped, found, faults) == ((), "", (before, key, ()), []), root.name
    assert left == ({TurnState.SAVED, TurnState.ARCHIVED} if work == "restore" else {TurnState.ARCHIVED})


def test_a_deletion_killed_at_each_step_is_finished_by_the_next(tmp_path):
    """The original is there, or what stays says that it was deleted; after the next run it is gone, and all that is left agrees."""
    (copies := tmp_path / "copies").mkdir()
    before = one_turn(store := tmp_path / "store")
    archive(store)
    left = set()
    for root in killed_at("prune", store, copies, 0):
        app = opened(root)
        stands = app.turns.load(before.key)
        there = app.turns.original(before.key)
        assert there in (before, stands), root.name
        left.add(there == before)
        prune_all(root)
        assert app.turns.original(before.key) == stands and not list((root / "cold").rglob("*.zst"))
        faults = [one for one in app.lineage.prove(None) if getattr(one, "fault", one)]
        found = app.indexes.verify()
        app.close()
        assert (found, faults) == ((), []), root.name
    assert left == {True, False}


def check_archived(root: Path, app: App, keys) -> None:
    """Once each: one object a turn and no other file, folder and row in agreement, nothing left to do."""
    objects = [p for p in (root / "cold").rglob("*") if p.is_file()]
    records = [app.turns.manifest(key).archive for key in keys]
    assert {str(p.relative_to(root)) for p in objects} == {r.cold for r in records}
    assert len({r.cold for r in records}) == len(keys) == len(list(app.turn_index.activities()))
    for key in keys:
        left = {p.relative_to(app.folder(key)).as_posix() for p in app.folder(key).rglob("*")}
        assert left - {"calls.jsonl", ".lock"} == {"turn.json", "context.md"}
    assert app.indexes.verify() == () and select_turns(open_archive(app)).due == ()


def test_two_archivals_at_once_archive_every_turn_once(tmp_path):
    """Two `pandora archive` over one store: both succeed, together they archive all."""
    root = imported(tmp_path / "store", TURNS)
    runs = [started(root, "archive", "--older-than", "30d", "--json") for _ in range(2)]
    notices = []
    for run in runs:
        code, out, err = ended(run)
        assert code == 0, err
        notices.append(json.loads(out)["counts"])
    assert sum(counts.get("archived", 0) for counts in notices) == TURNS
    app = opened(root)
    check_archived(root, app, list(app.turns.keys()))
    app.close()


def test_an_archival_while_turns_are_written(tmp_path):
    """Users ask on while the archival run archives: their turns are saved, the old ones are archived, index and documents agree."""
    root = imported(tmp_path / "store", TURNS)
    archival = started(root, "archive", "--older-than", "30d", "--json")
    asked = [started(root, "ask", f"which desk for room {n}?", "--user", f"user{n}", "--json") for n in range(2)]
    for process in asked:
        code, out, err = ended(process)
        assert code == 0 and json.loads(out)["state"] == "saved", err
    code, out, err = ended(archival)
    assert code == 0 and json.loads(out)["counts"] == {"archived": TURNS}, out + err
    assert pandora(root, "index", "verify")[0] == 0
