"""Turns on an event loop of their own, in a thread of their own: what a client does takes nothing from a turn that has begun.

Turns of a session run one after the other, turns of different sessions beside each other. Each is told to Dagster once it has ended.
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
from pandora_dagster.api.chat_request import ChatRequest
from pandora_dagster.api.chat_response import ChatAnswer, usage_of
from pandora_dagster.app import App
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.defs.turn.turn_run import add_partitions, report_turn
from pandora_dagster.documents.timestamps import format_timestamp
from pandora_dagster.errors import InputError
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow import turn_flow

MOST_TURNS = 64
SESSION_WAIT_S = 120.0
"""How long a request waits for the turn before it in its session."""
STOP_S = 10.0
"""How long turns under way may go on when the process is asked to end; what is left then stays open and can be resumed."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TurnStart:
    key: TurnKey


@dataclass(frozen=True, slots=True)
class PhaseEnd:
    """A phase went through."""

    phase: str


@dataclass(frozen=True, slots=True)
class AnswerText:
    text: str


@dataclass(frozen=True, slots=True)
class DraftWithdrawal:
    reason: str


Event = TurnStart | PhaseEnd | AnswerText | DraftWithdrawal | ChatAnswer | TurnHalt | TurnFailure
"""What is told of a turn: Began first, then whatever comes, one of Told, Halted and Failed last; or Failed alone."""
EventCallback = Callable[[Event], None]
"""Never raises, and may be called from any thread."""


@dataclass(frozen=True, slots=True)
class _Listener:
    tell: EventCallback

    def on_text(self, text: str) -> None:
        self.tell(AnswerText(text))

    def on_withdrawal(self, reason: str) -> None:
        self.tell(DraftWithdrawal(reason))


@dataclass(slots=True)
class _SessionQueue:
    """A session's turn-taking."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    claims: int = 0


class TurnWorker:
    """Runs turns over one open house. `close` ends what can be ended, and waits for what has to be written."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="turns")
        self._reporter = ThreadPoolExecutor(1, thread_name_prefix="dagster")
        self._places: dict[tuple[UserId, SessionId], _SessionQueue] = {}
        self._under_way: set[Future[None]] = set()
        self._thread.start()

    @property
    def active_turns(self) -> int:
        return len(self._under_way)

    def begin(self, asked: ChatRequest, tell: EventCallback) -> None:
        """Start a turn and return at once; raises RefusedError where too many run."""
        if len(self._under_way) >= MOST_TURNS:
            raise ApiError(
                429, f"{MOST_TURNS} turns are under way: expected fewer at once", type="rate_limit_error", headers={"Retry-After": "5"}
            )
        turn = asyncio.run_coroutine_threadsafe(self._run(asked, tell), self._loop)
        self._under_way.add(turn)
        turn.add_done_callback(self._under_way.discard)

    def close(self) -> None:
        """Turns under way get a moment, then stop where they are; the house's connections of this loop are closed."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._reporter.shutdown()

    async def _end(self) -> None:
        turns = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if turns:
            await asyncio.wait(turns, timeout=STOP_S)
        for task in turns:
            task.cancel()
        await asyncio.gather(*turns, return_exceptions=True)
        await self._app.runtime.aclose()

    async def _run(self, asked: ChatRequest, tell: EventCallback) -> None:
        key: TurnKey | None = None
        reports: list[PhaseReport] = []
        try:
            async with self._session_slot(asked):
                self._import_earlier_messages(asked)
                key = self._app.start(asked.query, user=asked.user, session=asked.session, mode=asked.mode)
                tell(TurnStart(key))
                await self._phases(key, asked, reports, tell)
        except Exception as error:
            if not isinstance(error, ApiError | InputError):
                _log.exception("%s: the turn ended with an error", key or asked.session)
            tell(TurnFailure(error, key))
        except BaseException:
            tell(TurnFailure(ApiError(503, "the server is ending: expected it to run", type="server_error", code="ending"), key))
            raise
        finally:
            if key is not None and reports:
                self._report_to_dagster(report_turn, self._app, key, reports)

    async def _phases(self, key: TurnKey, asked: ChatRequest, reports: list[PhaseReport], tell: EventCallback) -> None:
        """Every phase; the answer is told as soon as it is saved, what follows it takes nothing from that (DECISIONS 16)."""

        def hear(report: PhaseReport) -> None:
            reports.append(report)
            if report.has_answer:
                calls = [call for one in reports for call in one.calls]
                tell(ChatAnswer(self._app.answer_of(key), asked.session, usage_of(calls)))
            elif report.halt and not any(one.has_answer for one in reports):
                tell(TurnHalt(key, report.halt))
            else:
                tell(PhaseEnd(report.phase))

        await turn_flow.run_turn(key, self._app.with_listener(_Listener(tell)).dependencies, on_report=hear)

    def _import_earlier_messages(self, asked: ChatRequest) -> None:
        """What was said before a session's first turn here becomes its recorded history, once; raises InputError."""
        app = self._app
        record = app.sessions.find(asked.user, asked.session)
        begun = record.state == "complete" if record else bool(app.dependencies.index.rows(asked.user, session=asked.session, limit=1))
        if not asked.earlier or begun:
            return
        said = {
            "id": asked.session,
            "user_id": asked.user,
            "created_at": record.created_at if record else format_timestamp(app.dependencies.clock()),
            "messages": asked.earlier,
        }
        report = app.transfer.import_conversations([json.dumps(said).encode()], where="messages")
        if report.faults:
            raise InputError(report.faults[0])
        self._report_to_dagster(add_partitions, app, report.keys)

    def _report_to_dagster(self, tell: Callable[..., None], *about: object) -> None:
        """Beside everything else, one after the other; a page that can not be written takes nothing from the turn."""

        def told() -> None:
            try:
                tell(*about)
            except Exception:
                _log.exception("Dagster was not told")

        self._reporter.submit(told)

    @asynccontextmanager
    async def _session_slot(self, asked: ChatRequest) -> AsyncGenerator[None]:
        """Held while a turn of the session runs, with what follows its answer."""
        place = self._places.setdefault((asked.user, asked.session), _SessionQueue())
        place.claims += 1
        try:
            try:
                async with asyncio.timeout(SESSION_WAIT_S):
                    await place.lock.acquire()
            except TimeoutError:
                raise ApiError(
                    409, f"session {asked.session}: the turn before has not ended within {SESSION_WAIT_S:g} s", code="session_busy"
                ) from None
            try:
                yield
            finally:
                place.lock.release()
        finally:
            place.claims -= 1
            if not place.claims:
                del self._places[asked.user, asked.session]
