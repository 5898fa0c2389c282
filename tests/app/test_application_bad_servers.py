"""Every way in which a server can be bad, met by a turn: one sentence with layer, endpoint and remedy; and the turn goes on afterwards.

What the classes of these failures are, and the streamed ones, stands in tests/runtime/test_sglang_failures.py and _streaming.py.
"""

import asyncio
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack
from pandora_dagster.execution.call import attempts
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.runtime.sglang.exchange import OnWords
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import load_settings
from tests.runtime.fake_sglang import FakeSglang, drips, error, hangs, resets, response, sends
from tests.runtime.sglang_packs import endpoints

FIRST, SECOND = "query_analysis", "reflection"
ANALYSIS = {
    "resolved_query": "hi",
    "query_type": "general_question",
    "intent": "greeting",
    "entities": [],
    "reference_resolution": {"status": "not_needed"},
}
HTML = b"<html><body><h1>It works!</h1></body></html>"
FULL = json.dumps(error(503, "ServiceUnavailableError", "The request queue is full.")).encode()


class Hasty(SglangRuntime):
    """Waits half a second at most where it is to time out, so that this is no half minute."""

    longest_s = 20.0

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: OnWords | None = None) -> ModelAnswer:
        return await super().complete(pack, timeout_s=min(timeout_s, self.longest_s), on_words=on_words)


def answering(body: Any) -> str:
    """What a good model says in the first phase, and a question back in the second."""
    if "resolved_query" in json.dumps(body.get("response_format", {})):
        return json.dumps(ANALYSIS)
    return json.dumps({"reasoning": "clear", "decision": "PROCEED", "confidence": 0.9})


class Served:
    """A stand-in server on a thread and loop of its own, so that a house can be worked with as a user does."""

    def __init__(self) -> None:
        self.server = FakeSglang(context=32_768, says=answering)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.start()

    def start(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.__aenter__(), self.loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.__aexit__(None, None, None), self.loop).result(10)

    def end(self) -> None:
        self.stop()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0.001)
    made = Served()
    yield made
    made.end()


def opened(root: Path, base_url: str, **options: Any) -> App:
    given = {"context_length": 32_768, "patience_s": 0.4, **options}
    return open_app(load_settings({"PANDORA_ROOT": str(root)}), runtime=Hasty(endpoints(base_url, **given), keys={}))


BAD: dict[str, tuple[Any, str, str, str]] = {
    "401": (sends(response(401, b'{"error": "Unauthorized"}')), "config_error", "status 401: Unauthorized", "api_key_env"),
    "404": (sends(response(404, b'{"detail": "Not Found"}')), "config_error", "status 404: Not Found", "Correct base_url"),
    "500 with HTML": (sends(response(500, HTML, kind="text/html")), "runtime_unreachable", "status 500: expected", "server's log"),
    "503 for ever": (sends(response(503, FULL)), "runtime_unreachable", "no free slot within 0.4 s; last reply: status 503", "patience_s"),
    "429 for ever": (sends(response(429, b"{}")), "runtime_unreachable", "status 429", "server's log"),
    "another web server": (sends(response(200, HTML, kind="text/html")), "runtime_unreachable", "that are no completion", "base_url"),
    "another protocol": (sends(b"220 mail.example.org ESMTP\r\n"), "runtime_unreachable", "the exchange failed", "base_url"),
    "a body that never ends": (drips(b"x" * 500_000, every_s=0), "runtime_unreachable", "over 8388608 bytes", "base_url"),
    "100 MB": (sends(response(200, b'{"choices": "' + b"x" * 10**8 + b'"}')), "runtime_unreachable", "over 8388608 bytes", "base_url"),
    "10 bytes a second": (drips(b" ", every_s=0.1), "timeout", "no complete answer within 0.5 s", "timeout_ms"),
    "silence": (hangs(), "timeout", "no complete answer within 0.5 s", "timeout_ms"),
    "broken off": (resets(), "runtime_unreachable", "expected a reachable model server", "server's log"),
    "half an answer": (sends(response(200, b'{"cho', length=99)), "runtime_unreachable", "the exchange failed", "server's log"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_turn_halts_with_one_sentence_and_goes_on_afterwards(case: str, served: Served, tmp_path: Path) -> None:
    """The intervention names layer, endpoint, what was there and what to do; mended, the phase runs, and none before it again."""
    misbehaves, kind, expected, remedy = BAD[case]
    server = served.server
    app = opened(tmp_path, server.base_url)
    key = app.start("hi", user="ann")  # the server was well when it was asked for its models
    app.runtime.longest_s = 0.5 if kind == "timeout" else 20.0
    server.misbehaves = misbehaves
    _halts(app, key, kind, expected, remedy, server.base_url)
    server.misbehaves = None
    _goes_on(tmp_path, server.base_url, key)
    app.close()


def test_a_refused_connection(served: Served, tmp_path: Path) -> None:
    """Nothing listens; when something does the turn goes on."""
    app = opened(tmp_path, served.server.base_url)
    key = app.start("hi", user="ann")
    served.stop()
    _halts(app, key, "runtime_unreachable", "refused the connection", "Start the server", served.server.base_url)
    served.start()
    _goes_on(tmp_path, served.server.base_url, key)
    app.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that nobody has signed but itself, with its key."""
    path = tmp_path_factory.mktemp("tls") / "own.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*command, "-keyout", path, "-out", f"{path}.crt"], check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.mark.parametrize("speaks", ["plain HTTP", "TLS with a certificate of its own"])
def test_tls_that_fails(speaks: str, certificate: Path, served: Served, tmp_path: Path) -> None:
    """https where the server speaks http, and https with a certificate that nobody vouches for."""
    context = None
    if speaks != "plain HTTP":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)

    async def answers(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def listening() -> asyncio.Server:
        return await asyncio.start_server(answers, "127.0.0.1", 0, ssl=context)

    other = asyncio.run_coroutine_threadsafe(listening(), served.loop).result(10)
    url = f"https://127.0.0.1:{other.sockets[0].getsockname()[1]}/v1"
    app = opened(tmp_path, url)
    key = app.start("hi", user="ann")
    _halts(app, key, "runtime_unreachable", "TLS failed", "Check http or https", url)
    app.close()
    served.loop.call_soon_threadsafe(other.close)
    _goes_on(tmp_path, served.server.base_url, key)


@pytest.mark.parametrize(("reason", "expected"), [("tired", "finish_reason 'tired': expected 'stop'"), (None, "finish_reason 'None'")])
def test_an_answer_that_ends_for_an_unknown_reason(reason: str | None, expected: str, served: Served, tmp_path: Path) -> None:
    """It is asked for again, as a bad answer is, and not believed."""
    app = opened(tmp_path, served.server.base_url)
    key = app.start("hi", user="ann")
    served.server.finish_reason = reason
    _halts(app, key, "schema_violation", expected, "", served.server.base_url)
    assert len(served.server.requests) == 3
    served.server.finish_reason = "stop"
    _goes_on(tmp_path, served.server.base_url, key)
    app.close()


def test_an_answer_without_usage(served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is an answer; the turn goes on, and that its tokens are unknown is reported once."""
    served.server.reports_usage = False
    app = opened(tmp_path, served.server.base_url)
    key = app.start("hi", user="ann")
    reports = _run(app, key)
    assert reports[1].phase == FIRST and reports[1].halt is None and reports[1].calls[0].used_tokens > 0
    assert caplog.text.count("answers without usage") == 1
    app.close()


def test_a_context_smaller_than_the_recipes_budget(served: Served, tmp_path: Path) -> None:
    """The input shrinks where that is enough; where not even the fixed parts fit, the HALT says what was missing and where."""
    served.server.context = 1_024
    app = opened(tmp_path, served.server.base_url, context_length=1_024)
    key = app.start("hi", user="ann")
    reports = _run(app, key)
    assert reports[1].phase == FIRST and reports[1].halt is None
    app.close()
    small = opened(tmp_path, served.server.base_url, context_length=512)
    other = small.start("hi", user="ann")
    halt = _run(small, other)[-1].halt
    assert halt and halt.type == "budget_exceeded" and "(REFLEX serves 512 tokens, the budget is 1500): expected" in halt.message
    assert "raise context_length in runtime.yaml" in halt.hint
    small.close()


def _run(app: App, key: Any) -> list[PhaseReport]:
    reports: list[PhaseReport] = []
    app.run_turn(key, on_report=reports.append)
    return reports


def _halts(app: App, key: Any, kind: str, expected: str, remedy: str, base_url: str) -> None:
    halt = _run(app, key)[-1].halt
    assert halt and (halt.type, halt.phase) == (kind, FIRST), halt
    assert (
        f"REFLEX at {base_url}: " in halt.message and expected in halt.message and "expected" in halt.message and "\n" not in halt.message
    )
    assert remedy in halt.hint and app.turns.manifest(key).state == "halted"
    (record,) = [json.loads(line) for line in (app.folder(key) / "calls.jsonl").read_text().splitlines()]
    assert record["success"] is False


def _goes_on(root: Path, base_url: str, key: Any) -> None:
    """As `pandora resume` does, in a process of its own."""
    app = opened(root, base_url)
    reports = _run(app, key)
    assert [r.phase for r in reports][:2] == [FIRST, SECOND] and reports[0].halt is None
    app.close()
