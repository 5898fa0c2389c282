"""A batch whose process is killed with SIGKILL in its middle: the next run finishes what was begun, and nothing runs twice."""

import json
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.settings import load_settings
from tests.faults.processes import ended, pandora, started

COUNT = 12


@pytest.mark.parametrize("dies_after", [1, 5])
def test_a_killed_batch_goes_on(tmp_path: Path, dies_after: int) -> None:
    """Killed when some turns are saved: those stay as they are, the rest is finished, each line has one turn and each phase ran once."""
    root, file = tmp_path / "store", tmp_path / "q.jsonl"
    file.write_text(
        "".join(json.dumps({"query": f"Desk {n} costs {n}40 euros.", "user": "ann", "id": f"q{n}"}) + "\n" for n in range(COUNT))
    )
    process = started(root, "batch", str(file))
    turns = root / "users" / "ann" / "turns"
    deadline = time.monotonic() + 120
    while sum('"state": "saved"' in path.read_text() for path in turns.glob("turn_*/turn.json")) < dies_after:
        assert time.monotonic() < deadline and process.poll() is None, "no turn was saved in time"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert ended(process)[0] == -signal.SIGKILL
    before = {path.parent.name: path.read_text() for path in turns.glob("turn_*/turn.json") if '"turn_summary"' in path.read_text()}

    code, out, err = pandora(root, "batch", str(file), "--json")
    assert code == 0, err
    result = json.loads(out)
    assert result["counts"] == {"saved": COUNT} and [row["id"] for row in result["rows"]] == [f"q{n}" for n in range(COUNT)]
    assert len({row["turn"] for row in result["rows"]}) == COUNT == len(list(turns.glob("turn_*")))

    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    for key in app.turns.keys():  # noqa: SIM118 - a store, not a mapping
        manifest = app.turns.load(key).manifest
        assert not app.pending_phases(key) and manifest.revision == 0
        assert max(Counter(record.phase for record in manifest.phases).values()) == 1
    app.close()
    whole = {name: text for name, text in before.items() if all(f'"{p}"' in text for p in ("conversation_summary", "session_facts"))}
    assert all((turns / name / "turn.json").read_text() == text for name, text in whole.items())
    assert pandora(root, "batch", str(file), "--json")[1] == out
