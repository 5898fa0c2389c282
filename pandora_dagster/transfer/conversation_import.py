"""Import of conversations: each turn of a line becomes a recorded turn.

The order of the steps (numbers, session record, turns, index, session complete) lets an interrupted import continue without duplicates.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from json import dumps

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.ports.turn_storage import TurnIndex, TurnStore, VectorIndex
from pandora_dagster.contracts.ports.user_storage import Sessions
from pandora_dagster.contracts.turns import Manifest, Turn, TurnRow
from pandora_dagster.contracts.user.conversations import Conversation, Message, RecordedTurn, SessionRecord
from pandora_dagster.documents.conversation_messages import message_lines, message_text, message_time, parse_conversation, split_turns
from pandora_dagster.documents.recorded_context import recorded_answer, render_recorded_context
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.turn_entry import turn_trace
from pandora_dagster.documents.turn_row import build_turn_row
from pandora_dagster.errors import ConversationError, UnknownTurnError
from pandora_dagster.language.terms import TermReader
from pandora_dagster.transfer.recorded_summary import summarise, summary_fields

RECORDED_RUNTIME = "recorded"
CONTEXT_FILE = "context.md"
MESSAGES_FILE = "messages.jsonl"


@dataclass(frozen=True, slots=True)
class TurnDraft:
    """One turn of a conversation, ready for the store, which fills in hashes, tokens and the owner of the documents."""

    manifest: Manifest
    """Always saved; its last activity is when it happened (DECISIONS 30)."""
    files: Mapping[str, str]
    preamble: tuple[Message, ...]
    """Messages before the conversation's first turn; for that turn only."""

    @property
    def key(self) -> TurnKey:
        return self.manifest.key


def draft_turn(conversation: Conversation, turn: RecordedTurn, key: TurnKey, preamble: Sequence[Message], reader: TermReader) -> TurnDraft:
    """The documents of one recorded turn; the first one of a conversation also shows the messages before it."""
    before = tuple(preamble) if turn.first_index == len(preamble) else ()
    context = render_recorded_context(turn.messages, preamble=before)
    summary = summarise(message_text(turn.messages[0]), recorded_answer(turn.messages), _tools(turn.messages), reader=reader)
    at = message_time(turn.messages[0], conversation.created_at)
    manifest = Manifest(
        user_id=key.user,
        turn_id=key.turn_id,
        session_id=conversation.id,
        state=TurnState.SAVED,
        created_at=at,
        last_activity=at,
        recorded=True,
        runtime=RECORDED_RUNTIME,
        summary={**summary_fields(summary), **turn_trace(ContextDocument.parse(context))},
        first_message=turn.first_index,
    )
    return TurnDraft(manifest, {CONTEXT_FILE: context, MESSAGES_FILE: message_lines(turn.messages)}, before)


def _tools(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(call["function"]["name"] for m in messages for call in m.get("tool_calls") or ()))


_BATCH = 100
"""Turns that are stored together."""
_INDEXED = 400
"""Turns that are indexed together, in one opening of the index, while the next ones are stored: an import has twice these rows and two
batches in memory."""


@dataclass(frozen=True, slots=True)
class ImportContext:
    """Dependencies of an import."""

    recordings: TurnStore
    sessions: Sessions
    index: TurnIndex
    reader: TermReader
    vectors: VectorIndex | None = None


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The progress of an import. `conversations` and `turns` count new ones.

    `keys` are all turns of the lines, also those that were stored before: an interrupted import stored turns that it did not report.
    """

    lines: int = 0
    conversations: int = 0
    turns: int = 0
    unchanged: int = 0
    faults: tuple[str, ...] = ()
    keys: tuple[TurnKey, ...] = ()
    oldest: datetime | None = None
    """The earliest time of all turns of the lines, for the same reason."""


@dataclass(frozen=True, slots=True)
class _OpenConversation:
    """A conversation whose session record is written and whose turns are not yet stored."""

    record: SessionRecord
    drafts: tuple[TurnDraft, ...]
    resumed: bool
    """Whether an earlier import wrote the record: some of its turns may be stored already."""


def import_conversations(
    lines: Iterable[bytes],
    ctx: ImportContext,
    *,
    where: str,
    progress: Callable[[ImportReport], None] = lambda report: None,
) -> ImportReport:
    """Import one conversation per line; a faulty line is reported as `where:line`, and the import continues.

    Raises StoreError where the disk or the index refuses: importing the same lines again continues from there.
    """
    report = ImportReport()
    with _ImportPipeline(ctx) as storing:
        for number, line in enumerate(lines, 1):
            report = replace(report, lines=number)
            if line.strip():
                report = _import_line(line, f"{where}:{number}", ctx, storing, report)
            if storing.waiting >= _BATCH:
                report = storing.send_batch(report)
            progress(report)
        report = storing.finish_all(report)
        report = replace(report, keys=(*report.keys, *storing.unchanged))
    progress(report)
    return report


class _ImportPipeline:
    """A pipeline of batches: one is read while a thread writes the one before, and another thread indexes those before that."""

    def __init__(self, ctx: ImportContext) -> None:
        self._ctx = ctx
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="import")
        self._indexer = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._pending: list[_OpenConversation] = []
        self.unchanged: list[TurnKey] = []
        """Turns that an earlier import stored completely."""
        self._writing: tuple[list[_OpenConversation], Future[list[TurnRow]]] | None = None
        self._placed: list[_OpenConversation] = []
        self._rows: list[TurnRow] = []
        self._indexing: tuple[list[_OpenConversation], Future[None]] | None = None

    def __enter__(self) -> "_ImportPipeline":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.shutdown()
        self._indexer.shutdown()

    @property
    def waiting(self) -> int:
        """Number of turns that are not yet submitted."""
        return sum(len(p.drafts) for p in self._pending)

    def add(self, opened: _OpenConversation) -> None:
        self._pending.append(opened)

    def is_pending(self, conversation: Conversation) -> bool:
        """Whether this conversation is in the pipeline and not stored yet."""
        submitted = (opened for sent in (self._writing, self._indexing) if sent for opened in sent[0])
        every = (*self._pending, *self._placed, *submitted)
        return any((p.record.user_id, p.record.session_id) == (conversation.user_id, conversation.id) for p in every)

    def send_batch(self, report: ImportReport) -> ImportReport:
        """Finish the batch that is being written, then submit the waiting one."""
        report = self.finish_batch(report)
        batch, self._pending = self._pending, []
        self._writing = (batch, self._writer.submit(_place_turns, batch, self._ctx))
        return report

    def finish_batch(self, report: ImportReport) -> ImportReport:
        """Wait for the batch that is being written; raises StoreError."""
        if self._writing is not None:
            (batch, placed), self._writing = self._writing, None
            self._rows += placed.result()
            self._placed += batch
        return self.send_to_index(report) if len(self._rows) >= _INDEXED else report

    def send_to_index(self, report: ImportReport) -> ImportReport:
        """Submit the stored turns to the index, once the turns before them are indexed; raises StoreError."""
        report = self.finish_index(report)
        rows, placed = self._rows, self._placed
        self._rows, self._placed = [], []
        self._indexing = (placed, self._indexer.submit(_complete_sessions, rows, placed, self._ctx))
        return report

    def finish_index(self, report: ImportReport) -> ImportReport:
        """Wait for the index; raises StoreError."""
        if self._indexing is None:
            return report
        (complete, done), self._indexing = self._indexing, None
        done.result()
        keys = tuple(d.key for opened in complete for d in opened.drafts)
        conversations = report.conversations + len(complete)
        return replace(report, conversations=conversations, turns=report.turns + len(keys), keys=(*report.keys, *keys))

    def finish_all(self, report: ImportReport) -> ImportReport:
        """Store and index every pending conversation."""
        return self.finish_index(self.send_to_index(self.finish_batch(self.send_batch(report))))


def content_sha(conversation: Conversation) -> str:
    """sha256 of a conversation's values; the order of keys does not matter."""
    values = [conversation.id, conversation.user_id, conversation.created_at, conversation.messages, conversation.extra]
    return sha256(dumps(values, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _import_line(line: bytes, where: str, ctx: ImportContext, storing: _ImportPipeline, report: ImportReport) -> ImportReport:
    try:
        conversation = parse_conversation(line, where=where)
        if storing.is_pending(conversation):
            report = storing.finish_all(report)
        opened = _open_conversation(conversation, ctx, where)
    except ConversationError as error:
        return replace(report, faults=(*report.faults, str(error)))
    if isinstance(opened, SessionRecord):
        storing.unchanged += [TurnKey(UserId(opened.user_id), number) for number in opened.numbers]
        report = replace(report, unchanged=report.unchanged + 1)
        times = [message_time(turn.messages[0], conversation.created_at) for turn in split_turns(conversation.messages)[1]]
    else:
        storing.add(opened)
        times = [item.manifest.created_at for item in opened.drafts]
    parsed = [datetime.fromisoformat(one) for one in times]
    return replace(report, oldest=min((*parsed, *([report.oldest] if report.oldest else [])), default=None))


def _open_conversation(conversation: Conversation, ctx: ImportContext, where: str) -> _OpenConversation | SessionRecord:
    """Allocate numbers and write the session record of a conversation; returns the record alone where it is stored already."""
    sha = content_sha(conversation)
    user, session = UserId(conversation.user_id), SessionId(conversation.id)
    preamble, turns = split_turns(conversation.messages)
    record = known = ctx.sessions.find(user, session)
    if record is None:
        numbers = ctx.recordings.allocate(user, len(turns)) if turns else range(0)
        record = ctx.sessions.begin(_new_record(conversation, sha, preamble, numbers))
    if record.content_sha != sha:
        raise ConversationError(f"{where}: conversation {session!r} of {user}: other content is stored under this id and is kept")
    if record.state == "complete":
        return record
    drafts = tuple(
        draft_turn(conversation, turn, TurnKey(user, number), preamble, ctx.reader)
        for turn, number in zip(turns, record.numbers, strict=True)
    )
    return _OpenConversation(record, drafts, resumed=known is not None)


def _new_record(conversation: Conversation, sha: str, preamble: tuple[Message, ...], numbers: range) -> SessionRecord:
    return SessionRecord(
        user_id=conversation.user_id,
        session_id=conversation.id,
        created_at=conversation.created_at,
        state="importing",
        content_sha=sha,
        first_turn=numbers.start,
        turn_count=len(numbers),
        preamble=preamble,
        extra=conversation.extra,
    )


def _place_turns(pending: Sequence[_OpenConversation], ctx: ImportContext) -> list[TurnRow]:
    """Store all pending turns and return their rows; turns that an interrupted import stored are read."""
    stored: list[Turn] = []
    missing: list[TurnDraft] = []
    for opened in pending:
        for item in opened.drafts:
            found = _placed_turn(item.key, ctx.recordings) if opened.resumed else None
            if found:
                stored.append(found)
            else:
                missing.append(item)
    placed = ctx.recordings.place_many((d.key, d.files, d.manifest) for d in missing)
    preambles = {d.key: d.preamble for opened in pending for d in opened.drafts}
    return [build_turn_row(turn.manifest, turn.context, turn.files, preamble=preambles[turn.key]) for turn in (*stored, *placed)]


def _complete_sessions(rows: Sequence[TurnRow], placed: Sequence[_OpenConversation], ctx: ImportContext) -> None:
    """Index the stored turns, then mark their sessions complete, then make vectors; raises StoreError."""
    if rows:
        ctx.index.put(rows)
    for opened in placed:
        ctx.sessions.save(opened.record.model_copy(update={"state": "complete"}))
    if ctx.vectors:
        ctx.vectors.put(rows)


def _placed_turn(key: TurnKey, recordings: TurnStore) -> Turn | None:
    try:
        return recordings.load(key)
    except UnknownTurnError:
        return None
