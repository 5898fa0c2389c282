"""What every inbox of query files must do, asked of the folder on the disk and of the fake in memory."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pandora_dagster.contracts.batches import RejectedLine, query_file_digest
from pandora_dagster.contracts.ports.record_storage import QueryFiles
from pandora_dagster.errors import InputError
from pandora_dagster.stores.records import batch_files
from pandora_dagster.stores.records.batch_files import Inbox
from tests.fakes.query_files import MemoryQueryFiles

DAY = "2026-01-04"
QUERIES = b'{"query": "What did the desk cost?"}\n'
REJECTED = (RejectedLine(line=3, reason="no JSON", text="{\udcff"), RejectedLine(line=4, reason="no query", text="{}"))

Write = Callable[[Path, bytes], None]


@pytest.fixture(params=["memory", "disk"])
def inbox(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryQueryFiles | Inbox:
    monkeypatch.setattr(batch_files, "MAX_QUERY_FILE_BYTES", 1_000)
    return MemoryQueryFiles(largest=1_000) if request.param == "memory" else Inbox(tmp_path)


@pytest.fixture
def files(inbox: MemoryQueryFiles | Inbox) -> QueryFiles:
    return inbox


@pytest.fixture
def folder(inbox: MemoryQueryFiles | Inbox) -> Path:
    return inbox.folder


@pytest.fixture
def write(inbox: MemoryQueryFiles | Inbox) -> Write:
    """Puts a file where a user would."""

    def to_disk(path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    return inbox.write if isinstance(inbox, MemoryQueryFiles) else to_disk


def names(files: QueryFiles) -> list[str]:
    return [waiting.name for waiting in files.files()]


def test_files_of_queries_wait_by_name(files: QueryFiles, folder: Path, write: Write) -> None:
    """Temporary files, rejected lines and other files do not; an inbox that nobody made is empty."""
    assert files.files() == ()
    for name in ("b.jsonl", "a.jsonl", "a.rejected.jsonl", ".c.jsonl", "a.jsonl.part", "a.json"):
        write(folder / name, QUERIES)
    assert names(files) == ["a.jsonl", "b.jsonl"] and files.files()[0].size == len(QUERIES)
    assert files.read(files.path("a.jsonl")) == QUERIES


def test_a_file_that_is_written_on_has_another_fingerprint(files: QueryFiles, folder: Path, write: Write) -> None:
    write(folder / "a.jsonl", QUERIES)
    first = files.files()
    assert files.files() == first
    write(folder / "a.jsonl", QUERIES * 2)
    assert files.files()[0].fingerprint != first[0].fingerprint


@pytest.mark.parametrize("name", ["none.jsonl", "", "../a.jsonl", "done/2026-01-04/a.jsonl", "a.rejected.jsonl"])
def test_a_name_that_does_not_wait_is_refused(files: QueryFiles, folder: Path, write: Write, name: str) -> None:
    """Neither its path is given nor is it finished."""
    for path in (folder / "a.jsonl", folder.parent / "a.jsonl", folder / "done" / DAY / "a.jsonl", folder / "a.rejected.jsonl"):
        write(path, QUERIES)
    with pytest.raises(InputError):
        files.path(name)
    with pytest.raises(InputError):
        files.finish(name, DAY, query_file_digest(QUERIES))
    assert names(files) == ["a.jsonl"]


def test_a_finished_file_waits_no_more(files: QueryFiles, folder: Path, write: Write) -> None:
    """Its rejected lines lie beside it; another one stays in the inbox."""
    write(folder / "a.jsonl", QUERIES)
    write(folder / "b.jsonl", QUERIES)
    beside = files.finish("a.jsonl", DAY, query_file_digest(QUERIES), REJECTED)
    assert beside is not None and DAY in beside.parts and names(files) == ["b.jsonl"]
    assert [json.loads(line)["line"] for line in files.read(beside).decode().splitlines()] == [3, 4]
    assert files.finish("b.jsonl", DAY, query_file_digest(QUERIES)) is None and names(files) == []
    for name in ("a.jsonl", "b.jsonl"):
        assert files.read(folder / "done" / DAY / name) == QUERIES


def test_two_finished_files_of_one_name_are_both_kept(files: QueryFiles, folder: Path, write: Write) -> None:
    """The first keeps its name; the rejected lines of each lie beside it."""
    kept: list[Path] = []
    for data in (b"one", b"two"):
        write(folder / "a.jsonl", data)
        beside = files.finish("a.jsonl", DAY, query_file_digest(data), REJECTED)
        assert beside is not None
        kept.append(beside)
    done = folder / "done" / DAY
    assert files.read(done / "a.jsonl") == b"one" and files.read(done / f"a.{query_file_digest(b'two')[:12]}.jsonl") == b"two"
    assert len(set(kept)) == 2 and files.read(kept[0]) == files.read(kept[1])


def test_rejected_lines_are_written_beside_any_file(files: QueryFiles, folder: Path, write: Write) -> None:
    """Each with its line, reason and text, where half a character is replaced; nothing where none was rejected."""
    path = folder.parent / "elsewhere" / "a.jsonl"
    write(path, QUERIES)
    assert files.keep_rejected(path, ()) is None
    beside = files.keep_rejected(path, REJECTED)
    assert beside is not None and beside == path.with_name("a.rejected.jsonl")
    first, second = (json.loads(line) for line in files.read(beside).decode().splitlines())
    assert first == {"line": 3, "reason": "no JSON", "text": "{?"} and second == REJECTED[1].model_dump() and names(files) == []


def test_a_file_that_is_missing_or_too_large_is_refused(files: QueryFiles, folder: Path, write: Write) -> None:
    write(folder / "whole.jsonl", b"x" * 1_000)
    write(folder / "large.jsonl", b"x" * 1_001)
    assert len(files.read(folder / "whole.jsonl")) == 1_000
    with pytest.raises(InputError, match="1,000 bytes"):
        files.read(folder / "large.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        files.read(folder / "none.jsonl")
