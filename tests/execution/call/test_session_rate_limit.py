"""The limits of a live session's summarization calls (DECISIONS 7): waits, deferrals, restarts, and calls that have none."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from pandora_dagster.compression.levels.summarization_config import SummarizationConfig
from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.model_calls import CallSite
from pandora_dagster.errors import DeferredError, RateLimitedError, RuntimeUnreachableError
from pandora_dagster.execution.call.session_rate_limit import MAX_WAIT_S, SessionRateLimit
from pandora_dagster.execution.call_faults import CallFault
from pandora_dagster.stores.user.session_files import LimiterFiles
from tests.execution.conftest import request

SITE = CallSite("tool_results", "anna", "s1")


class Time:
    """A clock that only sleep moves on."""

    def __init__(self) -> None:
        self.now, self.slept = datetime(2026, 1, 4, 14, 30, tzinfo=UTC), list[float]()

    def clock(self) -> datetime:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)

    def passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def rate_limit(tmp_path, time):
    """`rate_limit(**limits)`: over the files of one store, as every process of it opens them."""

    def build(**limits: float) -> SessionRateLimit:
        return SessionRateLimit(LimiterFiles(tmp_path), clock=time.clock, sleep=time.sleep, config=SummarizationConfig(**limits))

    return build


def admitted(rate_limit: SessionRateLimit, site: CallSite = SITE) -> str:
    return asyncio.run(rate_limit.admit(site))


def test_ten_calls_a_minute_then_deferred_with_the_time(rate_limit, time):
    """The eleventh would wait for 60 s, longer than a user should: it is put off and says until when."""
    made = rate_limit()
    assert [admitted(made) for _ in range(10)] == [""] * 10
    assert admitted(made) == "deferred: session s1 may make its next summarization call in 60 s"
    assert time.slept == []


def test_a_short_wait_is_waited(rate_limit, time):
    """With the first call about to leave the window, the next one waits for that and goes."""
    made = rate_limit()
    admitted(made)
    time.passes(60 - MAX_WAIT_S)
    for _ in range(9):
        admitted(made)
    assert admitted(made) == "" and time.slept == [MAX_WAIT_S]


def test_two_hundred_calls_a_session_whatever_the_time(rate_limit, time):
    """The session's own limit never comes back; another session and another user have theirs."""
    made = rate_limit()
    for _ in range(200):
        time.passes(7)
        assert admitted(made) == ""
    time.passes(3_600)
    assert "has made its 200 summarization calls" in admitted(made)
    assert admitted(made, CallSite("tool_results", "anna", "s2")) == admitted(made, CallSite("tool_results", "bob", "s1")) == ""


def test_a_restart_forgets_no_call(rate_limit):
    """A second process of the same store goes on where the first one stood."""
    for _ in range(10):
        admitted(rate_limit())
    assert admitted(rate_limit()).startswith("deferred")


def test_the_servers_429_is_a_pause_that_success_ends(rate_limit, time):
    """2 s after the first, 4 s after the second; after an answer none."""
    made = rate_limit()
    made.record_refusal(SITE)
    assert admitted(made) == "" and time.slept == [2.0]
    made.record_refusal(SITE)
    made.record_success(SITE)
    assert admitted(made) == "" and time.slept == [2.0]


def test_limits_that_cannot_be_kept_defer(rate_limit, tmp_path):
    """A damaged state is no licence: no call is made, and the file is named."""
    made = rate_limit()
    admitted(made)
    next(tmp_path.rglob("limiter.json")).write_text("{")
    assert admitted(made).startswith("deferred: the limits of session s1 cannot be stored: ") and "limiter.json" in admitted(made)


@pytest.fixture
def summarizer(make_recipe):
    return make_recipe(role="session_summarizer")


def test_a_deferred_call_is_no_failure_of_a_turn(rig, summarizer, rate_limit):
    """`call` raises DeferredError, `attempt` gives a fault; the record says why; no intervention, no pack, no answer asked for."""
    made = rig(recipe=summarizer, rate_limit=rate_limit(max_calls_per_session=1))
    assert made.call(site=SITE).passed
    with pytest.raises(DeferredError, match="has made its 1 summarization calls"):
        made.call(site=SITE)
    fault = asyncio.run(made.executor.attempt(request(site=SITE)))
    assert isinstance(fault, CallFault) and fault.deferred
    assert len(made.runtime.packs) == 1 and not made.stores.opened
    assert [r.success for r in made.stores.records] == [True, False, False] and "deferred" in made.stores.records[-1].error
    assert made.stores.records[-1].pack_ref == ""


@pytest.mark.parametrize(
    ("role", "session", "calls"),
    [
        ("planner", "s1", 3),
        ("compressor", "", 3),
        ("compressor", "s1", 1),
        ("digest_builder", "s1", 1),
        ("conversation_summarizer", "s1", 1),
    ],
)
def test_only_what_a_live_session_summarises_is_limited(role, session, calls, rig, make_recipe, rate_limit):
    """A turn's own calls, and those of no session, have no limit."""
    made = rig(recipe=make_recipe(role=role), rate_limit=rate_limit(max_calls_per_session=1))
    for _ in range(3):
        asyncio.run(made.executor.attempt(request(site=CallSite("task_plan", "anna", session))))
    assert len(made.runtime.packs) == calls


def test_every_attempt_counts_and_a_429_is_reported(rig, summarizer, rate_limit, tmp_path, time):
    """A retry is a call at the server too; the pause that it asks for is kept for the next process."""
    made = rig(RateLimitedError("429"), recipe=summarizer, rate_limit=rate_limit())
    asyncio.run(made.executor.attempt(request(site=SITE)))
    state = LimiterFiles(tmp_path).load(UserId("anna"), SessionId("s1"))
    assert state.session_calls == len(made.runtime.packs) == state.errors == 3
    assert time.slept == [2.0, 4.0] and state.backoff_until == time.now.timestamp() + 8


def test_an_attempt_that_met_nobody_is_no_call(rig, summarizer, rate_limit, tmp_path):
    """A server that is away is waited for without using up what a session may ask for."""
    made = rig(RuntimeUnreachableError("refused"), recipe=summarizer, rate_limit=rate_limit())
    asyncio.run(made.executor.attempt(request(site=SITE)))
    assert len(made.runtime.packs) == 5 and LimiterFiles(tmp_path).load(UserId("anna"), SessionId("s1")).session_calls == 1
