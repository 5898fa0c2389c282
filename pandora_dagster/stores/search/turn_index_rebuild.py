"""Rebuilds the turn index from the documents, and compares it with them. The documents are the source of truth."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.ports.turn_storage import SearchIndex, TurnStore
from pandora_dagster.contracts.ports.user_storage import Sessions
from pandora_dagster.contracts.turns import IndexedMessage, Manifest, RebuildReport, Turn, TurnRow
from pandora_dagster.contracts.user.conversations import Message
from pandora_dagster.documents.turn_row import build_turn_row
from pandora_dagster.errors import ConversationError, DocumentError, UnknownTurnError
from pandora_dagster.stores.disk.duckdb_file import batches

_BATCH_TURNS = 500
"""Turns that a rebuild stores in one transaction."""
_MAX_REPR_CHARACTERS = 80
_FIXED_FIELDS = ("session_id", "created_at", "recorded", "revision")
"""Fields of a row that no phase changes."""


@dataclass(frozen=True, slots=True)
class Preambles:
    """The messages before the first turn of an imported conversation; none without sessions."""

    sessions: Sessions | None = None

    def of_turn(self, manifest: Manifest) -> tuple[Message, ...]:
        """The preamble of the conversation that begins with this turn, else (); raises DocumentError for a damaged session record."""
        if self.sessions is None or not manifest.recorded or not manifest.first_message:
            return ()
        record = self.sessions.find(UserId(manifest.user_id), SessionId(manifest.session_id))
        return record.preamble if record and len(record.preamble) == manifest.first_message else ()


def rebuild_turns(
    documents: TurnStore,
    index: SearchIndex,
    preambles: Preambles = Preambles(),
    *,
    progress: Callable[[int], None] = lambda turns: None,
) -> RebuildReport:
    """Build the index beside the old one, then replace it.

    Turns that were saved meanwhile are added afterwards, so that no process waits. Raises StoreError.
    """
    faults: list[str] = []
    turns = 0

    def row_batches() -> Iterator[list[TurnRow]]:
        nonlocal turns
        for rows in batches(_document_rows(documents, preambles, documents.keys(), faults), _BATCH_TURNS):
            yield rows
            turns += len(rows)
            progress(turns)

    damaged_file = index.rebuild(row_batches())
    index.put(list(_document_rows(documents, preambles, _changed_turns(documents, index), [])))
    return RebuildReport(turns, tuple(faults), (damaged_file,) if damaged_file else ())


def verify_turns(
    documents: TurnStore, index: SearchIndex, preambles: Preambles = Preambles(), *, newest: int | None = None
) -> tuple[str, ...]:
    """Every difference between documents and index, each as one sentence; empty where they agree. Raises StoreError.

    `newest`: compare only so many of each user's newest turns.
    """
    faults: list[str] = []
    keys = list(documents.keys())
    if newest is not None:
        keys = [key for _, group in groupby(keys, key=lambda key: key.user) for key in list(group)[-newest:]]
    compared = {(str(key.user), key.number) for key in keys}
    rows = {(row.user_id, row.number): row for row in index.rows() if newest is None or (row.user_id, row.number) in compared}
    unreadable: set[TurnKey] = set()
    messages: Mapping[int, tuple[IndexedMessage, ...]] = {}
    user = ""
    for row in _document_rows(documents, preambles, keys, faults, unreadable):
        if row.user_id != user:
            user, messages = row.user_id, index.messages_by_turn(row.user_id)
        indexed = rows.pop((row.user_id, row.number), None)
        faults += _differences(row, indexed and indexed.model_copy(update={"messages": messages.get(row.number, ())}))
    without_document = [(user, number) for user, number in rows if TurnKey(UserId(user), number) not in unreadable]
    faults += [f"{user}:turn_{number:06d}: in the index, but no document: expected no row" for user, number in without_document]
    return tuple(faults)


def document_rows(documents: TurnStore, preambles: Preambles = Preambles()) -> Iterator[TurnRow]:
    """The rows of all turns that can be read, as their documents have them."""
    return _document_rows(documents, preambles, documents.keys(), [])


def _differences(row: TurnRow, indexed: TurnRow | None) -> Iterator[str]:
    """Where the indexed row differs from `row`, which is made from the documents."""
    where = f"{row.user_id}:{row.turn_id}"
    if indexed is None:
        yield f"{where}: missing from the index, expected a row"
        return
    is_open = row.state is TurnState.OPEN is indexed.state  # its row is written again once it is completed, or halts
    for name in _FIXED_FIELDS if is_open else TurnRow.model_fields:
        expected, stored = getattr(row, name), getattr(indexed, name)
        if name == "messages":
            yield from _message_differences(where, row.messages, indexed.messages)
        elif expected != stored:
            yield f"{where}: {name}: the index says {_short_repr(stored)}, the documents say {_short_repr(expected)}"


def _message_differences(where: str, expected: Sequence[IndexedMessage], indexed: Sequence[IndexedMessage]) -> Iterator[str]:
    """How many messages each has, where that differs, and the first message that differs."""
    if len(expected) != len(indexed):
        yield f"{where}: messages: the index has {len(indexed)}, the documents have {len(expected)}"
    for message, stored in zip(expected, indexed, strict=False):
        if message != stored:
            texts = f"the index says {_short_repr(stored.text)}, the documents say {_short_repr(message.text)}"
            yield f"{where}: message {message.id}: {texts}"
            return


def _short_repr(value: object) -> str:
    """A value as messages show it, cut off where it is long."""
    text = repr(str(value) if isinstance(value, StrEnum) else value)
    return text if len(text) <= _MAX_REPR_CHARACTERS else f"{text[: _MAX_REPR_CHARACTERS - 3]}..."


def _changed_turns(documents: TurnStore, index: SearchIndex) -> Iterator[TurnKey]:
    """Turns whose manifest and row differ: those that changed during a rebuild."""
    indexed = {
        (row.user_id, row.number): _comparison_key(row.context_sha, row.state, row.last_activity, row.summary) for row in index.rows()
    }
    keys: Iterable[TurnKey] = documents.keys()
    for key in keys:
        try:
            manifest = documents.manifest(key)
        except (DocumentError, UnknownTurnError):
            continue
        summary = str((manifest.summary or {}).get("summary", ""))
        if indexed.get((key.user, key.number)) != _comparison_key(manifest.context_sha, manifest.state, manifest.last_activity, summary):
            yield key


def _comparison_key(*values: object) -> tuple[str, ...]:
    return tuple(str(value) for value in values)


def _document_rows(
    documents: TurnStore, preambles: Preambles, keys: Iterable[TurnKey], faults: list[str], unreadable: set[TurnKey] | None = None
) -> Iterator[TurnRow]:
    """The rows of the turns that can be read; the others are added to `faults` and `unreadable`.

    With `unreadable`, an archived turn whose originals cannot be read is such a fault; without it, its row is made from the compressed
    documents."""
    for key in keys:
        try:
            manifest, turn = documents.manifest(key), _load_original(documents, key, faults if unreadable is None else None)
            row = build_turn_row(manifest, turn.context, turn.files, preamble=preambles.of_turn(manifest))
        except (DocumentError, UnknownTurnError, ConversationError) as error:
            faults.append(f"{key}: {error}")
            if unreadable is not None:
                unreadable.add(key)
            continue
        yield row


def _load_original(documents: TurnStore, key: TurnKey, faults: list[str] | None) -> Turn:
    """The turn with its originals, so that an archived turn is found as before.

    Where they cannot be read, that is added to `faults` and the stored documents are returned; without `faults` it raises DocumentError.
    """
    try:
        return documents.original(key)
    except DocumentError as error:
        if faults is None or documents.manifest(key).archive is None:
            raise
        faults.append(f"{key}: {error}")
        return documents.load(key)
