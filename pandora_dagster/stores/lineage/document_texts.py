"""The DocumentTexts port: the stored text of a document by its id, from a turn's folder, its cold object or a user's sources.

A document that contradicts its manifest is read all the same: the caller verifies its hash. A fault of one document does not affect the
turn's other documents. Nothing is changed.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.lineage import SUMMARY, DocumentId, TurnDocument
from pandora_dagster.contracts.ports.turn_storage import TurnStore
from pandora_dagster.contracts.ports.user_storage import LevelStore, NoteStore, SourceStore
from pandora_dagster.contracts.turns import Manifest, PhaseEffects, Turn
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.turn_entry import turn_entry
from pandora_dagster.errors import DocumentError, OriginalsDeletedError, PandoraError
from pandora_dagster.stores.disk.files import path_inside, read_text
from pandora_dagster.stores.disk.layout import CONTEXT, Layout, document_name

_MAX_CACHED_TURNS = 64
"""Turns that are kept in memory: what cites a turn is often near it."""
SourceReader = Callable[[UserId, str], Iterable[str]]
"""The text of a user's source or record by its path in the id, then its known earlier states; raises DocumentError."""


def source_readers(root: Path, levels: LevelStore, sources: SourceStore, notes: NoteStore) -> dict[str, SourceReader]:
    """The readers of documents that belong to no turn, by the first part of their path."""

    def narrative(user: UserId, path: str) -> Iterable[str]:
        """The text, then the text before its newest parts."""
        stored = levels.narrative(user, SessionId(path.removeprefix("session/")))
        if stored is None:
            raise DocumentError(f"{user}:{path}: there is no such narrative: expected one", missing=True)
        return (stored.model_copy(update={"parts": stored.parts[:end]}).text for end in range(len(stored.parts), 0, -1))

    def digest(user: UserId, path: str) -> Iterable[str]:
        if (stored := levels.digest(user)) is None:
            raise DocumentError(f"{user}:{path}: there is no digest: expected one", missing=True)
        return (stored.text,)

    def source(user: UserId, path: str) -> Iterable[str]:
        if (file := sources.path(user, path)) is None:
            raise DocumentError(f"{user}:{path}: not among the stored sources: expected one", missing=True)
        return (read_text(path_inside(root, Path(file))),)

    def page(user: UserId, path: str) -> Iterable[str]:
        return (read_text(path_inside(root, Layout(root).user(user) / path)),)

    def note(user: UserId, path: str) -> Iterable[str]:
        return (notes.load(user, path.removeprefix("notes/")).text,)

    pages = {"preferences.md": page, "facts.md": page, "notes": note}
    return {"research_cache": source, "webpage_cache": source, **pages, "session": narrative, "digest": digest}


@dataclass(slots=True)
class _TurnTexts:
    """What was read of a turn: its revisions as stored and as before an archival, or the errors of reading them."""

    stored: dict[tuple[int, str], Turn | PandoraError] = field(default_factory=dict[tuple[int, str], "Turn | PandoraError"])
    original: dict[tuple[int, str], Turn | PandoraError] = field(default_factory=dict[tuple[int, str], "Turn | PandoraError"])
    """By revision and the one document that was read beside context.md; "" for all documents."""
    manifest: Manifest | None = None


@dataclass(frozen=True, slots=True)
class StoredDocumentTexts:
    """The `DocumentTexts` port over one store. `sources`: the readers of documents without a turn, by the first part of their path.

    It caches what it reads, so an object serves one thread and one batch of work.
    """

    root: Path
    turns: TurnStore
    sources: Mapping[str, SourceReader]
    phases: PhaseEffects
    _cache: OrderedDict[TurnKey, _TurnTexts] = field(default_factory=OrderedDict[TurnKey, _TurnTexts])

    def text_at(self, document: DocumentId, *, at: str) -> str | None:
        """The turn's document as it was at `at`, before any archival; None where it cannot be read."""
        turn_document = document.turn
        if turn_document is None:
            return None
        try:
            for number in range(self.manifest(turn_document.key).revision, -1, -1):
                turn = self._original_turn(turn_document.key, number, turn_document.name)
                # times are whole seconds: a revision of the same second is later
                if number == 0 or self.phases.written_at(turn.manifest) < at:
                    return _document_of(turn, turn_document.name)
        except PandoraError:
            return None
        return None

    def candidates(self, document: DocumentId) -> Iterator[str]:
        """The text, then the texts that it had before a re-run or an archival; raises DocumentError where it is missing or damaged."""
        turn_document = document.turn
        if turn_document is None:
            source_type = document.path.split("/")[0]
            if source_type not in self.sources:
                raise DocumentError(f"{document}: it is not stored: expected a turn, a narrative, a digest or a source", missing=True)
            yield from self.sources[source_type](document.user, document.path)
            return
        for text in self._turn_texts(turn_document):
            if turn_document.section is None:
                yield text
            elif (section := ContextDocument.parse(text).section(turn_document.section)) is not None:
                yield section.text

    def is_deleted(self, document: DocumentId) -> bool:
        """Whether the document is an original that the retention rule deleted."""
        turn_document = document.turn
        if turn_document is None or turn_document.name == SUMMARY:
            return False
        try:
            manifest = self.manifest(turn_document.key)
            if manifest.archive is not None:
                self._original_turn(turn_document.key, manifest.revision)
        except OriginalsDeletedError:
            return True
        except PandoraError:
            pass
        return False

    def manifest(self, key: TurnKey) -> Manifest:
        """The manifest of a turn, read once; raises DocumentError where it is missing or damaged."""
        cached = self._cached(key)
        if cached.manifest is None:
            try:
                cached.manifest = self.turns.manifest(key)
            except DocumentError:
                raise
            except PandoraError as error:
                raise DocumentError(str(error), missing=True) from error
        return cached.manifest

    def _turn_texts(self, turn_document: TurnDocument) -> Iterator[str]:
        """The texts of a turn's document, the stored one first, then those of older revisions and of the originals."""
        manifest = self.manifest(turn_document.key)
        if turn_document.name == SUMMARY:
            yield turn_entry(manifest)
            return
        newest = manifest.revision if turn_document.revision is None else turn_document.revision
        if manifest.archive is None:
            yield self._stored_text(turn_document, newest)
            for number in range(newest - 1, -1, -1) if turn_document.revision is None else ():
                yield self._stored_text(turn_document, number)
            return
        if not turn_document.cold:
            yield self._stored_text(turn_document, manifest.revision)
        for number in range(newest, -1, -1) if turn_document.revision is None else (newest,):
            yield _document_of(self._original_turn(turn_document.key, number), turn_document.name)

    def _stored_text(self, turn_document: TurnDocument, number: int) -> str:
        """A document in the turn's folder; where the turn contradicts its manifest, the document is read without a check."""
        turn = self._read_once(
            self._cached(turn_document.key).stored, (number, ""), lambda: self.turns.load(turn_document.key, revision=number)
        )
        if isinstance(turn, Turn):
            return _document_of(turn, turn_document.name)
        name = turn_document.name if turn_document.name == CONTEXT else document_name(turn_document.name)
        try:
            return read_text(path_inside(self.root, Path(self.turns.path(turn_document.key, revision=number)) / name), may_be_empty=True)
        except DocumentError:
            raise
        except PandoraError as error:
            raise DocumentError(str(error), missing=True) from error

    def _original_turn(self, key: TurnKey, number: int, name: str = "") -> Turn:
        """A revision as it was before any archival. With `name` only this document and context.md are read, unless the turn is archived."""
        only_name = "" if self.manifest(key).archive else name
        only = (only_name,) if only_name else None
        turn = self._read_once(
            self._cached(key).original, (number, only_name), lambda: self.turns.original(key, revision=number, only=only)
        )
        if not isinstance(turn, Turn):
            raise DocumentError(str(turn), missing=isinstance(turn, DocumentError) and turn.missing)
        if (turn.manifest.user_id, turn.manifest.turn_id) != (key.user, key.turn_id):
            actual = f"{turn.manifest.user_id}:{turn.manifest.turn_id}"
            raise DocumentError(f"{key}: its cold object holds the originals of {actual[:200]}: expected its own")
        if turn.manifest.archive is not None:
            raise OriginalsDeletedError(f"{key}: its originals were deleted by rule: expected originals within PANDORA_COLD_KEEP_DAYS")
        return turn

    def _cached(self, key: TurnKey) -> _TurnTexts:
        """The cache entry of a turn; the least recently used one is dropped for a new one."""
        if key in self._cache:
            self._cache.move_to_end(key)
        else:
            self._cache[key] = _TurnTexts()
            if len(self._cache) > _MAX_CACHED_TURNS:
                self._cache.popitem(last=False)
        return self._cache[key]

    @staticmethod
    def _read_once(
        cache: dict[tuple[int, str], Turn | PandoraError], key: tuple[int, str], read: Callable[[], Turn]
    ) -> Turn | PandoraError:
        """The cached turn or error of `key`; `read` is called where there is none."""
        if key not in cache:
            try:
                cache[key] = read()
            except PandoraError as error:
                cache[key] = error
        return cache[key]


def _document_of(turn: Turn, name: str) -> str:
    if name == CONTEXT:
        return turn.context
    if name not in turn.files:
        raise DocumentError(f"{turn.key}/{name}: its manifest names no such document: expected one of its own", missing=True)
    return turn.files[name]
