"""A file open for a moment inside a kept instance: closed afterwards whatever happened, and nothing else within reach."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from pandora_dagster.stores.disk import duckdb_file
from pandora_dagster.stores.disk.duckdb_file import attached_connection


@pytest.fixture
def file(tmp_path) -> Path:
    """With one table of one number."""
    path = tmp_path / "it's a folder" / "some.duckdb"
    path.parent.mkdir()
    with attached_connection(path, read_only=False) as db:
        db.execute("CREATE TABLE numbers AS SELECT 1 AS n")
    return path


def numbers(path: Path) -> list[int]:
    with attached_connection(path, read_only=True) as db:
        return [n for (n,) in db.execute("SELECT n FROM numbers ORDER BY n").fetchall()]


def test_it_is_closed_afterwards_and_no_log_is_left(file):
    """Another process may write it at once."""
    assert numbers(file) == [1] and [path.name for path in file.parent.iterdir()] == ["some.duckdb"]
    added = f"import duckdb; duckdb.connect({str(file)!r}).execute('INSERT INTO numbers VALUES (2)')"
    subprocess.run([sys.executable, "-c", added], check=True)
    assert numbers(file) == [1, 2]


def test_what_is_not_committed_is_undone(file):
    class CutError(Exception):
        pass

    with pytest.raises(CutError), attached_connection(file, read_only=False) as db:
        db.execute("BEGIN TRANSACTION")
        db.execute("INSERT INTO numbers VALUES (7)")
        raise CutError
    assert numbers(file) == [1]


def test_only_reading_cannot_write(file):
    with pytest.raises(duckdb.Error, match="read-only"), attached_connection(file, read_only=True) as db:
        db.execute("INSERT INTO numbers VALUES (7)")
    assert numbers(file) == [1]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "ATTACH '{other}' AS other",
        "COPY numbers TO '{other}'",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "INSTALL httpfs",
    ],
)
def test_nothing_outside_of_the_folder_is_within_reach(file, tmp_path, statement):
    """Whatever a statement says, and again in the next use."""
    for _ in range(2):
        with pytest.raises(duckdb.Error), attached_connection(file, read_only=False) as db:
            db.execute(statement.format(other=tmp_path / "other.duckdb"))
    assert numbers(file) == [1] and not (tmp_path / "other.duckdb").exists()


def test_a_file_that_is_none_spoils_no_other(file):
    bad = file.with_name("bad.duckdb")
    bad.write_bytes(b"no database" * 1000)
    with pytest.raises(duckdb.IOException, match="not a valid DuckDB database"), attached_connection(bad, read_only=True):
        pass
    assert numbers(file) == [1]


def test_an_instance_that_cannot_let_go_is_given_up(file):
    """The next use has another, and the file."""
    with attached_connection(file, read_only=False) as db:
        db.execute("INSERT INTO numbers VALUES (5)")
        before = duckdb_file._instances[file.parent]
        db.close()
    assert file.parent not in duckdb_file._instances and numbers(file) == [1, 5]
    assert duckdb_file._instances[file.parent] is not before


def test_what_is_in_use_is_closed_by_nobody_else(file, tmp_path):
    """Neither by the ninth folder nor by a neighbour whose instance is given up; afterwards no more are kept than may be."""
    with attached_connection(file, read_only=False) as db:
        for n in range(duckdb_file._MAX_INSTANCES + 2):
            (tmp_path / f"folder{n}").mkdir()
            with attached_connection(tmp_path / f"folder{n}" / "file.duckdb", read_only=False) as other:
                other.execute("CREATE TABLE numbers AS SELECT 1 AS n")
        with attached_connection(file.with_name("neighbour.duckdb"), read_only=False) as neighbour:
            neighbour.close()
        db.execute("INSERT INTO numbers VALUES (5)")
    assert numbers(file) == [1, 5] and len(duckdb_file._instances) <= duckdb_file._MAX_INSTANCES


def test_a_forked_process_has_instances_of_its_own(file):
    """Its parent's threads are not there."""
    with attached_connection(file, read_only=True) as db:
        db.execute("SELECT 1")
    script = f"""
import os, sys
from pathlib import Path
from pandora_dagster.stores.disk.duckdb_file import attached_connection
def added(n):
    with attached_connection(Path({str(file)!r}), read_only=False) as db:
        db.execute("INSERT INTO numbers SELECT ? FROM range(100000) t(i) WHERE i = 5", [n])
added(2)
if (child := os.fork()) == 0:
    added(3)
    os._exit(0)
os.waitpid(child, 0)
added(4)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=60)
    assert numbers(file) == [1, 2, 3, 4]


def test_instances_are_few_and_threads_do_not_meet(tmp_path):
    """More folders than instances, several files in each, many threads."""
    files = [tmp_path / f"folder{n % (duckdb_file._MAX_INSTANCES + 3)}" / f"file{n}.duckdb" for n in range(40)]
    for path in files:
        path.parent.mkdir(exist_ok=True)

    def work(path: Path) -> int:
        with attached_connection(path, read_only=False) as db:
            db.execute("CREATE TABLE numbers AS SELECT range AS n FROM range(500)")
        return len(numbers(path))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, files)) == [500] * len(files)
    assert len(duckdb_file._instances) <= duckdb_file._MAX_INSTANCES
