"""What every vector index must do, asked of the DuckDB adapter and of the fake in memory."""

from pathlib import Path

import pytest

from pandora_dagster.contracts.ports.turn_storage import VectorIndex
from pandora_dagster.errors import ModelError
from pandora_dagster.retrieval.messages.document_numbers import document_number
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search.turn_vectors import VECTOR_SCHEMA, TurnVectors
from tests.fakes.embedding_model import FakeEmbedder
from tests.fakes.vector_index import MemoryVectorIndex
from tests.stores.search.index_rig import message_row

COUCH, LAMP = message_row(1, "the couch is blue", "it came today"), message_row(2, "a walnut lamp")


@pytest.fixture
def model() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture(params=["memory", "duckdb"])
def vectors(request: pytest.FixtureRequest, tmp_path: Path, model: FakeEmbedder) -> VectorIndex:
    if request.param == "memory":
        return MemoryVectorIndex(model)
    return TurnVectors(DuckDBFile(tmp_path / "turn_vectors.duckdb", VECTOR_SCHEMA), model, report=lambda sentence: None)


def best(vectors: VectorIndex, user: str, query: str) -> int:
    found = vectors.similarities(user, query)
    return max(found, key=lambda doc: found[doc])


def test_the_message_of_the_same_meaning_is_most_alike(vectors: VectorIndex) -> None:
    """A document is a message by its turn and its place in it; a cosine is at most 1."""
    vectors.put([COUCH, LAMP])
    assert best(vectors, "ann", "sofa") == document_number(1, 1) and best(vectors, "ann", "walnut") == document_number(2, 1)
    assert vectors.similarities("ann", "the couch is blue")[document_number(1, 1)] == pytest.approx(1.0, abs=1e-3)


def test_another_users_messages_are_never_compared(vectors: VectorIndex) -> None:
    vectors.put([COUCH])
    assert vectors.similarities("ben", "sofa") == {} and vectors.similarities("ann") == {} and vectors.similarities("ann", " ") == {}


def test_a_turn_that_is_put_again_has_the_vectors_of_its_new_messages_alone(vectors: VectorIndex) -> None:
    vectors.put([COUCH])
    vectors.put([message_row(1, "nothing of the kind")])
    assert set(vectors.similarities("ann", "sofa")) == {document_number(1, 1)}


def test_a_failing_model_raises_nowhere_but_in_its_check(vectors: VectorIndex, model: FakeEmbedder) -> None:
    vectors.put([COUCH])
    vectors.check_stored_model()
    assert vectors.name == model.name and vectors.check() == len(model.embed(["search"], timeout_s=1.0)[0])
    model.fails = True
    vectors.put([LAMP])
    assert vectors.similarities("ann", "sofa") == {}
    with pytest.raises(ModelError):
        vectors.check()
