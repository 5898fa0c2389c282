"""What an erasure meets beside documents: what killed processes had spilled, indexes in use, names of others' files."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema
from pandora_dagster.stores.erasure.row_erasure import remove_leftovers
from tests.app.test_erasure_service import left_of_ben
from tests.app.two_user_store import BEN, HIS, RUBEN, erasure, opened

SPILLS = """
import os, signal, sys
from pathlib import Path
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA
with DuckDBFile(Path(sys.argv[1]) / "indexes" / "turn_index.duckdb", TURN_SCHEMA).reading() as db:
    db.execute("SET memory_limit = '60MB'")
    said = "'Zephyrine Quillfeather ' || md5(range::VARCHAR)"
    db.execute(f"CREATE TEMP TABLE sorted AS SELECT {said} AS s FROM range(900000) ORDER BY s")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_killed_processes_had_spilled_goes(root):
    """In any folder of the indexes; an instance that lives spills on afterwards, and a write of the intent that was cut off goes too."""
    killed = subprocess.run([sys.executable, "-c", SPILLS, str(root)], env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])})
    spilled = root / "indexes" / ".duckdb.tmp"
    assert killed.returncode == -signal.SIGKILL and any(HIS[0].encode() in path.read_bytes() for path in spilled.iterdir())
    (other := root / "indexes" / "turn_index.duckdb.making.tmp").mkdir()
    (other / "spilled").write_text(HIS[0])
    (root / "erasing").mkdir(exist_ok=True)
    (root / "erasing" / ".ben.json.0123456789ab.part").write_text(HIS[0])
    assert erasure(root).erase(BEN).proof.is_clean and not left_of_ben(root)
    assert not any(path.stat().st_size for path in (*spilled.iterdir(), *other.iterdir()))


def test_a_living_instance_spills_again_after_an_erasure(root):
    file = DuckDBFile(root / "indexes" / "living.duckdb", Schema(1, ()))
    for _ in range(2):
        with file.reading() as db:
            db.execute("SET memory_limit = '60MB'")
            db.execute("CREATE TEMP TABLE sorted AS SELECT md5(range::VARCHAR) || range AS s FROM range(900000) ORDER BY s")
            assert any(path.stat().st_size for path in (root / "indexes" / ".duckdb.tmp").iterdir())
        remove_leftovers(root, wait_s=1)


def test_an_index_that_is_in_use_is_waited_for_before_leftovers_go(root):
    with DuckDBFile(root / "indexes" / "turn_index.duckdb", Schema(0, ())).locked(), pytest.raises(StoreError, match="in use"):
        remove_leftovers(root, wait_s=0.1)


def test_a_place_that_his_answer_cites_is_no_trace_in_the_path_of_anothers_turn(root):
    """Both have a turn of that number, and only his documents say it with its folder."""
    app = opened(root)
    (one, *_) = app.turns.keys(RUBEN)
    app.close()
    note = root / "users" / BEN / "turns" / "turn_000001" / "said.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(f"The desk stands in turns/{one.turn_id}/context.md, which is his.\n")
    erased = erasure(root).erase(BEN)
    assert erased.proof.is_clean, erased.proof.hits
