"""A file of the inbox that is through: nothing of it is lost, wherever its batch was cut off."""

import json
from pathlib import Path

import pytest

from pandora_dagster.app.batch_service import BatchService
from tests.phases.rig import open_rig

DAY = "2026-11-22"


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def batching(tmp_path):
    rig = open_rig(tmp_path)
    yield BatchService(rig.app)
    rig.app.close()


@pytest.mark.parametrize("others", [0, 1])
def test_rejected_lines_survive_a_kill_before_the_file_is_moved(batching, tmp_path, monkeypatch, others):
    """They lie there first; the file waits still, and the next run writes the same once more and moves it. So it is too where another
    file of the name lies there."""
    inbox, done = tmp_path / "inbox", tmp_path / "inbox" / "done" / DAY
    done.mkdir(parents=True)
    if others:
        (done / "q.jsonl").write_text('{"query": "where is the invoice?"}\n')
    (inbox / "q.jsonl").write_text('{"query": "which chair?"}\n{"query": 7}\n')

    whole = Path.replace

    def dies(self, target):
        if self.name == "q.jsonl":
            raise Killed
        return whole(self, target)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(Path, "replace", dies)
        batching.run_waiting("q.jsonl", DAY)
    (rejected,) = done.glob("*.rejected.jsonl")
    before = rejected.read_bytes()
    assert [waiting.name for waiting in batching.query_files.files()] == ["q.jsonl"]
    ran = batching.run_waiting("q.jsonl", DAY)
    assert ran.rejected == rejected and rejected.read_bytes() == before and json.loads(before)["line"] == 2
    assert not batching.query_files.files() and len(list(done.iterdir())) == 2 + others
    assert rejected.with_name(rejected.name.replace(".rejected", "")).read_text().endswith('{"query": 7}\n')
    assert len(list((tmp_path / "users" / "me" / "turns").glob("turn_*"))) == 1
