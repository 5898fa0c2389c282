"""What a folder of another program's records must do, asked of the SQLite files on disk and of the fake in memory."""

import sqlite3
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports.user_storage import RecordFolder
from pandora_dagster.documents.redaction.user_traces import UserTraces
from pandora_dagster.stores.erasure.record_folder import SqliteRecordFolder
from tests.fakes.record_folder import MemoryRecordFolder

FACT = "her locker is B-55120"
TRACES = UserTraces(UserId("annette"), (FACT,), is_id_distinctive=True)
ROWS = [
    ("annette:turn_000001", "ok"),
    ("annette", "ok"),
    ("bob:turn_000001", "ok"),
    ("bob:turn_000002", f"compared with '{FACT}'"),
]
OUTPUT = f"started\n{FACT}\nannette:turn_000001 done\nbob:turn_000001 done\n".encode()
TEXTS = {"out.txt": OUTPUT, "run of annette (1).txt": b"done\n", "plain.txt": b"done\n"}


@dataclass(frozen=True)
class Records:
    """A folder, and what its captured output says now."""

    folder: RecordFolder
    texts: Callable[[], Mapping[str, bytes]]

    def rows(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for opened in self.folder.databases():
            with opened as db:
                found += db.execute("SELECT partition, body FROM runs ORDER BY rowid").fetchall()
        return found

    def hits(self) -> int:
        return sum(bool(searched.hit) for searched in self.folder.search(TRACES))


def _fill(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE runs (partition TEXT, body TEXT)")
    db.executemany("INSERT INTO runs VALUES (?, ?)", ROWS)
    db.commit()


@pytest.fixture(params=["memory", "sqlite"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Records]:
    is_fake = request.param == "memory"
    with closing(sqlite3.connect(":memory:" if is_fake else tmp_path / "runs.db")) as db:
        _fill(db)
        if is_fake:
            fake = MemoryRecordFolder([db], dict(TEXTS))
            yield Records(fake, lambda: fake.texts)
            return
    for name, data in TEXTS.items():
        (tmp_path / name).write_bytes(data)
    yield Records(SqliteRecordFolder(tmp_path), lambda: {path.name: path.read_bytes() for path in tmp_path.glob("*.txt")})


def test_a_connection_overwrites_what_it_deletes(records: Records) -> None:
    """One for each database; captured output has none."""
    opened = list(records.folder.databases())
    assert len(opened) == 1
    with opened[0] as db:
        assert db.execute("PRAGMA secure_delete").fetchone() == (1,)


def test_rows_of_the_user_are_deleted_and_others_scrubbed(records: Records) -> None:
    """A row is the user's where it names the user or a turn; a second erasure changes nothing."""
    assert records.rows() == ROWS
    for _ in range(2):
        records.folder.erase_rows(TRACES)
        assert records.rows() == [ROWS[2], (ROWS[3][0], "compared with 'erased'")]
    assert records.texts() == TEXTS


def test_lines_with_a_trace_are_deleted_from_captured_output(records: Records) -> None:
    """A file that is named by the user is deleted; databases stay as they are."""
    for _ in range(2):
        records.folder.erase_texts(TRACES)
        assert records.texts() == {"out.txt": b"started\nbob:turn_000001 done\n", "plain.txt": b"done\n"}
    assert records.rows() == ROWS


def test_every_object_is_searched(records: Records) -> None:
    """Each once; nothing is found after rows and texts are erased."""
    assert (len(list(records.folder.search(TRACES))), records.hits()) == (4, 3)
    records.folder.erase_rows(TRACES)
    assert records.hits() == 2
    records.folder.erase_texts(TRACES)
    assert (len(list(records.folder.search(TRACES))), records.hits()) == (3, 0)
