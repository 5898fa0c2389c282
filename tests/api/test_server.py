"""`pandora api` as a process, on the embedded runtime, with the openai client of whoever uses it."""

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import openai
import pytest

from pandora_dagster.api.routes import MAX_BODY_BYTES
from pandora_dagster.cli.program import run
from pandora_dagster.defs.instance import open_instance
from pandora_dagster.settings import load_settings
from tests.api.server_process import Api, started, turns_on_disk
from tests.faults.processes import PANDORA

EARLIER = [
    {"role": "system", "content": "You help at the workshop."},
    {"role": "user", "content": "We ordered the oak desk from Nordhaus for $ 742."},
    {"role": "assistant", "content": "Noted: the oak desk, $ 742."},
]
QUESTION = {"role": "user", "content": "What did the oak desk from Nordhaus cost?"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with started(tmp_path_factory.mktemp("api") / "store") as running:
        yield running


def test_a_chat_client_gets_an_answer_from_what_it_said_before(api: Api) -> None:
    """A session that begins with earlier messages has them as its history; the answer cites them, and the turn lies in the store."""
    client = api.client(user="ann", session="s-1")
    got = client.chat.completions.with_raw_response.create(model="pandora", messages=[*EARLIER, QUESTION])
    answer = got.parse()
    choice, usage = answer.choices[0], answer.usage
    assert choice.finish_reason == "stop" and "$ 742" in choice.message.content and "[1] turn_000001" in choice.message.content
    assert usage and usage.prompt_tokens > 100 and usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert got.headers["X-Pandora-Turn"] == "ann:turn_000002" and answer.model_extra["pandora"]["turn"] == "ann:turn_000002"
    assert answer.model_extra["pandora"]["citations"] == [{"label": "1", "turn_id": "turn_000001"}]
    assert turns_on_disk(api.root, "ann") == ["turn_000001", "turn_000002"]
    record = (api.root / "users/ann/turns/turn_000001/messages.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in record] == EARLIER[1:]


def test_a_streamed_answer_is_the_same_text(api: Api) -> None:
    """Chunk by chunk, with usage where it is asked for; a session that is known keeps its own memory, so nothing is imported again."""
    client = api.client(user="bea", session="s-1")
    whole = client.chat.completions.create(model="pandora", messages=[*EARLIER, QUESTION]).choices[0].message.content
    assert whole
    stream = client.chat.completions.create(
        model="pandora",
        messages=[*EARLIER, QUESTION, {"role": "assistant", "content": whole}, {"role": "user", "content": "Which desk did we order?"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert "oak desk" in text and "withdrawn" not in text and "] turn_000001" in text
    assert chunks[-1].usage and chunks[-1].usage.prompt_tokens > 100 and not chunks[-1].choices
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert turns_on_disk(api.root, "bea") == ["turn_000001", "turn_000002", "turn_000003"]
    kept = (api.root / "users/bea/turns/turn_000003/response.md").read_text().strip()
    assert text.startswith(kept) and len({c.id for c in chunks}) == 1


def test_phases_keep_the_connection_alive(api: Api) -> None:
    """As comments, which clients pass over: the user sees nothing of them."""
    body = {"model": "pandora", "messages": [QUESTION], "stream": True}
    with api.http() as client, client.stream("POST", "/v1/chat/completions", json=body, headers={"X-Pandora-User": "cat"}) as answer:
        lines = [line for line in answer.iter_lines() if line]
    assert answer.headers["content-type"].startswith("text/event-stream") and answer.headers["X-Pandora-Turn"] == "cat:turn_000001"
    comments = [line for line in lines if line.startswith(":")]
    assert ": reflection finished" in comments and lines[-1] == "data: [DONE]"
    assert all(line.startswith((":", "data: ")) for line in lines)


def test_models_and_health(api: Api) -> None:
    assert [model.id for model in api.client().models.list()] == ["pandora", "pandora-code"]
    with api.http() as client:
        assert client.get("/health").json() == {"status": "ok"}
        assert client.get("/health", headers={"Host": "evil.example"}).status_code == 403
        assert client.get("/v1/models/pandora").json()["id"] == "pandora"
        off = client.post("/v1/embeddings", json={"model": "x", "input": "hello"})
        assert off.status_code == 501 and "PANDORA_EMBEDDINGS" in off.json()["error"]["message"]
        lost = client.get("/v1/audio")
        assert lost.status_code == 404 and lost.json()["error"]["code"] == "unknown_url"
        assert client.get("/v1/chat/completions").status_code == 405


def test_a_wrong_request_is_reported_in_the_clients_own_terms(api: Api) -> None:
    """OpenAI's client raises its own errors for them, and no turn begins."""
    client = api.client(user="dan")
    with pytest.raises(openai.NotFoundError, match="expected one of pandora"):
        client.chat.completions.create(model="gpt-9", messages=[QUESTION])
    with pytest.raises(openai.BadRequestError, match="the last one has role 'assistant'"):
        client.chat.completions.create(model="pandora", messages=EARLIER)
    with pytest.raises(openai.BadRequestError, match="role"):
        client.chat.completions.create(model="pandora", messages=[{"role": "wizard", "content": "x"}, QUESTION])  # type: ignore[list-item]
    assert turns_on_disk(api.root, "dan") == []


def test_a_body_without_end_is_cut_off(api: Api) -> None:
    """Whether or not it says how long it is."""

    def endless() -> Iterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 65_536 + 10):
            yield b" " * 65_536

    with api.http(headers={"Content-Type": "application/json"}) as client:
        with suppress(httpx.TransportError):  # it may hang up before it is asked what it says
            assert client.post("/v1/chat/completions", content=endless()).status_code == 413
        assert client.get("/health").status_code == 200


def test_requests_of_one_session_run_one_after_the_other(api: Api) -> None:
    """Both are answered, and the second one's turn begins when the first one's has ended."""
    answers: list[str] = []

    def ask() -> None:
        client = api.client(user="eve", session="s-1")
        answers.append(client.chat.completions.create(model="pandora", messages=[QUESTION]).id)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    manifests = [json.loads((api.root / f"users/eve/turns/turn_{n:06d}/turn.json").read_text()) for n in (1, 2, 3)]
    assert len(set(answers)) == 3 and [m["state"] for m in manifests] == ["saved"] * 3
    assert manifests[0]["last_activity"] <= manifests[1]["created_at"] <= manifests[1]["last_activity"] <= manifests[2]["created_at"]


def test_a_client_that_goes_away_leaves_a_whole_turn(api: Api) -> None:
    """The turn goes on to its end."""
    body = {"model": "pandora", "messages": [QUESTION], "stream": True}
    with api.http() as client, client.stream("POST", "/v1/chat/completions", json=body, headers={"X-Pandora-User": "fay"}) as answer:
        next(answer.iter_lines())
    path = api.root / "users/fay/turns/turn_000001/turn.json"
    deadline = time.monotonic() + 60
    while (left := json.loads(path.read_text())["state"]) != "saved":
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_a_halt_names_its_intervention_and_nobody_tries_again(tmp_path: Path) -> None:
    """Its status fits, the client's own retries do not begin other turns; in a stream it is an event. Dagster has every turn."""
    root = tmp_path / "store"
    root.mkdir()
    (root / "runtime.yaml").write_text(NOBODY)
    with started(root, env={"PANDORA_RUNTIME": "sglang"}) as api:
        client = api.client(user="ann", session="s-1")
        with pytest.raises(openai.InternalServerError) as halted:
            client.chat.completions.create(model="pandora", messages=[QUESTION])
        report = halted.value.response.json()["error"]
        assert (halted.value.status_code, report["type"], report["code"]) == (503, "halted", "runtime_unreachable")
        assert report["intervention_id"].startswith("int_") and report["turn"] == "ann:turn_000001"
        with pytest.raises(openai.APIError, match="HALT at query_analysis"):
            list(client.chat.completions.create(model="pandora", messages=[QUESTION], stream=True))
        assert turns_on_disk(root, "ann") == ["turn_000001", "turn_000002"]
        code, record = api.stop()
    assert code == 0 and "Traceback" not in record, record
    with open_instance(load_settings({"PANDORA_ROOT": str(root)})) as instance:
        assert {run.tags["pandora/turn"]: run.status.value for run in instance.get_runs()} == {
            "turn_000001": "FAILURE",
            "turn_000002": "FAILURE",
        }


NOBODY = """\
preset: nobody
presets:
  nobody:
    servers: {gone: {base_url: "http://127.0.0.1:9/v1", model: tiny, context_length: 32768}}
    layers:
""" + "".join(f"      {layer}: {{server: gone, temperature: 0.5}}\n" for layer in ("REFLEX", "NERVES", "MIND", "VOICE", "EYES"))


def test_turns_are_on_dagsters_pages(tmp_path: Path) -> None:
    """Every phase is materialised there as if it had run there, in one run; SIGTERM ends the server cleanly."""
    root = tmp_path / "store"
    with started(root) as api:
        api.client(user="ann", session="s-1").chat.completions.create(model="pandora", messages=[*EARLIER, QUESTION])
        code, record = api.stop()
    assert code == 0 and "Traceback" not in record, record
    with open_instance(load_settings({"PANDORA_ROOT": str(root)})) as instance:
        assert instance.get_dynamic_partitions("turns") == ["ann:turn_000002"], "the earlier messages are imported: no phase ran for them"
        (run,) = instance.get_runs()
        assert run.is_success and run.tags["pandora/turn"] == "turn_000002"
        for asset in ("response", "saved_turn", "turn_summary"):
            from dagster import AssetKey

            event = instance.get_latest_materialization_event(AssetKey(asset))
            assert event and event.asset_materialization and event.asset_materialization.partition == "ann:turn_000002"


def test_a_key_is_asked_for_and_never_said(tmp_path: Path) -> None:
    root, key = tmp_path / "store", "pk-very-s3cret"
    with started(root, env={"PANDORA_API_KEY": key}) as api:
        with pytest.raises(openai.AuthenticationError):
            api.client(key="wrong").models.list()
        assert [model.id for model in api.client(key=key).models.list()] == ["pandora", "pandora-code"]
        code, record = api.stop()
    assert code == 0 and key not in record and "with a key" in record


@pytest.mark.parametrize(
    ("options", "report"), [(("--host", "0.0.0.0"), "PANDORA_API_KEY is not set"), (("--port", "{taken}"), "expected a free address")]
)
def test_an_address_that_cannot_serve_is_reported_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: tuple[str, str], report: str
) -> None:
    """One sentence and exit code 2, in this process: nothing is served."""
    monkeypatch.delenv("PANDORA_API_KEY", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        value = options[1].format(taken=taken.getsockname()[1])
        monkeypatch.setattr(sys, "argv", ["pandora", "--root", str(tmp_path / "store"), "api", options[0], value])
        with pytest.raises(SystemExit) as ended:
            run()
    assert ended.value.code == 2 and report in capsys.readouterr().err


def test_a_system_without_a_socket_for_both_protocols_is_reported_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An IPv6 address is bound alone there; one that is taken is an error of the port."""
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
        port = str(taken.getsockname()[1])
        monkeypatch.setattr(sys, "argv", ["pandora", "--root", str(tmp_path / "store"), "api", "--host", "::1", "--port", port])
        with pytest.raises(SystemExit) as ended:
            run()
    assert ended.value.code == 2 and "expected a free address" in capsys.readouterr().err


def test_two_chats_that_open_alike_are_two_sessions(api: Api) -> None:
    """Without a header, interleaved, with the same first answer: two sessions of two turns, and nothing is imported.

    Which of the two a client goes on in is open while both have the same words.
    """
    client, talks = api.client(user="gus"), ([QUESTION], [QUESTION])
    sessions: list[list[str]] = [[], []]
    for follow_up in ("Which desk did we order?", "Who made the desk?"):
        for talk, seen in zip(talks, sessions, strict=True):
            got = client.chat.completions.create(model="pandora", messages=talk)
            seen.append(got.model_extra["pandora"]["session"])
            talk += [{"role": "assistant", "content": got.choices[0].message.content}, {"role": "user", "content": follow_up}]
    (first, later), (other_first, other_later) = sessions
    assert first != other_first and later != other_later and {later, other_later} == {first, other_first}
    assert len(turns_on_disk(api.root, "gus")) == 4


def test_the_user_field_keeps_stores_apart(api: Api) -> None:
    client = api.client()
    got = client.chat.completions.create(model="pandora", messages=[*EARLIER, QUESTION], user="hal", metadata={"ticket": "4711"})
    other = client.chat.completions.create(model="pandora", messages=[QUESTION], user="ida")
    assert "$ 742" in (got.choices[0].message.content or "") and "$ 742" not in (other.choices[0].message.content or "")
    assert json.loads((api.root / "users/hal/turns/turn_000002/turn.json").read_text())["metadata"] == {"ticket": "4711"}


def test_a_response_continues_the_one_that_it_names(api: Api) -> None:
    """With the official client, whole and streamed; another user's response is unknown."""
    client = api.client(user="jan")
    first = client.responses.create(model="pandora", input="We ordered the oak desk from Nordhaus for $ 742.")
    events = list(client.responses.create(model="pandora", input=QUESTION["content"], previous_response_id=first.id, stream=True))
    last = events[-1]
    assert last.type == "response.completed" and "$ 742" in last.response.output_text
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == last.response.output_text
    assert [e.sequence_number for e in events] == list(range(len(events)))
    with pytest.raises(openai.NotFoundError):
        api.client(user="kim").responses.create(model="pandora", input="hello", previous_response_id=first.id)


def test_half_a_request_is_closed(tmp_path: Path) -> None:
    """Headers and body each have a time limit; a whole request is answered meanwhile."""
    code = "from pandora_dagster.api import connection_limits as c; c.HEAD_TIMEOUT_S = c.BODY_TIMEOUT_S = 0.5\n" + PANDORA
    with started(tmp_path / "store", code=code) as api:
        for half in (
            b"",
            b"POST /v1/chat",
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
        ):
            with socket.create_connection(("127.0.0.1", api.port), timeout=10) as late:
                late.sendall(half)
                assert b" 408 " in late.recv(4096)
        with api.http() as client:
            assert client.get("/health").status_code == 200


def test_a_connection_too_many_is_refused(tmp_path: Path) -> None:
    """Those before it stay open and are answered."""
    code = "from pandora_dagster.api import connection_limits as c; c.MAX_CONNECTIONS = 3\n" + PANDORA
    with started(tmp_path / "store", code=code) as api, ExitStack() as clients:
        open_ones = [clients.enter_context(socket.create_connection(("127.0.0.1", api.port), timeout=10)) for _ in range(3)]
        with socket.create_connection(("127.0.0.1", api.port), timeout=10) as extra:
            answer = extra.recv(4096)
            assert b" 503 " in answer and b"too_many_connections" in answer
        open_ones[0].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in open_ones[0].recv(4096)
