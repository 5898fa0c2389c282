"""The turn index made again from the documents, and compared with them. The documents are the truth."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.ports.turn_storage import SearchIndex, TurnStore
from pandora_dagster.contracts.ports.user_storage import Sessions
from pandora_dagster.contracts.turns import IndexedMessage, Manifest, RebuildReport, Turn, TurnRow
from pandora_dagster.contracts.user.conversations import Message
from pandora_dagster.documents.turn_row import build_turn_row
from pandora_dagster.errors import ConversationError, DocumentError, UnknownTurnError
from pandora_dagster.stores.disk.duckdb_file import batches

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Preambles:
    """The messages before the first turn of an imported conversation; none without sessions."""

    sessions: Sessions | None = None

    def before(self, manifest: Manifest) -> tuple[Message, ...]:
        """The messages that are reported under this turn; raises DocumentError for a damaged session record."""
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
    """Make the index again beside the old one, then put it in its place.

    Turns that were saved while it was being made are added afterwards, so that no process waits. Raises StoreError.
    """
    faults: list[str] = []
    turns = 0

    def row_batches() -> Iterator[list[TurnRow]]:
        nonlocal turns
        for rows in batches(_rows(documents, preambles, documents.keys(), faults), _BATCH):
            yield rows
            turns += len(rows)
            progress(turns)

    damaged_file = index.rebuild(row_batches())
    index.put(list(_rows(documents, preambles, _changed(documents, index), [])))
    return RebuildReport(turns, tuple(faults), (damaged_file,) if damaged_file else ())


def verify_turns(documents: TurnStore, index: SearchIndex, preambles: Preambles = Preambles()) -> tuple[str, ...]:
    """Every difference between documents and index, each as one sentence; empty where they agree. Raises StoreError."""
    faults: list[str] = []
    rows = {(row.user_id, row.number): row for row in index.rows()}
    broken: set[TurnKey] = set()
    messages: Mapping[int, tuple[IndexedMessage, ...]] = {}
    user = ""
    for row in _rows(documents, preambles, documents.keys(), faults, broken):
        if row.user_id != user:
            user, messages = row.user_id, index.messages_by_turn(row.user_id)
        there = rows.pop((row.user_id, row.number), None)
        faults += _differences(row, there and there.model_copy(update={"messages": messages.get(row.number, ())}))
    gone = [(user, number) for user, number in rows if TurnKey(UserId(user), number) not in broken]
    faults += [f"{user}:turn_{number:06d}: in the index, but no document: expected no row" for user, number in gone]
    return tuple(faults)


def document_rows(documents: TurnStore, preambles: Preambles = Preambles()) -> Iterator[TurnRow]:
    """The rows of all turns that can be read, as their documents have them."""
    return _rows(documents, preambles, documents.keys(), [])


def _differences(row: TurnRow, there: TurnRow | None) -> Iterator[str]:
    where = f"{row.user_id}:{row.turn_id}"
    if there is None:
        yield f"{where}: missing from the index, expected a row"
        return
    for name in TurnRow.model_fields:
        wanted, found = getattr(row, name), getattr(there, name)
        if name == "messages":
            yield from _other_message(where, row.messages, there.messages)
        elif wanted != found:
            yield f"{where}: {name}: the index says {_short_repr(found)}, the documents say {_short_repr(wanted)}"


def _other_message(where: str, wanted: Sequence[IndexedMessage], found: Sequence[IndexedMessage]) -> Iterator[str]:
    """The first message that differs, and how many there are where that differs."""
    if len(wanted) != len(found):
        yield f"{where}: messages: the index has {len(found)}, the documents have {len(wanted)}"
    for right, there in zip(wanted, found, strict=False):
        if right != there:
            yield f"{where}: message {right.id}: the index says {_short_repr(there.text)}, the documents say {_short_repr(right.text)}"
            return


def _short_repr(value: object) -> str:
    text = repr(str(value) if isinstance(value, StrEnum) else value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _changed(documents: TurnStore, index: SearchIndex) -> Iterator[TurnKey]:
    """Turns whose manifest and row differ: those that changed during a rebuild."""
    known = {(row.user_id, row.number): _comparison_key(row.context_sha, row.state, row.last_activity, row.summary) for row in index.rows()}
    every: Iterable[TurnKey] = documents.keys()
    for key in every:
        try:
            manifest = documents.manifest(key)
        except (DocumentError, UnknownTurnError):
            continue
        summary = str((manifest.summary or {}).get("summary", ""))
        if known.get((key.user, key.number)) != _comparison_key(manifest.context_sha, manifest.state, manifest.last_activity, summary):
            yield key


def _comparison_key(*values: object) -> tuple[str, ...]:
    return tuple(str(value) for value in values)


def _rows(
    documents: TurnStore, preambles: Preambles, keys: Iterable[TurnKey], faults: list[str], broken: set[TurnKey] | None = None
) -> Iterator[TurnRow]:
    """The rows of the turns that can be read; the others are reported in `faults` and `broken`."""
    for key in keys:
        try:
            manifest, turn = documents.manifest(key), _original(documents, key, faults if broken is None else None)
            row = build_turn_row(manifest, turn.context, turn.files, preamble=preambles.before(manifest))
        except (DocumentError, UnknownTurnError, ConversationError) as error:
            faults.append(f"{key}: {error}")
            if broken is not None:
                broken.add(key)
            continue
        yield row


def _original(documents: TurnStore, key: TurnKey, faults: list[str] | None) -> Turn:
    """The turn's originals, so that an archived turn is found as before. Where they cannot be read, that is added to `faults` and the
    stored documents are returned; without `faults` it raises DocumentError."""
    try:
        return documents.original(key)
    except DocumentError as error:
        if faults is None or documents.manifest(key).archive is None:
            raise
        faults.append(f"{key}: {error}")
        return documents.load(key)
