"""Conversations in and out: imported ones become recorded turns, and every turn leaves as part of a conversation.

Knows the order of an import's steps (numbers, session record, turns, index, session complete), so that one that was cut off
goes on without duplicates. Knows nothing of files: the ports it is given do.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from json import dumps

from pandora_dagster.contracts.conversations import Conversation, Message, SessionRecord
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.ports import Recordings, Sessions, TurnIndex
from pandora_dagster.contracts.turns import Turn, TurnRow
from pandora_dagster.errors import ConversationError, UnknownTurnError
from pandora_dagster.phases.recorded_turn import Draft, draft, manifest_of
from pandora_dagster.selection.turn_row import row_of
from pandora_dagster.text.conversations import parse_conversation, split_turns
from pandora_dagster.text.words import TermReader

_BATCH = 500
"""Turns that are placed and indexed together: the memory of an import is this many turns and one conversation."""


@dataclass(frozen=True, slots=True)
class RecordingDesk:
    """What an import works with."""

    recordings: Recordings
    sessions: Sessions
    index: TurnIndex
    reader: TermReader


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did so far. `conversations` and `turns` are new ones; `keys` are the new turns."""

    lines: int = 0
    conversations: int = 0
    turns: int = 0
    unchanged: int = 0
    faults: tuple[str, ...] = ()
    keys: tuple[TurnKey, ...] = ()


@dataclass(frozen=True, slots=True)
class _Opened:
    """A conversation whose session record is written and whose turns are not yet placed."""

    record: SessionRecord
    drafts: tuple[Draft, ...]
    resumed: bool
    """True where an earlier import wrote the record: some of its turns may be placed already."""


def import_conversations(
    lines: Iterable[bytes],
    desk: RecordingDesk,
    *,
    where: str,
    progress: Callable[[ImportReport], None] = lambda report: None,
) -> ImportReport:
    """Import one conversation per line; a faulty line is named as `where:line` in the report and the rest imported.

    Raises StoreError where the disk or the index refuses: importing the same lines again goes on from there.
    """
    report = ImportReport()
    pending: list[_Opened] = []
    for number, line in enumerate(lines, 1):
        report = replace(report, lines=number)
        if line.strip():
            report = _take(line, f"{where}:{number}", desk, pending, report)
        if sum(len(p.drafts) for p in pending) >= _BATCH:
            report = _store(pending, desk, report)
        progress(report)
    report = _store(pending, desk, report)
    progress(report)
    return report


def content_sha(conversation: Conversation) -> str:
    """sha256 of a conversation's values; the order of keys does not matter."""
    values = [conversation.id, conversation.user_id, conversation.created_at, conversation.messages, conversation.extra]
    return sha256(dumps(values, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _take(line: bytes, where: str, desk: RecordingDesk, pending: list[_Opened], report: ImportReport) -> ImportReport:
    try:
        conversation = parse_conversation(line, where=where)
        if any(p.record.session_id == conversation.id and p.record.user_id == conversation.user_id for p in pending):
            report = _store(pending, desk, report)
        opened = _open(conversation, desk, where)
    except ConversationError as error:
        return replace(report, faults=(*report.faults, str(error)))
    if opened is None:
        return replace(report, unchanged=report.unchanged + 1)
    pending.append(opened)
    return report


def _open(conversation: Conversation, desk: RecordingDesk, where: str) -> _Opened | None:
    """The conversation ready to be placed, its numbers and its session record written; None where it is there already."""
    sha = content_sha(conversation)
    user, session = UserId(conversation.user_id), SessionId(conversation.id)
    preamble, turns = split_turns(conversation.messages)
    record = known = desk.sessions.find(user, session)
    if record is None:
        numbers = desk.recordings.allocate(user, len(turns)) if turns else range(0)
        record = desk.sessions.begin(_new_record(conversation, sha, preamble, numbers))
    if record.content_sha != sha:
        raise ConversationError(f"{where}: conversation {session!r} of {user}: other content is stored under this id, kept as it is")
    if record.state == "complete":
        return None
    drafts = tuple(draft(conversation, t, n, preamble, desk.reader) for t, n in zip(turns, record.numbers, strict=True))
    return _Opened(record, drafts, resumed=known is not None)


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


def _store(pending: list[_Opened], desk: RecordingDesk, report: ImportReport) -> ImportReport:
    """Place the turns, index them, then call their sessions complete."""
    drafts = [d for opened in pending for d in opened.drafts]
    if drafts:
        desk.index.put(_placed(pending, desk))
    for opened in pending:
        desk.sessions.save(opened.record.model_copy(update={"state": "complete"}))
    done = replace(
        report,
        conversations=report.conversations + len(pending),
        turns=report.turns + len(drafts),
        keys=(*report.keys, *(d.key for d in drafts)),
    )
    pending.clear()
    return done


def _placed(pending: Sequence[_Opened], desk: RecordingDesk) -> list[TurnRow]:
    """Rows of all pending turns; those that an import that was cut off had placed are read, the others are placed."""
    there: list[Turn] = []
    missing: list[Draft] = []
    for opened in pending:
        for item in opened.drafts:
            found = _found(item.key, desk.recordings) if opened.resumed else None
            if found:
                there.append(found)
            else:
                missing.append(item)
    placed = desk.recordings.place_many((d.key, d.files, manifest_of(d)) for d in missing)
    before = {d.key: d.preamble for opened in pending for d in opened.drafts}
    return [row_of(turn.manifest, turn.context, turn.files, preamble=before[turn.key]) for turn in (*there, *placed)]


def _found(key: TurnKey, recordings: Recordings) -> Turn | None:
    try:
        return recordings.load(key)
    except UnknownTurnError:
        return None
