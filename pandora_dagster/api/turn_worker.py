"""Runs turns in a thread with an event loop of its own: a client that disconnects does not affect a turn that has started.

Turns of one session run in order, turns of different sessions in parallel. Each is reported to Dagster when it has ended.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from threading import Thread

from pandora_dagster.api.api_errors import ApiError, TurnFailure, TurnHalt
from pandora_dagster.api.client_sessions import ChosenSession, ClientSessions
from pandora_dagster.api.turn_request import ChatAnswer, TurnRequest
from pandora_dagster.app import App
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.defs.turn.turn_run import report_turn
from pandora_dagster.errors import InputError, PandoraError
from pandora_dagster.language.timestamps import format_timestamp
from pandora_dagster.phases.core.phase_report import PhaseReport, TimedReports
from pandora_dagster.phases.flow import turn_flow

MAX_TURNS = 64
"""Turns that run or wait at the same time; a further request is refused."""
_RETRY_AFTER_S = 5
"""Seconds after which a refused client may try again."""
SESSION_WAIT_S = 120.0
"""Seconds that a request waits for the turn before it in its session."""
STOP_TIMEOUT_S = 10.0
"""Seconds that active turns have when the process ends; a turn that is not finished stays open and can be resumed."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TurnStart:
    key: TurnKey
    session: SessionId


@dataclass(frozen=True, slots=True)
class PhaseEnd:
    """A phase is finished."""

    phase: str


@dataclass(frozen=True, slots=True)
class AnswerText:
    text: str


@dataclass(frozen=True, slots=True)
class DraftWithdrawal:
    reason: str


Event = TurnStart | PhaseEnd | AnswerText | DraftWithdrawal | ChatAnswer | TurnHalt | TurnFailure
"""Events of a turn: TurnStart first, ChatAnswer, TurnHalt or TurnFailure last; or TurnFailure alone."""
EventCallback = Callable[[Event], None]
"""Must not raise; may be called from any thread."""


@dataclass(frozen=True, slots=True)
class _Listener:
    emit: EventCallback

    def on_text(self, text: str) -> None:
        self.emit(AnswerText(text))

    def on_withdrawal(self, reason: str) -> None:
        self.emit(DraftWithdrawal(reason))


@dataclass(slots=True)
class _SessionQueue:
    """The lock of a session, and the number of requests that hold it or wait for it; at 0 the queue is removed."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    requests: int = 0


class TurnWorker:
    """Runs turns of one application. `close` ends active turns and waits until they are written."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="turns")
        self._reporter = ThreadPoolExecutor(1, thread_name_prefix="dagster")
        self._sessions = ClientSessions(app)
        self._queues: dict[tuple[UserId, SessionId], _SessionQueue] = {}
        self._active: set[Future[None]] = set()
        self._thread.start()

    def begin(self, request: TurnRequest, emit: EventCallback) -> None:
        """Start a turn and return immediately. Raises ApiError where too many turns are active."""
        if len(self._active) >= MAX_TURNS:
            message = f"{MAX_TURNS} turns are active: expected fewer at the same time"
            raise ApiError(429, message, type="rate_limit_error", headers={"Retry-After": str(_RETRY_AFTER_S)})
        turn = asyncio.run_coroutine_threadsafe(self._run(request, emit), self._loop)
        self._active.add(turn)
        turn.add_done_callback(self._active.discard)

    async def offer_session(self, request: TurnRequest, start: TurnStart, delivered: str) -> None:
        """Let a request that repeats this one and the `delivered` answer go on in its session. A failure is logged: such a request would
        get a new session."""

        async def offer() -> None:
            try:
                self._sessions.offer(request, start.key, start.session, delivered)
            except PandoraError:
                _log.exception("%s: the session cannot be continued without its name", start.key)

        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(offer(), self._loop))

    def close(self) -> None:
        """Wait STOP_TIMEOUT_S for active turns, then cancel them; close the connections of this event loop."""
        asyncio.run_coroutine_threadsafe(self._end_turns(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._reporter.shutdown()

    async def _end_turns(self) -> None:
        turns = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if turns:
            await asyncio.wait(turns, timeout=STOP_TIMEOUT_S)
        for task in turns:
            task.cancel()
        await asyncio.gather(*turns, return_exceptions=True)
        await self._app.runtime.aclose()

    async def _run(self, request: TurnRequest, emit: EventCallback) -> None:
        key: TurnKey | None = None
        chosen: ChosenSession | None = None
        reports = TimedReports()
        stopped: Exception | None = None
        try:
            chosen = self._sessions.choose(request)
            async with self._session_slot(request.user, chosen.id):
                self._import_earlier_messages(request, chosen.id)
                key = self._app.start(request.query, user=request.user, session=chosen.id, mode=request.mode, metadata=request.metadata)
                emit(TurnStart(key, chosen.id))
                await self._run_phases(key, chosen.id, reports, emit)
        except Exception as error:
            stopped = error
            if not isinstance(error, ApiError | InputError):
                _log.exception("%s: the turn ended with an error", key or request.user)
            emit(TurnFailure(error, key))
        except BaseException:
            stopped = ApiError(503, "the server is stopping: expected it to run", type="server_error", code="ending")
            emit(TurnFailure(stopped, key))
            raise
        finally:
            if chosen is not None and not any(report.has_answer for report in reports):
                self._sessions.offer_again(request, key, chosen)
            if key is not None and reports:
                self._report_to_dagster(report_turn, self._app, key, reports, stopped)
                self._delete_expired()

    async def _run_phases(self, key: TurnKey, session: SessionId, reports: TimedReports, emit: EventCallback) -> None:
        """Run every phase; emit the answer as soon as it is saved, before the phases that follow it: decision 16
        (docs/decisions/16-the-answer-comes-first.md)."""

        def on_report(report: PhaseReport) -> None:
            reports.append(report)
            if report.has_answer:
                calls = tuple(call for earlier in reports for call in earlier.calls)
                emit(ChatAnswer(self._app.answer_of(key, report.turn), session, calls))
            elif report.halt and not any(earlier.has_answer for earlier in reports):
                emit(TurnHalt(key, report.halt))
            else:
                emit(PhaseEnd(report.phase))

        await turn_flow.run_turn(key, self._app.with_listener(_Listener(emit)).dependencies, on_report=on_report)

    def _import_earlier_messages(self, request: TurnRequest, session: SessionId) -> None:
        """Import the messages before the first turn of a session as its recorded history, once. Raises ApiError."""
        app = self._app
        record = app.sessions.find(request.user, session)
        has_history = record.state == "complete" if record else bool(app.dependencies.index.rows(request.user, session=session, limit=1))
        if not request.earlier or has_history:
            return
        conversation = {
            "id": session,
            "user_id": request.user,
            "created_at": record.created_at if record else format_timestamp(app.dependencies.clock()),
            "messages": request.earlier,
        }
        report = app.transfer.import_conversations([json.dumps(conversation).encode()], where="messages")
        if report.faults:
            raise ApiError(400, report.faults[0].replace("messages:1: ", "messages: ", 1), param="messages")

    def _delete_expired(self) -> None:
        """Delete expired records after the answer, at most once a day; a failure is logged and does not affect the turn."""
        try:
            self._app.delete_expired()
        except PandoraError as error:
            _log.warning("%s", error.with_hint)

    def _report_to_dagster(self, report: Callable[..., object], *arguments: object) -> None:
        """Report in a thread of its own, one report after the other; a failure is logged and does not affect the turn."""

        def run_report() -> None:
            try:
                report(*arguments)
            except Exception:
                _log.exception("the report to Dagster failed")

        self._reporter.submit(run_report)

    @asynccontextmanager
    async def _session_slot(self, user: UserId, session: SessionId) -> AsyncGenerator[None]:
        """The lock of the session, held while a turn of the session runs, including the phases after its answer."""
        queue = self._queues.setdefault((user, session), _SessionQueue())
        queue.requests += 1
        try:
            try:
                async with asyncio.timeout(SESSION_WAIT_S):
                    await queue.lock.acquire()
            except TimeoutError:
                raise ApiError(
                    409, f"session {session}: the previous turn has not ended within {SESSION_WAIT_S:g} s", code="session_busy"
                ) from None
            try:
                yield
            finally:
                queue.lock.release()
        finally:
            queue.requests -= 1
            if not queue.requests:
                del self._queues[user, session]
