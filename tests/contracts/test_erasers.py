"""What every Eraser of a store does, the fake included; together they search every file of the store."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports.user_storage import Eraser
from pandora_dagster.documents.redaction.user_traces import UserTraces
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.erasure.file_erasure import DocumentEraser, files_below
from pandora_dagster.stores.erasure.record_erasure import RecordEraser
from pandora_dagster.stores.erasure.row_erasure import IndexEraser
from tests.fakes.erasure import FakeEraser

ANN, FACT = UserId("annette"), "her locker is B-55120"
TRACES = UserTraces(ANN, (FACT,), is_id_distinctive=True)


def _documents(root: Path) -> DocumentEraser:
    for user, text in ((ANN, FACT), (UserId("bob"), "nothing of hers")):
        folder = Layout(root).user(user) / "turns" / "turn_000001"
        folder.mkdir(parents=True)
        (folder / "context.md").write_text(text)
    return DocumentEraser(Layout(root), ErasureIntents(root), 1.0)


def _records(root: Path) -> RecordEraser:
    (root / "inbox").mkdir()
    (root / "inbox" / "q.jsonl").write_text(f'{{"user": "annette", "query": "{FACT}"}}\n{{"user": "bob", "query": "hello"}}\n')
    return RecordEraser(root, UserId("me"), (), 1.0)


def _indexes(root: Path) -> IndexEraser:
    (root / "indexes").mkdir()
    with duckdb.connect(root / "indexes" / "turn_index.duckdb") as db:
        db.execute("CREATE TABLE turns (user_id VARCHAR, text VARCHAR)")
        db.execute("INSERT INTO turns VALUES ('annette', ?), ('bob', 'hello')", [FACT])
    return IndexEraser(root, 1.0)


def _fake(root: Path) -> FakeEraser:
    return FakeEraser({ANN: [FACT], UserId("bob"): ["hello"]})


@pytest.fixture(params=[_documents, _records, _indexes, _fake])
def eraser(request: pytest.FixtureRequest, tmp_path: Path) -> Eraser:
    make: Callable[[Path], Eraser] = request.param
    return make(tmp_path)


def _hits(eraser: Eraser) -> list[str]:
    return [searched.hit for searched in eraser.search(TRACES) if searched.hit]


def test_what_is_erased_is_found_before_and_not_after(eraser: Eraser) -> None:
    """The search finds the user's traces, and erasing removes all of them; a second erasure changes nothing."""
    assert _hits(eraser) and eraser.step
    eraser.erase(ANN, TRACES)
    assert not _hits(eraser)
    eraser.erase(ANN, TRACES)
    assert not _hits(eraser)


def test_another_user_keeps_everything(eraser: Eraser) -> None:
    """Counts of the other user are the same before and after."""
    before = dict(eraser.count(UserId("bob")))
    eraser.erase(ANN, TRACES)
    assert dict(eraser.count(UserId("bob"))) == before


def test_the_erasers_of_a_store_search_every_file(tmp_path: Path) -> None:
    """Also one that no adapter knows; none is searched twice."""
    erasers: list[Eraser] = [make(tmp_path) for make in (_documents, _records, _indexes)]
    for name in ("new", "metrics/x", "users/stray", "cold/annette/x", "erasing/x", "batches/y", "interventions/z", ".hidden/deep/x"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FACT)
    searched = [one for eraser in erasers for one in eraser.search(TRACES)]
    assert len(searched) == len(list(files_below(tmp_path)))
    assert sum(bool(one.hit) for one in searched) == len(searched) - 1, "all but bob's document"
