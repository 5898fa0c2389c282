"""Turns behind the door, with a runtime that says what a test tells it to say."""

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from pandora_dagster.api import answer_stream as streams
from pandora_dagster.api import turn_worker
from pandora_dagster.api.answer_delivery import AnswerDelivery
from pandora_dagster.api.answer_stream import KEEP_ALIVE_S, EventQueue, answer_stream
from pandora_dagster.api.api_errors import TurnFailure, TurnHalt
from pandora_dagster.api.chat_format import ChatEvents
from pandora_dagster.api.turn_request import ChatAnswer, TurnRequest
from pandora_dagster.api.turn_worker import AnswerText, DraftWithdrawal, Event, TurnStart, TurnWorker
from pandora_dagster.contracts.ids import TurnKey, session_id, user_id
from pandora_dagster.contracts.user.conversations import Continuation
from pandora_dagster.defs.instance import open_instance
from tests.phases.rig import APPROVE, CLARIFY, Rig, command, open_rig, plan, tool, verdict

STARTED = TurnStart(TurnKey(user_id("anna"), 1), session_id("s1"))
LAST = (ChatAnswer, TurnHalt, TurnFailure)


@pytest.fixture
def rig(tmp_path: Any) -> Iterator[Rig]:
    made = open_rig(tmp_path / "store")
    yield made
    made.app.close()


def asked(query: str = "which chair?", *, user: str = "anna", session: str = "s1", earlier: tuple[Any, ...] = ()) -> TurnRequest:
    return TurnRequest(query, user_id(user), session_id(session), "chat", "pandora", earlier)


class Heard:
    """What was reported, from whatever thread; `wait` until the last of it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._ended = threading.Event()

    def send(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, LAST):
            self._ended.set()

    def wait(self) -> Event:
        assert self._ended.wait(30), self.events
        return next(event for event in self.events if isinstance(event, LAST))


def test_a_turn_deletes_the_places_that_no_chat_went_on_from(rig: Rig) -> None:
    """Those older than PANDORA_KEEP_PACKS_DAYS, once a day; the place of this turn stays."""
    user, place = user_id("anna"), Continuation(session_id="s0", turn_id="turn_000001")
    for conversation in ("aa" * 32, "bb" * 32):
        rig.app.continuations.offer(user, conversation, place)
    (old,) = (rig.app.settings.root / "users" / "anna" / "continuations" / "aa").iterdir()
    os.utime(old, times=(time.time() - 91 * 86_400,) * 2)
    rig.say(synthesizer=["The answer"], validator=[APPROVE])
    running, heard = TurnWorker(rig.app), Heard()
    running.begin(asked(), heard.send)
    heard.wait()
    running.close()
    assert not old.exists() and list(rig.app.continuations.claim(user, "bb" * 32)) == [place]


def test_a_replaced_draft_is_reported_in_order(rig: Rig) -> None:
    """Words, why they are none, words, the answer; as events of a stream they are parted, never glued."""
    rig.say(synthesizer=["The first", "The second one"], validator=[verdict("REVISE", "name the price"), APPROVE])
    running, heard = TurnWorker(rig.app), Heard()
    running.begin(asked(), heard.send)
    report = heard.wait()
    running.close()
    assert isinstance(report, ChatAnswer) and report.answer.response == "The second one"
    spoken = [e for e in heard.events if isinstance(e, AnswerText | DraftWithdrawal)]
    assert spoken == [
        AnswerText("The"),
        AnswerText(" first"),
        DraftWithdrawal("name the price"),
        AnswerText("The"),
        AnswerText(" second"),
        AnswerText(" one"),
    ]
    content = "".join(asyncio.run(streamed(heard.events)))
    assert content == "The first\n\n---\n\n*The draft above is withdrawn: name the price*\n\nThe second one"


def stream_of(events: EventQueue, first: Event | None = STARTED) -> AsyncGenerator[str]:
    """The stream of a turn, with a tokenizer that counts words."""

    async def delivered(start: TurnStart, text: str) -> None:
        """Nothing follows."""

    return answer_stream(
        events,
        first,
        AnswerDelivery(asked().limits, lambda text: len(text.split())),
        lambda start: ChatEvents(start.key, asked(), 0),
        delivered,
    )


async def streamed(events: list[Event]) -> list[str]:
    """The contents of the chunks that these events become."""
    import json

    following = EventQueue()
    for event in events:
        following.put(event)
    lines = [part async for part in stream_of(following)]
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    return [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if chunk.get("choices")]


def test_a_silent_turn_is_heard_of(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing is reported, a comment keeps the connection."""
    assert KEEP_ALIVE_S < 30
    monkeypatch.setattr(streams, "KEEP_ALIVE_S", 0.02)

    async def parts(first: Event | None) -> list[str]:
        stream = stream_of(EventQueue(), first)
        heard = [await anext(stream), await anext(stream), await anext(stream)]
        await stream.aclose()
        return heard

    assert asyncio.run(parts(STARTED))[1:] == [": under way\n\n"] * 2
    assert asyncio.run(parts(None)) == [": queued\n\n"] * 3


def test_a_question_back_is_the_answer(rig: Rig) -> None:
    rig.say(reflection=CLARIFY)
    running, heard = TurnWorker(rig.app), Heard()
    running.begin(asked(), heard.send)
    report = heard.wait()
    running.close()
    assert isinstance(report, ChatAnswer) and report.answer.response == "Which chair do you mean?" and report.answer.state == "clarify"
    assert "".join(asyncio.run(streamed(heard.events))) == "Which chair do you mean?"


def test_a_call_that_waits_for_approval_is_a_conflict(rig: Rig) -> None:
    """409 with the command that approves it: no fault of the server, and no retry of the client helps."""
    call = tool("memory.create", key="hotel", value="Casa Azul", kind="preference")
    rig.say(planner=plan("coordinator"), executor=command(), coordinator=call)
    running, heard = TurnWorker(rig.app), Heard()
    running.begin(replace(asked(), mode="code"), heard.send)
    halt = heard.wait()
    running.close()
    assert isinstance(halt, TurnHalt)
    report = halt.api_error()
    assert (report.status, report.body["error"]["code"]) == (409, "needs_approval")
    assert f"pandora interventions resolve {halt.intervention.id} --approve" in report.body["error"]["message"]


def test_an_error_inside_is_reported_without_its_words(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes to the log; the client learns that it happened, and of which turn."""
    rig.say(planner=ZeroDivisionError("secret words"))  # type: ignore[arg-type]
    running, heard = TurnWorker(rig.app), Heard()
    running.begin(asked(), heard.send)
    failed = heard.wait()
    running.close()
    assert isinstance(failed, TurnFailure) and "secret" not in str(failed.api_error().body) and failed.api_error().status == 500
    assert failed.api_error().headers["X-Pandora-Turn"] == "anna:turn_000001"


def test_a_session_that_is_busy_for_too_long_says_so(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another session does not wait for it."""
    monkeypatch.setattr(turn_worker, "SESSION_WAIT_S", 0.1)
    going_on = threading.Event()
    slow(rig, going_on)
    running, first, second, other = TurnWorker(rig.app), Heard(), Heard(), Heard()
    running.begin(asked(), first.send)
    running.begin(asked(), second.send)
    running.begin(asked(session="s2"), other.send)
    refused = second.wait()
    assert isinstance(refused, TurnFailure) and refused.api_error().status == 409 and "session s1" in str(refused.api_error())
    assert any(isinstance(event, TurnStart) for event in other.events)
    going_on.set()
    assert isinstance(first.wait(), ChatAnswer) and isinstance(other.wait(), ChatAnswer)
    running.close()


def slow(rig: Rig, going_on: threading.Event) -> None:
    """The synthesizer waits, without keeping its loop."""
    complete = rig.runtime.complete

    async def waits(pack: Any, **how: Any) -> Any:
        while pack.role == "synthesizer" and not going_on.is_set():  # noqa: ASYNC110 - set from another thread
            await asyncio.sleep(0.01)
        return await complete(pack, **how)

    rig.runtime.complete = waits  # type: ignore[method-assign]


def test_a_server_that_ends_leaves_a_turn_that_goes_on(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is under way gets a moment, then stays open; resumed, it goes on where it stopped; Dagster knows what had finished."""
    monkeypatch.setattr(turn_worker, "STOP_TIMEOUT_S", 0.1)
    going_on = threading.Event()
    slow(rig, going_on)
    running, heard = TurnWorker(rig.app), Heard()
    running.begin(asked(), heard.send)
    while "synthesizer" not in rig.runtime.calls() and not any(getattr(e, "phase", "") == "tool_results" for e in heard.events):
        time.sleep(0.01)
    running.close()
    ended = heard.wait()
    assert isinstance(ended, TurnFailure) and ended.key and ended.api_error().status == 503
    assert rig.turn(ended.key).manifest.state == "open" and rig.app.pending_phases(ended.key)[0] == "response"
    going_on.set()
    rig.run(ended.key)
    assert rig.turn(ended.key).manifest.state == "saved" and rig.runtime.calls()["planner"] == 1
    with open_instance(rig.app.settings) as instance:
        assert str(ended.key) in instance.get_dynamic_partitions("turns")


def test_an_import_that_was_cut_off_goes_on(rig: Rig) -> None:
    """Earlier messages whose import a crash ended are taken in with the session's next request, once."""
    earlier = ({"role": "user", "content": "The chair is red."}, {"role": "assistant", "content": "Noted."})
    running, heard = TurnWorker(rig.app), Heard()
    running.begin(asked(earlier=earlier), heard.send)
    heard.wait()
    record = rig.app.sessions.find(user_id("anna"), session_id("s1"))
    assert record
    rig.app.sessions.save(record.model_copy(update={"state": "importing"}))
    again = Heard()
    running.begin(asked(earlier=earlier), again.send)
    assert isinstance(again.wait(), ChatAnswer)
    running.close()
    assert [str(key) for key in rig.app.turns.keys(user_id("anna"))] == ["anna:turn_000001", "anna:turn_000002", "anna:turn_000003"]
