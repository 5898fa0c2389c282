"""What every embedding model must do, asked of a server's on a socket and of the fake."""

import asyncio
import json
from collections.abc import Callable

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pandora_dagster.contracts.ports.model_runtime import EmbeddingModel
from pandora_dagster.errors import ModelError
from pandora_dagster.runtime.embedders import ServerEmbedder
from pandora_dagster.runtime.sglang.endpoints import EmbeddingEndpoint, Server
from tests.fakes.embedding_model import FakeEmbedder

Opened = tuple[EmbeddingModel, Callable[[], None]]
"""A model, and what makes it fail from then on."""


@pytest.fixture(params=["fake", "server"])
def opened(request: pytest.FixtureRequest, httpserver: HTTPServer) -> Opened:
    served = FakeEmbedder()

    def fail() -> None:
        served.fails = True

    if request.param == "fake":
        return served, fail

    def answer(asked: Request) -> Response:
        if served.fails:
            return Response("no place left", status=500)
        vectors = served.embed(json.loads(asked.data)["input"], timeout_s=1)
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        return Response(json.dumps({"object": "list", "data": data}), content_type="application/json")

    httpserver.expect_request("/v1/embeddings", method="POST").respond_with_handler(answer)
    server = Server(base_url=httpserver.url_for("/v1"), model="tiny-embed", context_length=512)
    return ServerEmbedder(EmbeddingEndpoint(server), keys={}), fail


@pytest.fixture
def model(opened: Opened) -> EmbeddingModel:
    return opened[0]


def test_a_text_has_one_vector_in_the_texts_order(model: EmbeddingModel) -> None:
    """All of one length, the same text always the same, whatever is asked beside it."""
    texts = [f"word{number}" for number in range(150)]
    vectors = model.embed(texts, timeout_s=30)
    assert len(vectors) == len(texts) and len({len(vector) for vector in vectors}) == 1
    assert model.embed(texts[::-1], timeout_s=30) == vectors[::-1] and vectors[0] != vectors[1]


def test_nothing_has_no_vectors(model: EmbeddingModel) -> None:
    assert model.embed([], timeout_s=30) == []


def test_a_model_has_a_name(model: EmbeddingModel) -> None:
    assert model.name and model.name == model.name.strip()


def test_a_text_of_any_length_has_a_vector(model: EmbeddingModel) -> None:
    """The end of a long one may not be read."""
    assert [len(vector) > 0 for vector in model.embed(["", "sofa " * 5_000], timeout_s=30)] == [True, True]


def test_a_running_loop_may_ask(model: EmbeddingModel) -> None:
    async def phase() -> list[list[float]]:
        return model.embed(["sofa"], timeout_s=30)

    assert asyncio.run(phase()) == model.embed(["sofa"], timeout_s=30)


def test_a_failure_is_a_model_error(opened: Opened) -> None:
    model, fail = opened
    fail()
    with pytest.raises(ModelError):
        model.embed(["sofa"], timeout_s=30)
