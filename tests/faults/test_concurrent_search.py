"""Many processes that write to one search index and search it at the same time."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA
from tests.stores.search.index_rig import message_row


def _work(path: str, worker: int, turns: int) -> int:
    index = DuckTurnIndex(DuckDBFile(Path(path), TURN_SCHEMA, 120.0))
    seen = 0
    for turn in range(turns):
        number = worker * turns + turn + 1
        index.put([message_row(number, f"desk of worker{worker}", session=f"w{worker}")])
        seen += any(m.message_id == f"D{number}:1" for m in index.messages("ann", f"worker{worker} desk", limit=200))
    return seen


def test_eight_processes_index_and_search_at_once(tmp_path: Path) -> None:
    """None fails, each finds what it has just put, and no row is lost."""
    path = tmp_path / "turn_index.duckdb"
    with ProcessPoolExecutor(8, mp_context=get_context("spawn")) as pool:
        seen = [pool.submit(_work, str(path), worker, 4) for worker in range(8)]
    assert [one.result() for one in seen] == [4] * 8
    index = DuckTurnIndex(DuckDBFile(path, TURN_SCHEMA))
    assert sorted(row.number for row in index.rows()) == list(range(1, 33))
    assert len(index.messages("ann", "desk", limit=100)) == 32
