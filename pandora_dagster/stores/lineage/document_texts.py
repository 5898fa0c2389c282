"""The texts that document ids name, as stored: in a turn's folder, in its cold object, among a user's sources. Changes nothing.

A document that contradicts its manifest is read as it is: the caller verifies its hash. What cannot be read is reported once, and
takes nothing from the turn's other documents.
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

_MOST = 64
"""Turns that are kept in memory: what cites a turn is often near it."""
ReadsSource = Callable[[UserId, str], Iterable[str]]
"""The text of a user's source or record by its path in the id, then its known earlier states; raises DocumentError."""


def source_readers(root: Path, levels: LevelStore, sources: SourceStore, notes: NoteStore) -> dict[str, ReadsSource]:
    """The readers of documents that belong to no turn, by the first part of their path."""

    def narrative(user: UserId, path: str) -> Iterable[str]:
        """The text, then the text before its newest parts."""
        found = levels.narrative(user, SessionId(path.removeprefix("session/")))
        if found is None:
            raise DocumentError(f"{user}:{path}: there is no such narrative: expected one", missing=True)
        return (found.model_copy(update={"parts": found.parts[:end]}).text for end in range(len(found.parts), 0, -1))

    def digest(user: UserId, path: str) -> Iterable[str]:
        if (found := levels.digest(user)) is None:
            raise DocumentError(f"{user}:{path}: there is no digest: expected one", missing=True)
        return (found.text,)

    def source(user: UserId, path: str) -> Iterable[str]:
        if (found := sources.path(user, path)) is None:
            raise DocumentError(f"{user}:{path}: not among the stored sources: expected one", missing=True)
        return (read_text(path_inside(root, Path(found))),)

    def page(user: UserId, path: str) -> Iterable[str]:
        return (read_text(path_inside(root, Layout(root).user(user) / path)),)

    def note(user: UserId, path: str) -> Iterable[str]:
        return (notes.load(user, path.removeprefix("notes/")).text,)

    pages = {"preferences.md": page, "facts.md": page, "notes": note}
    return {"research_cache": source, "webpage_cache": source, **pages, "session": narrative, "digest": digest}


@dataclass(slots=True)
class _TurnTexts:
    """What was read of a turn: the revisions as stored and as they were before an archival, or why they cannot be read."""

    lying: dict[tuple[int, str], Turn | PandoraError] = field(default_factory=dict[tuple[int, str], "Turn | PandoraError"])
    original: dict[tuple[int, str], Turn | PandoraError] = field(default_factory=dict[tuple[int, str], "Turn | PandoraError"])
    """By revision, and by the one document that was read of it beside context.md; "" for all."""
    manifest: Manifest | None = None


@dataclass(frozen=True, slots=True)
class StoredDocumentTexts:
    """The `DocumentTexts` port over one store. `sources` reads what belongs to no turn, by the first part of its path. For one thread
    and one walk: it reads each text once."""

    root: Path
    turns: TurnStore
    sources: Mapping[str, ReadsSource]
    phases: PhaseEffects
    _known: OrderedDict[TurnKey, _TurnTexts] = field(default_factory=OrderedDict[TurnKey, _TurnTexts])

    def cited(self, document: DocumentId, *, at: str) -> str | None:
        """The turn's document as it was at `at`, before any archival; None where it cannot be read."""
        place = document.turn
        if place is None:
            return None
        try:
            for number in range(self.manifest(place.key).revision, -1, -1):
                turn = self._original(place.key, number, place.name)
                if number == 0 or self.phases.written_at(turn.manifest) < at:  # times are whole seconds: one of the same second came after
                    return _document_of(turn, place.name)
        except PandoraError:
            return None
        return None

    def candidates(self, document: DocumentId) -> Iterator[str]:
        """The text, then those in its place before a re-run or an archival; raises DocumentError where it is gone or damaged."""
        place = document.turn
        if place is None:
            kind = document.path.split("/")[0]
            if kind not in self.sources:
                raise DocumentError(f"{document}: nothing here keeps it: expected a turn, a narrative, a digest or a source", missing=True)
            yield from self.sources[kind](document.user, document.path)
            return
        for text in self._whole(place):
            if place.section is None:
                yield text
            elif (section := ContextDocument.parse(text).section(place.section)) is not None:
                yield section.text

    def is_deleted(self, document: DocumentId) -> bool:
        """Whether it was an original that was deleted by rule."""
        place = document.turn
        if place is None or place.name == SUMMARY:
            return False
        try:
            manifest = self.manifest(place.key)
            if manifest.archive is not None:
                self._original(place.key, manifest.revision)
        except OriginalsDeletedError:
            return True
        except PandoraError:
            pass
        return False

    def manifest(self, key: TurnKey) -> Manifest:
        """Read once; raises DocumentError where it is gone or damaged."""
        known = self._of(key)
        if known.manifest is None:
            try:
                known.manifest = self.turns.manifest(key)
            except DocumentError:
                raise
            except PandoraError as error:
                raise DocumentError(str(error), missing=True) from error
        return known.manifest

    def _whole(self, place: TurnDocument) -> Iterator[str]:
        manifest = self.manifest(place.key)
        if place.name == SUMMARY:
            yield turn_entry(manifest)
            return
        newest = manifest.revision if place.revision is None else place.revision
        if manifest.archive is None:
            yield self._stored_text(place, newest)
            for number in range(newest - 1, -1, -1) if place.revision is None else ():
                yield self._stored_text(place, number)
            return
        if not place.cold:
            yield self._stored_text(place, manifest.revision)
        for number in range(newest, -1, -1) if place.revision is None else (newest,):
            yield _document_of(self._original(place.key, number), place.name)

    def _stored_text(self, place: TurnDocument, number: int) -> str:
        """A document in the turn's folder; where the turn contradicts its manifest, as it lies."""
        turn = self._once(self._of(place.key).lying, (number, ""), lambda: self.turns.load(place.key, revision=number))
        if isinstance(turn, Turn):
            return _document_of(turn, place.name)
        name = place.name if place.name == CONTEXT else document_name(place.name)
        try:
            return read_text(path_inside(self.root, Path(self.turns.path(place.key, revision=number)) / name), may_be_empty=True)
        except DocumentError:
            raise
        except PandoraError as error:
            raise DocumentError(str(error), missing=True) from error

    def _original(self, key: TurnKey, number: int, name: str = "") -> Turn:
        """The revision before any archival; with `name`, of a turn that is not archived this document and context.md alone."""
        part = "" if self.manifest(key).archive else name
        only = (part,) if part else None
        found = self._once(self._of(key).original, (number, part), lambda: self.turns.original(key, revision=number, only=only))
        if not isinstance(found, Turn):
            raise DocumentError(str(found), missing=isinstance(found, DocumentError) and found.missing)
        if (found.manifest.user_id, found.manifest.turn_id) != (key.user, key.turn_id):
            theirs = f"{found.manifest.user_id}:{found.manifest.turn_id}"
            raise DocumentError(f"{key}: its cold object holds the originals of {theirs[:200]}: expected its own")
        if found.manifest.archive is not None:
            raise OriginalsDeletedError(f"{key}: its originals were deleted by rule: expected them where PANDORA_COLD_KEEP_DAYS keeps them")
        return found

    def _of(self, key: TurnKey) -> _TurnTexts:
        if key in self._known:
            self._known.move_to_end(key)
        else:
            self._known[key] = _TurnTexts()
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        return self._known[key]

    @staticmethod
    def _once(known: dict[tuple[int, str], Turn | PandoraError], part: tuple[int, str], read: Callable[[], Turn]) -> Turn | PandoraError:
        if part not in known:
            try:
                known[part] = read()
            except PandoraError as error:
                known[part] = error
        return known[part]


def _document_of(turn: Turn, name: str) -> str:
    if name == CONTEXT:
        return turn.context
    if name not in turn.files:
        raise DocumentError(f"{turn.key}/{name}: its manifest names no such document: expected one of its own", missing=True)
    return turn.files[name]
