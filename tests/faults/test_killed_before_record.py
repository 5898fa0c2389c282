"""Commands killed after their work and before their record in Dagster: the next command records it, once."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg

from pandora_dagster.defs.instance import open_instance
from pandora_dagster.settings import load_settings
from tests.faults.processes import PANDORA, asked, pandora
from tests.faults.test_killed_archival import conversation

KILLED = "import os, signal; from pandora_dagster.defs{module} import {name} as _; import pandora_dagster.defs{module} as m; "
DIES = "m.{name} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL); "
SETTLED = "from datetime import timedelta; import pandora_dagster.defs.turn.missing_runs as r; r._SETTLED = timedelta(0); "

OLD = SETTLED + "import pandora_dagster.defs.archival.recorded_archival as a; a._SETTLED = timedelta(0); "


HALF_WAY = """
import os, signal
replace, placed = os.replace, []
def dies(source, target, **more):
    placed.append(target)
    if sum(str(one).endswith("turn.json") for one in placed) > 6:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(source, target, **more)
os.replace = dies
"""
"""The program, which dies when some turns of an archival are placed and others are not."""


def killed(module: str, name: str) -> str:
    """The program, which dies where it would write its record."""
    return (KILLED + DIES).format(module=module, name=name) + PANDORA


def test_a_turn_killed_before_its_record_is_recorded_by_the_next_command(tmp_path: Path) -> None:
    """The answer was given and the turn is saved; a later `ask` records both turns, a third one nothing twice."""
    root = tmp_path / "store"
    code, out, _ = pandora(root, "ask", "The oak desk costs 248 euros.", "--user", "anna", code=killed(".turn.turn_run", "report_turn"))
    assert code == -9 and out.strip(), "the answer came before the record"
    asked(root, "What does the desk cost?")
    assert turns(root) == ["turn_000002"], "its process might have been about to record it"
    for number in (3, 4):
        code, _, err = pandora(root, "ask", "And the chair?", "--user", "anna", code=SETTLED + PANDORA)
        assert code == 0, err
        assert turns(root) == [f"turn_{n:06d}" for n in range(1, number + 1)]


def test_an_archival_killed_before_its_record_is_recorded_by_the_next(tmp_path: Path) -> None:
    """The turns are archived and their days missing; the next `pandora archive` has nothing due and records the days, once."""
    root = tmp_path / "store"
    file = tmp_path / "talks.jsonl"
    day = (datetime.now(UTC) - timedelta(days=60)).strftime("%Y-%m-%d")
    messages = '[{"role": "user", "content": "The desk costs 248 euros."}, {"role": "assistant", "content": "Noted."}]'
    file.write_text(f'{{"id": "c", "user_id": "anna", "created_at": "{day}T10:00:00Z", "messages": {messages}}}\n')
    assert pandora(root, "import", str(file))[0] == 0
    assert pandora(root, "archive", code=killed(".archival.recorded_archival", "report_archival"))[0] == -9
    assert archived_days(root) == []
    for _ in range(2):
        code, out, err = pandora(root, "archive")
        assert code == 0 and "nothing is due" in out, err
        assert archived_days(root) == [day]


def test_an_archival_killed_while_it_archives_is_recorded_later(tmp_path: Path) -> None:
    """Some turns name the run of the killed process. `doctor` reports it once it is old, and `index rebuild` records it."""
    root, file = tmp_path / "store", tmp_path / "talks.jsonl"
    file.write_bytes(b"\n".join(map(conversation, range(12))) + b"\n")
    assert pandora(root, "import", str(file))[0] == 0
    assert pandora(root, "archive", code=HALF_WAY + PANDORA)[0] == -9
    (killed_run,) = run_ids(root)
    assert pandora(root, "archive")[0] == 0
    assert len(run_ids(root)) == 2 and run_ids(root) - known_runs(root) == {killed_run}, "its process might have been about to record it"
    assert not findings(root, PANDORA)
    (finding,) = findings(root, OLD + PANDORA)
    assert finding["ok"] and finding["says"] == "1 archival run without a run in Dagster" and "pandora index rebuild" in finding["remedy"]
    code, out, err = pandora(root, "index", "rebuild", code=OLD + PANDORA)
    assert code == 0 and "1 archival run recorded in Dagster" in out, err
    assert run_ids(root) <= known_runs(root) and not findings(root, OLD + PANDORA)
    with open_instance(load_settings({"PANDORA_ROOT": str(root)})) as instance:
        newest = instance.get_latest_materialization_event(dg.AssetKey("user_digests"))
        assert newest and newest.run_id == instance.get_runs(limit=1)[0].run_id, "the levels are not older than the days below them"


def test_a_new_home_gets_the_runs_of_all_turns_and_days(tmp_path: Path) -> None:
    """The folder of Dagster was deleted: turns, archival runs and archived days are recorded from the documents."""
    root, file = tmp_path / "store", tmp_path / "talks.jsonl"
    file.write_bytes(conversation(1) + b"\n")
    assert pandora(root, "import", str(file))[0] == 0 and pandora(root, "archive")[0] == 0
    asked(root, "The oak desk costs 248 euros.")
    shutil.rmtree(root / "dagster")
    (finding,) = findings(root, OLD + PANDORA)
    assert finding["says"] == "1 turn, 1 archival run, 1 archived day without a run in Dagster" and not (root / "dagster").exists()
    assert pandora(root, "index", "rebuild", code=OLD + PANDORA)[0] == 0
    assert turns(root) == ["turn_000001"] and set(archived_days(root)) == {"2026-01-04"} and run_ids(root) <= known_runs(root)
    assert not findings(root, OLD + PANDORA)


def run_ids(root: Path) -> set[str]:
    """The runs that archived turns name."""
    manifests = (json.loads(file.read_text()) for file in (root / "users").rglob("turn.json"))
    return {manifest["archive"]["run_id"] for manifest in manifests if manifest.get("archive")}


def known_runs(root: Path) -> set[str]:
    with open_instance(load_settings({"PANDORA_ROOT": str(root)})) as instance:
        return {run.run_id for run in instance.get_runs()}


def findings(root: Path, code: str) -> list[dict[str, Any]]:
    """What `doctor` says of runs."""
    _, out, err = pandora(root, "doctor", "--json", code=code)
    assert out, err
    return [finding for finding in json.loads(out) if finding["part"] == "runs"]


def turns(root: Path) -> list[str]:
    with open_instance(load_settings({"PANDORA_ROOT": str(root)})) as instance:
        return sorted(run.tags["pandora/turn"] for run in instance.get_runs() if "pandora/turn" in run.tags)


def archived_days(root: Path) -> list[str]:
    """The day of each materialization."""
    with open_instance(load_settings({"PANDORA_ROOT": str(root)})) as instance:
        return [f"{record.partition_key}" for record in instance.fetch_materializations(dg.AssetKey("archived_turns"), limit=100).records]
