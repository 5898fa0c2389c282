"""The inbox: which files wait, where finished ones go; and the records of batches."""

import json
import os

import pytest

from pandora_dagster.contracts.batches import Batch, BatchQuery, RejectedLine, query_file_digest
from pandora_dagster.errors import DocumentError, InputError, StoreError
from pandora_dagster.stores.records.batch_files import BatchFiles, Inbox

DIGEST = "ab" * 32


def batch(**changed):
    queries = (BatchQuery(line=1, query="What?", turn="ann:turn_000001", session="s1"),)
    return Batch(**{"digest": DIGEST, "file": "q.jsonl", "day": "2026-01-04", "queries": queries, **changed})


@pytest.fixture
def inbox(tmp_path):
    (tmp_path / "inbox").mkdir()
    return Inbox(tmp_path)


def test_only_files_of_queries_wait(inbox, tmp_path):
    """Not what is being written under another name, what was rejected, folders, or links that lead out."""
    for name in ("b.jsonl", "a.jsonl", "a.rejected.jsonl", ".a.jsonl", "a.jsonl.part", "a.json"):
        (inbox.folder / name).write_text("{}")
    (inbox.folder / "c.jsonl").mkdir()
    (tmp_path / "secret.jsonl").write_text("{}")
    (inbox.folder / "d.jsonl").symlink_to(tmp_path / "secret.jsonl")
    assert [waiting.name for waiting in inbox.files()] == ["a.jsonl", "b.jsonl"]


def test_a_file_that_is_written_on_looks_different(inbox):
    """Two looks are alike only where neither size nor time has changed."""
    path = inbox.folder / "a.jsonl"
    path.write_text("{}")
    first = inbox.files()
    assert inbox.files() == first
    with path.open("a") as file:
        file.write("{}")
    assert inbox.files()[0].fingerprint != first[0].fingerprint
    os.utime(path, ns=(1, 1))
    assert inbox.files()[0].fingerprint == "4:1"


@pytest.mark.parametrize("name", ["../secret.jsonl", "b.jsonl", "", "a.jsonl/../../x.jsonl"])
def test_a_name_that_does_not_wait_there_is_no_path(inbox, tmp_path, name):
    """Only what the folder itself lists is opened."""
    (tmp_path / "secret.jsonl").write_text("{}")
    (inbox.folder / "a.jsonl").write_text("{}")
    with pytest.raises(InputError, match=r"expected the name of a \.jsonl file"):
        inbox.path(name)


def test_no_inbox_is_an_empty_one(tmp_path):
    assert Inbox(tmp_path).files() == ()


def test_finished_files_lie_under_their_day_and_none_is_lost(inbox):
    """A second file of the same name stays beside the first."""
    for text in ("one", "two"):
        (inbox.folder / "a.jsonl").write_text(text)
        inbox.finish("a.jsonl", "2026-01-04", query_file_digest(text.encode()))
    done = inbox.folder / "done" / "2026-01-04"
    assert sorted(path.read_text() for path in done.iterdir()) == ["one", "two"] and (done / "a.jsonl").read_text() == "one"
    assert inbox.files() == ()


def test_rejected_lines_are_kept_with_their_reasons(tmp_path):
    """Beside the file, one JSON line each; nothing where there are none."""
    lines = (RejectedLine(line=3, reason="no", text="{\udcff"), RejectedLine(line=4, reason="no", text="ü"))
    path = Inbox(tmp_path).keep_rejected(tmp_path / "a.jsonl", lines)
    assert path == tmp_path / "a.rejected.jsonl"
    assert [json.loads(line)["line"] for line in path.read_text().splitlines()] == [3, 4]
    assert Inbox(tmp_path).keep_rejected(tmp_path / "b.jsonl", ()) is None and not (tmp_path / "b.rejected.jsonl").exists()


def test_a_file_that_cannot_be_read_is_reported(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        Inbox(tmp_path).read(tmp_path / "none.jsonl")


def test_a_record_is_written_once(tmp_path):
    """The first one stands, whatever a second beginning says."""
    files = BatchFiles(tmp_path)
    assert files.find(DIGEST) is None and files.of_day("2026-01-04") == ()
    assert files.begin(batch()) == batch()
    other = batch(day="2026-01-05", queries=())
    assert files.begin(other) == batch() == files.find(DIGEST)
    assert files.of_day("2026-01-04") == (batch(),) and files.of_day("2026-01-05") == ()


def test_a_damaged_record_is_reported(tmp_path):
    """Neither another batch's content nor half a file is taken for it."""
    files = BatchFiles(tmp_path)
    files.begin(batch())
    path = tmp_path / "batches" / f"{DIGEST}.json"
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    with pytest.raises(DocumentError, match="expected a batch's record"):
        files.find(DIGEST)
    path.write_text(whole.replace(DIGEST, "cd" * 32))
    with pytest.raises(DocumentError, match="it holds the batch cdcdcdcdcdcd"):
        files.find(DIGEST)


def test_a_batch_runs_in_one_place_at_a_time(tmp_path):
    """The second process gets an error; another batch is free."""
    files = BatchFiles(tmp_path)
    with files.running(batch()):
        with files.running(batch(digest="cd" * 32)):
            pass
        with pytest.raises(StoreError, match=r"another process works on the queries of q\.jsonl"), files.running(batch()):
            pass
    with files.running(batch()):
        pass
