"""One DuckDB file shared by several processes."""

import multiprocessing
import threading
from pathlib import Path

import duckdb
import pytest

from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema

_SCHEMA = Schema(1, ("CREATE TABLE t (x INTEGER)",))


def _file(folder: Path, **fields: object) -> DuckDBFile:
    return DuckDBFile(**{"path": folder / "deep" / "i.duckdb", "schema": _SCHEMA, "wait_s": 10.0, **fields})  # type: ignore[arg-type]


def _values(file: DuckDBFile) -> list[int]:
    with file.reading() as db:
        return [x for (x,) in db.execute("SELECT x FROM t ORDER BY x").fetchall()]


def _add(path: Path, start: int) -> None:
    for number in range(start, start + 5):
        with DuckDBFile(path, _SCHEMA).writing() as db:
            db.execute("INSERT INTO t VALUES (?)", [number])


def test_a_file_is_made_on_first_use(tmp_path: Path) -> None:
    """Reading an index that nobody wrote gives empty tables."""
    assert _values(_file(tmp_path)) == []


def test_a_block_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    """An error inside the block takes all of it back."""
    file = _file(tmp_path)
    with file.writing() as db:
        db.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(ZeroDivisionError), file.writing() as db:
        db.execute("INSERT INTO t VALUES (2)")
        raise ZeroDivisionError
    assert _values(file) == [1]


def test_processes_take_turns(tmp_path: Path) -> None:
    """Several processes write at once and no row is lost."""
    file = _file(tmp_path)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_add, args=(file.path, n * 100)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [w.exitcode for w in workers] == [0, 0, 0]
    assert len(_values(file)) == 15


def test_threads_take_turns(tmp_path: Path) -> None:
    """Several threads of one process do the same."""
    file = _file(tmp_path)
    threads = [threading.Thread(target=_add, args=(file.path, n * 100)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(_values(file)) == 15


def test_a_killed_writer_leaves_a_sound_file(tmp_path: Path) -> None:
    """A process that is killed while it writes holds no lock and breaks nothing: what it stored is there."""
    file = _file(tmp_path)
    worker = multiprocessing.get_context("spawn").Process(target=_add_for_ever, args=(file.path,))
    worker.start()
    while not file.path.exists() or len(_values(file)) < 3:
        worker.join(0.01)
    worker.kill()
    worker.join(30)
    stored = _values(file)
    _add(file.path, 1_000_000)
    assert stored == list(range(len(stored)))
    assert len(_values(file)) == len(stored) + 5


def _add_for_ever(path: Path) -> None:
    for start in range(0, 100_000, 5):
        _add(path, start)


def test_the_wait_for_another_is_bounded(tmp_path: Path) -> None:
    """Who holds the file too long is informed of, not waited for."""
    with _file(tmp_path).locked(), pytest.raises(StoreError, match=r"in use by another process for over 0.05 s"):
        _values(_file(tmp_path, wait_s=0.05))


@pytest.mark.parametrize("content", [b"", b"not a database", b"x" * 100_000])
def test_a_damaged_file_is_named_with_its_remedy(tmp_path: Path, content: bytes) -> None:
    """Garbage instead of an index is one clear sentence."""
    file = _file(tmp_path)
    file.path.parent.mkdir()
    file.path.write_bytes(content)
    with pytest.raises(StoreError, check=lambda error: "pandora index rebuild" in error.hint):
        _values(file)


def test_a_cut_file_is_named_with_its_remedy(tmp_path: Path) -> None:
    """An index of which half is gone is informed of."""
    file = _file(tmp_path)
    with file.writing() as db:
        db.execute("INSERT INTO t SELECT range FROM range(100000)")
    data = file.path.read_bytes()
    file.path.write_bytes(data[: len(data) // 2])
    with pytest.raises(StoreError, check=lambda error: "pandora index rebuild" in error.hint):
        _values(file)


def test_a_file_of_another_design_is_not_guessed_at(tmp_path: Path) -> None:
    """An index of an older version asks to be rebuilt."""
    _values(_file(tmp_path))
    with pytest.raises(StoreError, match="index version 1, expected 2"):
        _values(_file(tmp_path, schema=Schema(2, _SCHEMA.statements)))


def test_a_damaged_file_is_kept_when_replaced(tmp_path: Path) -> None:
    """Taking a fresh file keeps the broken one under another name, each time a new one."""
    file = _file(tmp_path)
    for number in (1, 2):
        file.path.parent.mkdir(exist_ok=True)
        file.path.write_bytes(b"broken")
        _, damaged_file = file.rebuild(lambda fresh: None)
        assert damaged_file is not None
        assert (damaged_file.name, damaged_file.read_bytes()) == (f"i.duckdb.damaged-{number}", b"broken")
        assert _values(file) == []


def test_a_sound_file_is_replaced(tmp_path: Path) -> None:
    """A sound index is only an index: nothing of it is kept."""
    file = _file(tmp_path)
    _add(file.path, 1)
    assert file.rebuild(lambda fresh: _add(fresh.path, 50)) == (None, None)
    assert _values(file) == [50, 51, 52, 53, 54]


def test_a_wrong_statement_is_not_called_damage(tmp_path: Path) -> None:
    """A refused statement is a StoreError that names the file and does not ask for a rebuild."""
    with pytest.raises(StoreError, match="DuckDB failed") as error, _file(tmp_path).writing() as db:
        db.execute("INSERT INTO t VALUES ('word')")
    assert "rebuild" not in str(error.value)


def test_another_program_that_holds_the_file_is_named(tmp_path: Path) -> None:
    """A file opened by something that knows no lock gives a clear sentence."""
    file = _file(tmp_path)
    _values(file)
    context = multiprocessing.get_context("spawn")
    held, done = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(file.path, held, done))
    holder.start()
    try:
        assert held.wait(30)
        with pytest.raises(StoreError, match="open in another program"):
            _values(file)
    finally:
        done.set()
        holder.join(30)


def _hold(path: Path, held: threading.Event, done: threading.Event) -> None:
    with duckdb.connect(path):
        held.set()
        done.wait(30)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file where the folder should be is informed of."""
    (tmp_path / "deep").write_text("a file")
    with pytest.raises(StoreError, match="cannot make the folder"):
        _values(_file(tmp_path))
