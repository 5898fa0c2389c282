"""Vectors from `/v1/embeddings`, against a server on a real socket."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import pytest

from pandora_dagster.errors import (
    BadAnswerError,
    ConfigurationError,
    ModelError,
    ModelRejectedError,
    ModelTimeoutError,
    RuntimeUnreachableError,
)
from pandora_dagster.runtime.embedders import ServerEmbedder
from pandora_dagster.runtime.sglang.endpoints import EmbeddingEndpoint, Server
from pandora_dagster.runtime.sglang.runtime_file import load_endpoints

KEY = "never-told-key-1"


@dataclass
class _Served:
    """A server: what it was sent, and how it answers."""

    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    status: int = 200
    body: bytes | None = None
    takes_s: float = 0.0

    def embedder(self, context: int = 512, **keys: str) -> ServerEmbedder:
        server = Server(
            base_url=f"http://127.0.0.1:{self.port}/v1",
            model="tiny-embed",
            context_length=context,
            api_key_env="EMBED_KEY" if keys else None,
        )
        return ServerEmbedder(EmbeddingEndpoint(server), keys=keys)

    def answer(self, sent: dict[str, Any]) -> bytes:
        data = [{"object": "embedding", "index": i, "embedding": [float(len(text)), 1.0]} for i, text in enumerate(sent["input"])]
        return json.dumps({"object": "list", "data": data[::-1], "model": sent["model"], "usage": {}}).encode()


@pytest.fixture
def served() -> Iterator[_Served]:
    made = _Served()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
            made.requests.append(sent)
            made.paths.append(self.path)
            made.keys.append(self.headers.get("authorization", ""))
            sleep(made.takes_s)
            body = made.answer(sent) if made.body is None else made.body
            self.send_response(made.status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


def test_one_vector_a_text_in_the_texts_order(served: _Served) -> None:
    """Whatever order the server sends; many texts go in several requests."""
    texts = ["a" * n for n in range(1, 151)]
    assert [vector[0] for vector in served.embedder().embed(texts, timeout_s=30)] == [float(n) for n in range(1, 151)]
    assert len(served.requests) == 3 and set(served.paths) == {"/v1/embeddings"}
    assert {request["model"] for request in served.requests} == {"tiny-embed"}


def test_a_text_beyond_the_models_context_is_cut(served: _Served) -> None:
    """A message of a whole page does not fail the batch that it is in."""
    served.embedder(context=512).embed(["x" * 5_000, "short"], timeout_s=30)
    assert [len(text) for text in served.requests[0]["input"]] == [1_024, 5]


def test_a_search_within_a_running_loop_can_ask(served: _Served) -> None:
    """Phases are async, and a search is not."""

    async def phase() -> list[list[float]]:
        return served.embedder().embed(["abc"], timeout_s=30)

    assert asyncio.run(phase()) == [[3.0, 1.0]]


def test_the_key_goes_to_the_server_and_into_no_message(served: _Served) -> None:
    """A refusal that echoes the key is reported without it."""
    embedder = served.embedder(EMBED_KEY=KEY)
    embedder.embed(["abc"], timeout_s=30)
    assert served.keys == [f"Bearer {KEY}"]
    served.status, served.body = 400, json.dumps({"message": f"bad {KEY}"}).encode()
    with pytest.raises(ModelRejectedError) as error:
        embedder.embed(["abc"], timeout_s=30)
    assert KEY not in str(error.value) and "embeddings at" in str(error.value)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (500, b"{}", RuntimeUnreachableError),
        (404, b"{}", ModelRejectedError),
        (200, b"<html>", BadAnswerError),
        (200, b'{"data": []}', BadAnswerError),
        (200, b'{"data": [{"index": 1, "embedding": [1]}]}', BadAnswerError),
        (200, b'{"data": [{"index": 0, "embedding": ["x"]}]}', BadAnswerError),
    ],
)
def test_every_fault_is_a_model_error(served: _Served, status: int, body: bytes, kind: type[ModelError]) -> None:
    """Refusals, pages of a proxy, vectors that are missing or none."""
    served.status, served.body = status, body
    with pytest.raises(kind):
        served.embedder().embed(["abc"], timeout_s=30)


def test_a_slow_server_and_one_that_is_away(served: _Served) -> None:
    """The wait is bounded; a refused connection is reported at once."""
    served.takes_s = 1.0
    with pytest.raises(ModelTimeoutError):
        served.embedder().embed(["abc"], timeout_s=0.2)
    with pytest.raises(RuntimeUnreachableError):
        _Served(port=1).embedder().embed(["abc"], timeout_s=5)


def test_the_runtime_file_names_the_server(tmp_path: Path) -> None:
    """`embeddings` beside servers and layers; a name that no server has is a fault of the file."""
    layers = "".join(f"      {layer}: {{server: all, temperature: 0.0}}\n" for layer in ("REFLEX", "NERVES", "MIND", "VOICE", "EYES"))
    server = "{{base_url: http://127.0.0.1:3000{}/v1, model: {}, context_length: 512}}"
    text = f"preset: p\npresets:\n  p:\n    servers:\n      all: {server.format(0, 'm')}\n      vec: {server.format(1, 'e')}\n"
    path = tmp_path / "runtime.yaml"
    path.write_text(f"{text}    layers:\n{layers}    embeddings: vec\n")
    found = load_endpoints(path).embeddings
    assert found is not None and found.server.model == "e"
    path.write_text(f"{text}    layers:\n{layers}    embeddings: nobody\n")
    with pytest.raises(ConfigurationError, match="embeddings: 'nobody': expected one of all, vec"):
        load_endpoints(path)
