"""Answers of a real server on their way to the user: through a turn, through the API, and when one end goes away."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from pandora_dagster.contracts.ids import user_id
from tests.api.server_process import Api, started
from tests.faults.processes import environment
from tests.sglang.real_servers import RealSglang, until
from tests.sglang.real_voice import CODE, PROGRAM, WORDS, opened

QUESTION: Any = [{"role": "user", "content": "Which chair?"}]


class Listener:
    """When it was reported what."""

    def __init__(self) -> None:
        self.words_at: list[tuple[float, str]] = []

    def on_text(self, text: str) -> None:
        self.words_at.append((time.monotonic(), text))

    def on_withdrawal(self, reason: str) -> None:
        raise AssertionError(reason)


@pytest.fixture
def api(server: RealSglang, tmp_path: Path) -> Iterator[Api]:
    with started(tmp_path / "store", env={"REAL_VOICE": server.base_url}, code=CODE) as running:
        yield running


def manifest(api: Api, user: str) -> dict[str, Any]:
    return json.loads((api.root / f"users/{user}/turns/turn_000001/turn.json").read_text())


def streamed(api: Api, user: str) -> Any:
    client = api.client(user=user, session="s1")
    return client.chat.completions.create(model="pandora", messages=QUESTION, stream=True)


def test_an_ask_shows_words_as_the_server_has_them(server: RealSglang, tmp_path: Path) -> None:
    """In many pieces, one after the other, before the turn goes on; together they are the answer."""
    app, listener = opened(tmp_path / "store", server.base_url), Listener()
    try:
        key = app.start("Which chair?", user="anna", session="s1")
        ended: dict[str, float] = {}
        app.with_listener(listener).run_turn(key, on_report=lambda report: ended.update({report.phase: time.monotonic()}))
        answer = app.answer_of(key).response
    finally:
        app.close()
    times = [at for at, _ in listener.words_at]
    assert "".join(text for _, text in listener.words_at) == answer and len(json.loads(answer)) == WORDS
    assert len(times) > 50 and times[-1] <= ended["response"] and times[0] - ended["tool_results"] < (times[-1] - times[0])


def test_a_talk_shows_words_as_the_server_has_them(server: RealSglang, tmp_path: Path) -> None:
    """`pandora chat`, typed to and read from outside: the answer comes in many pieces, and is the stored one."""
    root, texts = tmp_path / "store", list[tuple[float, bytes]]()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "chat", "--user", "eve", "--session", "s1"],
        env=environment(root) | {"REAL_VOICE": server.base_url},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
    ) as talk:
        assert talk.stdin and talk.stdout
        talk.stdin.write(b"Which chair?\n\n")
        talk.stdin.flush()
        while piece := os.read(talk.stdout.fileno(), 65_536):
            texts.append((time.monotonic(), piece))
        assert talk.wait(60) == 0
    answer = b"".join(piece for _, piece in texts).decode().strip()
    assert len(json.loads(answer)) == WORDS and len(texts) > 50 and texts[-1][0] - texts[0][0] > 0.05
    assert answer == (root / "users/eve/turns/turn_000001/response.md").read_text().strip()


def test_a_chat_client_sees_them_too(api: Api) -> None:
    """Chunk by chunk over both sockets."""
    chunks = [(time.monotonic(), c.choices[0].delta.content or "") for c in streamed(api, "anna") if c.choices]
    times = [at for at, text in chunks if text]
    assert "".join(text for _, text in chunks) == (api.root / "users/anna/turns/turn_000001/response.md").read_text().strip()
    assert len(times) > 50 and times[-1] - times[0] > 0.05
    assert manifest(api, "anna")["state"] == "saved"


def test_a_client_that_leaves_in_the_middle_takes_nothing_from_the_turn(api: Api, server: RealSglang) -> None:
    """The server's words are still taken, and the turn is saved and summarised."""
    stream = streamed(api, "bea")
    next(c for c in stream if c.choices and c.choices[0].delta.content)
    stream.close()
    until(lambda: any(p["phase"] == "turn_summary" for p in manifest(api, "bea")["phases"]))
    assert manifest(api, "bea")["state"] == "saved" and server.running() == 0


def test_a_server_that_dies_in_the_middle_of_a_word(api: Api, server: RealSglang) -> None:
    """What was shown is marked as withdrawn, then comes the HALT with its intervention; when the server is back, the turn goes on."""
    shown = ""
    with pytest.raises(openai.APIError, match="HALT at response") as halted:
        for chunk in streamed(api, "cat"):
            shown += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            if "chair" in shown and server.process and server.process.poll() is None:
                server.kill()
    server.start().ready()
    assert "a chair" in shown and shown.rstrip().endswith("*") and "The draft above is withdrawn: " in shown
    body: Any = halted.value.body
    assert body["code"] == "runtime_unreachable" and body["intervention_id"].startswith("int_")
    assert manifest(api, "cat")["state"] == "halted"
    api.stop()
    app = opened(api.root, server.base_url)
    try:
        key = next(iter(app.turns.keys(user_id("cat"))))
        app.run_turn(key, on_report=lambda _: None)
        assert app.turns.manifest(key).state == "saved" and len(json.loads(app.answer_of(key).response)) == WORDS
    finally:
        app.close()
