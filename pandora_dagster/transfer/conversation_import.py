"""Conversations in and out: imported ones become recorded turns, and every turn leaves as part of a conversation.

Knows the order of an import's steps (numbers, session record, turns, index, session complete), so that one that was cut off
goes on without duplicates. Knows nothing of files: the ports it is given do.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from json import dumps

from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.ports.turn_storage import ImportedTurnStore, TurnIndex, VectorIndex
from pandora_dagster.contracts.ports.user_storage import Sessions
from pandora_dagster.contracts.turns import Turn, TurnRow
from pandora_dagster.contracts.user.conversations import Conversation, Message, SessionRecord
from pandora_dagster.documents.conversation_messages import message_time, parse_conversation, split_turns
from pandora_dagster.errors import ConversationError, UnknownTurnError
from pandora_dagster.language.terms import TermReader
from pandora_dagster.retrieval.turn_row import build_turn_row
from pandora_dagster.transfer.recorded_turn import TurnDraft, draft_turn, recorded_manifest

_BATCH = 100
"""Turns that are placed together."""
_INDEXED = 400
"""Turns that are indexed together, in one opening of the index, while the next ones are placed: the memory of an import is twice
these rows and two batches."""


@dataclass(frozen=True, slots=True)
class ImportContext:
    """What an import works with."""

    recordings: ImportedTurnStore
    sessions: Sessions
    index: TurnIndex
    reader: TermReader
    vectors: VectorIndex | None = None


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did so far. `conversations` and `turns` are new ones.

    `keys` are all turns of the lines, those that were there already included: an earlier import that was cut off stored turns
    that nobody was told of.
    """

    lines: int = 0
    conversations: int = 0
    turns: int = 0
    unchanged: int = 0
    faults: tuple[str, ...] = ()
    keys: tuple[TurnKey, ...] = ()
    oldest: datetime | None = None
    """The first moment of all turns of the lines, for the same reason."""


@dataclass(frozen=True, slots=True)
class _OpenConversation:
    """A conversation whose session record is written and whose turns are not yet placed."""

    record: SessionRecord
    drafts: tuple[TurnDraft, ...]
    resumed: bool
    """True where an earlier import wrote the record: some of its turns may be placed already."""


def import_conversations(
    lines: Iterable[bytes],
    ctx: ImportContext,
    *,
    where: str,
    progress: Callable[[ImportReport], None] = lambda report: None,
) -> ImportReport:
    """Import one conversation per line; a faulty line is named as `where:line` in the report and the rest imported.

    Raises StoreError where the disk or the index refuses: importing the same lines again goes on from there.
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
        report = replace(report, keys=(*report.keys, *storing.there))
    progress(report)
    return report


class _ImportPipeline:
    """Batches on their way to the disk: one is read while a thread writes the one before, and another indexes those before that."""

    def __init__(self, ctx: ImportContext) -> None:
        self._desk = ctx
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="import")
        self._indexer = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._pending: list[_OpenConversation] = []
        self.there: list[TurnKey] = []
        """Turns that an earlier import stored whole."""
        self._under_way: tuple[list[_OpenConversation], Future[list[TurnRow]]] | None = None
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
        """Turns that are not yet on their way."""
        return sum(len(p.drafts) for p in self._pending)

    def add(self, opened: _OpenConversation) -> None:
        self._pending.append(opened)

    def is_pending(self, conversation: Conversation) -> bool:
        """Whether this conversation is not stored yet."""
        under_way = (opened for sent in (self._under_way, self._indexing) if sent for opened in sent[0])
        every = (*self._pending, *self._placed, *under_way)
        return any((p.record.user_id, p.record.session_id) == (conversation.user_id, conversation.id) for p in every)

    def send_batch(self, report: ImportReport) -> ImportReport:
        """Finish the batch under way, then send the waiting one."""
        report = self.finish_batch(report)
        batch, self._pending = self._pending, []
        self._under_way = (batch, self._writer.submit(_place_turns, batch, self._desk))
        return report

    def finish_batch(self, report: ImportReport) -> ImportReport:
        """Wait for the batch under way; raises StoreError."""
        if self._under_way is not None:
            (batch, placed), self._under_way = self._under_way, None
            self._rows += placed.result()
            self._placed += batch
        return self.send_to_index(report) if len(self._rows) >= _INDEXED else report

    def send_to_index(self, report: ImportReport) -> ImportReport:
        """Send what is placed to the index, once what was sent before is in it; raises StoreError."""
        report = self.finish_index(report)
        rows, placed = self._rows, self._placed
        self._rows, self._placed = [], []
        self._indexing = (placed, self._indexer.submit(_complete_sessions, rows, placed, self._desk))
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
        """Everything taken so far, stored and indexed."""
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
        storing.there += [TurnKey(UserId(opened.user_id), number) for number in opened.numbers]
        report = replace(report, unchanged=report.unchanged + 1)
        said = [message_time(turn.messages[0], conversation.created_at) for turn in split_turns(conversation.messages)[1]]
    else:
        storing.add(opened)
        said = [item.created_at for item in opened.drafts]
    moments = [datetime.fromisoformat(one) for one in said]
    return replace(report, oldest=min((*moments, *([report.oldest] if report.oldest else [])), default=None))


def _open_conversation(conversation: Conversation, ctx: ImportContext, where: str) -> _OpenConversation | SessionRecord:
    """The conversation ready to be placed, its numbers and its session record written; the record where it is there already."""
    sha = content_sha(conversation)
    user, session = UserId(conversation.user_id), SessionId(conversation.id)
    preamble, turns = split_turns(conversation.messages)
    record = known = ctx.sessions.find(user, session)
    if record is None:
        numbers = ctx.recordings.allocate(user, len(turns)) if turns else range(0)
        record = ctx.sessions.begin(_new_record(conversation, sha, preamble, numbers))
    if record.content_sha != sha:
        raise ConversationError(f"{where}: conversation {session!r} of {user}: other content is stored under this id, kept as it is")
    if record.state == "complete":
        return record
    drafts = tuple(draft_turn(conversation, t, n, preamble, ctx.reader) for t, n in zip(turns, record.numbers, strict=True))
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
    """Rows of all pending turns; those that an import that was cut off had placed are read, the others are placed."""
    there: list[Turn] = []
    missing: list[TurnDraft] = []
    for opened in pending:
        for item in opened.drafts:
            found = _placed_turn(item.key, ctx.recordings) if opened.resumed else None
            if found:
                there.append(found)
            else:
                missing.append(item)
    placed = ctx.recordings.place_many((d.key, d.files, recorded_manifest(d)) for d in missing)
    before = {d.key: d.preamble for opened in pending for d in opened.drafts}
    return [build_turn_row(turn.manifest, turn.context, turn.files, preamble=before[turn.key]) for turn in (*there, *placed)]


def _complete_sessions(rows: Sequence[TurnRow], placed: Sequence[_OpenConversation], ctx: ImportContext) -> None:
    """Index turns that are placed, then call their sessions complete, then make vectors; raises StoreError."""
    if rows:
        ctx.index.put(rows)
    for opened in placed:
        ctx.sessions.save(opened.record.model_copy(update={"state": "complete"}))
    if ctx.vectors:
        ctx.vectors.put(rows)


def _placed_turn(key: TurnKey, recordings: ImportedTurnStore) -> Turn | None:
    try:
        return recordings.load(key)
    except UnknownTurnError:
        return None
