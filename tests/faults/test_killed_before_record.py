"""Commands killed after their work and before their record in Dagster: the next command records it, once."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from pandora_dagster.defs.instance import open_instance
from pandora_dagster.settings import load_settings
from tests.faults.processes import PANDORA, asked, pandora

KILLED = "import os, signal; from pandora_dagster.defs{module} import {name} as _; import pandora_dagster.defs{module} as m; "
DIES = "m.{name} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL); "
SETTLED = "from datetime import timedelta; import pandora_dagster.defs.turn.missing_runs as r; r._SETTLED = timedelta(0); "


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


def turns(root: Path) -> list[str]:
    with open_instance(load_settings({"PANDORA_ROOT": str(root)})) as instance:
        return sorted(run.tags["pandora/turn"] for run in instance.get_runs())


def archived_days(root: Path) -> list[str]:
    """The day of each materialization."""
    with open_instance(load_settings({"PANDORA_ROOT": str(root)})) as instance:
        return [f"{record.partition_key}" for record in instance.fetch_materializations(dg.AssetKey("archived_turns"), limit=100).records]
