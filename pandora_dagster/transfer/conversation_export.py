"""Export of stored turns as conversations in OpenAI message format: imported ones unchanged, live ones by session."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.ports.turn_storage import TurnStore
from pandora_dagster.contracts.ports.user_storage import Sessions
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.contracts.user.conversations import SessionRecord
from pandora_dagster.documents.conversation_messages import join_turns, read_message_lines
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import DocumentError
from pandora_dagster.transfer.conversation_import import MESSAGES_FILE

_RESPONSE_FILE = "response.md"
_ANSWER_SECTION = 5
DELETED_FIELD = "originals_deleted"
"""Field of an exported conversation that lists the turns whose originals were deleted by rule; their compressed texts are exported."""


def raise_fault(fault: DocumentError) -> None:
    """The default handler of an unreadable conversation."""
    raise fault


def export_conversations(
    turns: TurnStore, sessions: Sessions, user: UserId | None = None, *, on_fault: Callable[[DocumentError], None] = raise_fault
) -> Iterator[dict[str, Any]]:
    """Yield conversations as JSON objects: imported ones, each equal to its line, then live turns by session.

    Live turns that continue an imported session are a conversation of their own, `<id>.live`, so that the imported one keeps its
    messages. A conversation whose import was interrupted is left out: a new import of its file completes it. One with a damaged document
    is left out and its error passed to `on_fault`, which raises by default.
    """
    imported: set[tuple[str, str]] = set()
    for record in sessions.records(user, on_fault=on_fault):
        imported.add((record.user_id, record.session_id))
        if record.state == "complete":
            try:
                conversation = _imported_conversation(record, turns)
            except DocumentError as error:
                on_fault(error)
                continue
            yield conversation
    yield from _live_conversations(turns, imported, user, on_fault)


def _imported_conversation(record: SessionRecord, turns: TurnStore) -> dict[str, Any]:
    loaded = [turns.original(TurnKey(UserId(record.user_id), number), revision=0) for number in record.numbers]
    header = {"id": record.session_id, "user_id": record.user_id, "created_at": record.created_at}
    messages = join_turns(record.preamble, [_recorded_messages(turn) for turn in loaded])
    return {**header, "messages": [dict(m) for m in messages], **record.extra, **_deletion_fields(loaded)}


def _deletion_fields(loaded: Sequence[Turn]) -> dict[str, Any]:
    """The field that lists the turns of a conversation whose originals were deleted; nothing where there are none."""
    deleted_ids = [turn.key.turn_id for turn in loaded if turn.manifest.archive]
    return {DELETED_FIELD: deleted_ids} if deleted_ids else {}


def _recorded_messages(turn: Turn) -> tuple[Any, ...]:
    """The messages of an imported turn as they were imported, or query and answer of its compressed document."""
    text = turn.files.get(MESSAGES_FILE)
    if text is None and turn.manifest.archive:
        return tuple(_turn_messages(turn))
    if text is None:
        raise DocumentError(f"{turn.key}: {MESSAGES_FILE}: missing, expected the messages of a recorded turn", missing=True)
    return read_message_lines(text, where=f"{turn.key}: {MESSAGES_FILE}")


def _live_conversations(
    turns: TurnStore, imported: set[tuple[str, str]], user: UserId | None, on_fault: Callable[[DocumentError], None]
) -> Iterator[dict[str, Any]]:
    live_turns: list[tuple[str, str, TurnKey]] = []
    for key in turns.keys(user):
        try:
            manifest = turns.manifest(key)
        except DocumentError as error:
            on_fault(error)
            continue
        if not manifest.recorded:
            live_turns.append((manifest.user_id, manifest.session_id, key))
    for (owner, session), group in groupby(sorted(live_turns), key=lambda item: item[:2]):
        try:
            loaded = [turns.original(key) for _, _, key in group]
        except DocumentError as error:
            on_fault(error)
            continue
        name = f"{session}.live" if (owner, session) in imported else session
        messages = [message for turn in loaded for message in _turn_messages(turn)]
        header = {"id": name, "user_id": owner, "created_at": loaded[0].manifest.created_at}
        yield {**header, "messages": messages, **_deletion_fields(loaded)}


def _turn_messages(turn: Turn) -> list[dict[str, str]]:
    """The query and the answer of a turn as messages."""
    document = ContextDocument.parse(turn.context)
    answer = turn.files.get(_RESPONSE_FILE) or document.body(_ANSWER_SECTION)
    query = [{"role": "user", "content": document.query()}]
    return [*query, {"role": "assistant", "content": answer}] if answer else query
