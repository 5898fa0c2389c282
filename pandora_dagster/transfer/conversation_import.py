"""Imports conversations: each turn of a line becomes a recorded turn.

A line goes through five steps: allocate turn numbers, write the session record with the state `importing`, store the turns, index them, set
the session to `complete`. In this order an interrupted import continues without duplicates: the record holds the numbers. Three stages
overlap: the caller's thread parses lines, one thread stores batches of turns, another one indexes them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from json import dumps

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.ports.turn_storage import TurnIndex, TurnStore, VectorIndex
from pandora_dagster.contracts.ports.user_storage import Sessions
from pandora_dagster.contracts.turns import MAX_DOCUMENT_BYTES, Manifest, Turn, TurnRow
from pandora_dagster.contracts.user.conversations import Conversation, Message, RecordedTurn, SessionRecord
from pandora_dagster.documents.conversation_messages import message_lines, message_text, message_time, parse_conversation, split_turns
from pandora_dagster.documents.recorded_context import recorded_answer, render_recorded_context
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.turn_entry import turn_trace
from pandora_dagster.documents.turn_row import build_turn_row
from pandora_dagster.errors import ConversationError, UnknownTurnError
from pandora_dagster.language.terms import TermReader
from pandora_dagster.transfer.recorded_summary import summarize, summary_fields

RECORDED_RUNTIME = "recorded"
CONTEXT_FILE = "context.md"
MESSAGES_FILE = "messages.jsonl"


@dataclass(frozen=True, slots=True)
class TurnDraft:
    """One turn of a conversation, ready for the store, which adds hashes, tokens and the owner of the documents."""

    manifest: Manifest
    """Its state is always `saved`, its last activity the time of its first message (decision 30, docs/decisions/30-imported-turns.md)."""
    files: Mapping[str, str]
    preamble: tuple[Message, ...]
    """Messages before the conversation's first turn; for that turn only."""

    @property
    def key(self) -> TurnKey:
        return self.manifest.key


def draft_turn(conversation: Conversation, turn: RecordedTurn, key: TurnKey, preamble: Sequence[Message], reader: TermReader) -> TurnDraft:
    """The documents of one recorded turn; the first one of a conversation also shows the messages before it."""
    shown_preamble = tuple(preamble) if turn.first_index == len(preamble) else ()
    context = render_recorded_context(turn.messages, preamble=shown_preamble)
    summary = summarize(message_text(turn.messages[0]), recorded_answer(turn.messages), _tool_names(turn.messages), reader=reader)
    timestamp = message_time(turn.messages[0], conversation.created_at)
    manifest = Manifest(
        user_id=key.user,
        turn_id=key.turn_id,
        session_id=conversation.id,
        state=TurnState.SAVED,
        created_at=timestamp,
        last_activity=timestamp,
        recorded=True,
        runtime=RECORDED_RUNTIME,
        summary={**summary_fields(summary), **turn_trace(ContextDocument.parse(context))},
        first_message=turn.first_index,
    )
    return TurnDraft(manifest, {CONTEXT_FILE: context, MESSAGES_FILE: message_lines(turn.messages)}, shown_preamble)


def _tool_names(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(call["function"]["name"] for m in messages for call in m.get("tool_calls") or ()))


_TURNS_PER_BATCH = 100
"""Turns that are stored together, by one thread."""
_TURNS_PER_INDEXING = 400
"""Turns that are indexed together, while the next ones are stored; an import has rows of twice as many turns and two batches in memory."""


@dataclass(frozen=True, slots=True)
class ImportContext:
    """Dependencies of an import."""

    turns: TurnStore
    sessions: Sessions
    index: TurnIndex
    reader: TermReader
    vectors: VectorIndex | None = None


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The progress of an import: `lines` read, new `conversations` and `turns`, `unchanged` conversations, `faults` of lines.

    `keys` are all turns of the lines, also those stored before: an interrupted import stored turns that it did not report.
    """

    lines: int = 0
    conversations: int = 0
    turns: int = 0
    unchanged: int = 0
    faults: tuple[str, ...] = ()
    keys: tuple[TurnKey, ...] = ()


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
    with _ImportPipeline(ctx) as pipeline:
        for number, line in enumerate(lines, 1):
            report = replace(report, lines=number)
            if line.strip():
                report = _import_line(line, f"{where}:{number}", ctx, pipeline, report)
            if pipeline.pending_turns >= _TURNS_PER_BATCH:
                report = pipeline.send_batch(report)
            progress(report)
        report = pipeline.finish_all(report)
        report = replace(report, keys=(*report.keys, *pipeline.unchanged))
    progress(report)
    return report


class _ImportPipeline:
    """Stores and indexes conversations in two threads, while the caller parses the next lines.

    A conversation is pending, then being stored, then stored and waiting for the index, then being indexed.
    """

    def __init__(self, ctx: ImportContext) -> None:
        self._ctx = ctx
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="import")
        self._indexer = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._pending: list[_OpenConversation] = []
        self.unchanged: list[TurnKey] = []
        """Turns that an earlier import stored completely."""
        self._writing: tuple[list[_OpenConversation], Future[list[TurnRow]]] | None = None
        self._stored: list[_OpenConversation] = []
        self._rows: list[TurnRow] = []
        self._indexing: tuple[list[_OpenConversation], Future[None]] | None = None

    def __enter__(self) -> "_ImportPipeline":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.shutdown()
        self._indexer.shutdown()

    @property
    def pending_turns(self) -> int:
        """Number of turns that are not yet submitted for storing."""
        return sum(len(p.drafts) for p in self._pending)

    def add(self, opened: _OpenConversation) -> None:
        self._pending.append(opened)

    def is_unfinished(self, conversation: Conversation) -> bool:
        """Whether this conversation is in the pipeline: its session is not yet set to `complete`."""
        submitted = (opened for submission in (self._writing, self._indexing) if submission for opened in submission[0])
        unfinished = (*self._pending, *self._stored, *submitted)
        return any((p.record.user_id, p.record.session_id) == (conversation.user_id, conversation.id) for p in unfinished)

    def send_batch(self, report: ImportReport) -> ImportReport:
        """Finish the batch that is being written, then submit the pending one."""
        report = self.finish_batch(report)
        batch, self._pending = self._pending, []
        self._writing = (batch, self._writer.submit(_store_turns, batch, self._ctx))
        return report

    def finish_batch(self, report: ImportReport) -> ImportReport:
        """Wait for the batch that is being written; raises StoreError."""
        if self._writing is not None:
            (batch, stored_rows), self._writing = self._writing, None
            self._rows += stored_rows.result()
            self._stored += batch
        return self.send_to_index(report) if len(self._rows) >= _TURNS_PER_INDEXING else report

    def send_to_index(self, report: ImportReport) -> ImportReport:
        """Submit the stored turns to the index, once the turns before them are indexed; raises StoreError."""
        report = self.finish_index(report)
        rows, conversations = self._rows, self._stored
        self._rows, self._stored = [], []
        self._indexing = (conversations, self._indexer.submit(_complete_sessions, rows, conversations, self._ctx))
        return report

    def finish_index(self, report: ImportReport) -> ImportReport:
        """Wait for the index; raises StoreError."""
        if self._indexing is None:
            return report
        (completed, indexing), self._indexing = self._indexing, None
        indexing.result()
        keys = tuple(d.key for opened in completed for d in opened.drafts)
        conversation_count = report.conversations + len(completed)
        return replace(report, conversations=conversation_count, turns=report.turns + len(keys), keys=(*report.keys, *keys))

    def finish_all(self, report: ImportReport) -> ImportReport:
        """Store and index every pending conversation."""
        return self.finish_index(self.send_to_index(self.finish_batch(self.send_batch(report))))


def content_sha(conversation: Conversation) -> str:
    """sha256 of a conversation's values; the order of keys does not matter."""
    values = [conversation.id, conversation.user_id, conversation.created_at, conversation.messages, conversation.extra]
    return sha256(dumps(values, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _import_line(line: bytes, where: str, ctx: ImportContext, pipeline: _ImportPipeline, report: ImportReport) -> ImportReport:
    try:
        conversation = parse_conversation(line, where=where)
        if pipeline.is_unfinished(conversation):
            report = pipeline.finish_all(report)
        opened = _open_conversation(conversation, ctx, where)
    except ConversationError as error:
        return replace(report, faults=(*report.faults, str(error)))
    if isinstance(opened, SessionRecord):
        pipeline.unchanged += [TurnKey(UserId(opened.user_id), number) for number in opened.numbers]
        return replace(report, unchanged=report.unchanged + 1)
    pipeline.add(opened)
    return report


def _open_conversation(conversation: Conversation, ctx: ImportContext, where: str) -> _OpenConversation | SessionRecord:
    """Allocate numbers and write the session record of a conversation; returns the record alone where it is stored already."""
    sha = content_sha(conversation)
    user, session = UserId(conversation.user_id), SessionId(conversation.id)
    preamble, turns = split_turns(conversation.messages)
    record = stored_record = ctx.sessions.find(user, session)
    if record is None:
        _check_sizes(preamble, turns, where)
        numbers = ctx.turns.allocate(user, len(turns)) if turns else range(0)
        record = ctx.sessions.begin(_new_record(conversation, sha, preamble, numbers))
    if record.content_sha != sha:
        raise ConversationError(f"{where}: conversation {session!r} of {user}: other content is stored under this id and is kept")
    if record.state == "complete":
        return record
    drafts = tuple(
        draft_turn(conversation, turn, TurnKey(user, number), preamble, ctx.reader)
        for turn, number in zip(turns, record.numbers, strict=True)
    )
    return _OpenConversation(record, drafts, resumed=stored_record is not None)


def _check_sizes(preamble: Sequence[Message], turns: Sequence[RecordedTurn], where: str) -> None:
    """Raise ConversationError for a turn that no document can hold, before anything of the conversation is stored.

    A context.md repeats its messages with frames and indentation: a line of the messages may have half of the bytes of a document.
    """
    limit = MAX_DOCUMENT_BYTES // 2
    for number, messages in enumerate((preamble, *(turn.messages for turn in turns))):
        size = len(message_lines(messages).encode())
        if size > limit:
            part = f"the messages from the user's {number}. one" if number else "the messages before the user's first"
            raise ConversationError(f"{where}: {part}: {size:,} bytes: expected at most {limit:,} for a turn")


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


def _store_turns(pending: Sequence[_OpenConversation], ctx: ImportContext) -> list[TurnRow]:
    """Store all pending turns and return their rows; turns that an interrupted import stored are read."""
    stored: list[Turn] = []
    missing: list[TurnDraft] = []
    for opened in pending:
        for draft in opened.drafts:
            stored_turn = _find_stored_turn(draft.key, ctx.turns) if opened.resumed else None
            if stored_turn:
                stored.append(stored_turn)
            else:
                missing.append(draft)
    new_turns = ctx.turns.place_many((d.key, d.files, d.manifest) for d in missing)
    preambles = {d.key: d.preamble for opened in pending for d in opened.drafts}
    return [build_turn_row(turn.manifest, turn.context, turn.files, preamble=preambles[turn.key]) for turn in (*stored, *new_turns)]


def _complete_sessions(rows: Sequence[TurnRow], conversations: Sequence[_OpenConversation], ctx: ImportContext) -> None:
    """Index the stored turns, then mark their sessions complete, then make vectors; raises StoreError."""
    if rows:
        ctx.index.put(rows)
    for opened in conversations:
        ctx.sessions.save(opened.record.model_copy(update={"state": "complete"}))
    if ctx.vectors:
        ctx.vectors.put(rows)


def _find_stored_turn(key: TurnKey, turns: TurnStore) -> Turn | None:
    try:
        return turns.load(key)
    except UnknownTurnError:
        return None
