"""Lineage of one store: its index, the texts that it names, trees, verification and pages."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pandora_dagster.archive.level_batches import digest_edges, narrative_edges
from pandora_dagster.archive.lineage_proof import LinkCheck, check_links, text_by_hash
from pandora_dagster.archive.lineage_view import LineageView, lineage_view
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.lineage import DocumentId, LineageEdge
from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
from pandora_dagster.contracts.ports.turn_storage import TurnStore
from pandora_dagster.contracts.ports.user_storage import NoteStore
from pandora_dagster.errors import DamagedIndexError, DocumentError, InputError, PandoraError
from pandora_dagster.language.timestamps import format_timestamp
from pandora_dagster.retrieval.lineage_tree import Branch, rows_under, tree
from pandora_dagster.retrieval.turn_row import turn_entry
from pandora_dagster.stores.disk.files import path_inside, read_text
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.lineage.document_texts import ReadsSource, StoredDocumentTexts
from pandora_dagster.stores.lineage.lineage_index import DuckLineageIndex
from pandora_dagster.stores.lineage.lineage_index_rebuild import (
    BATCH,
    EdgeSource,
    ExpectedLineage,
    is_turn,
    rebuild_lineage,
    verify_lineage,
)
from pandora_dagster.stores.user.level_files import LevelFiles
from pandora_dagster.stores.user.source_files import SourceFiles


def level_readers(files: LevelFiles) -> Mapping[str, ReadsSource]:
    """Readers of the documents `session/<id>` and `digest`: the text, then the text of a narrative before its newest parts."""

    def narrative(user: UserId, path: str) -> Iterable[str]:
        found = files.narrative(user, SessionId(path.removeprefix("session/")))
        if found is None:
            raise DocumentError(f"{user}:{path}: there is no such narrative: expected one", missing=True)
        return (found.model_copy(update={"parts": found.parts[:end]}).text for end in range(len(found.parts), 0, -1))

    def digest(user: UserId, path: str) -> Iterable[str]:
        if (found := files.digest(user)) is None:
            raise DocumentError(f"{user}:{path}: there is no digest: expected one", missing=True)
        return (found.text,)

    return {"session": narrative, "digest": digest}


def level_rows(files: LevelFiles, turns: TurnStore, counter: TokenMeasure) -> Iterator[LineageEdge]:
    """The lineage of every readable narrative and digest."""
    for user in turns.users():
        with suppress(DocumentError):
            for narrative in files.narratives(user):
                tokens = {link.turn: _entry_tokens(TurnKey(user, link.turn), turns, counter) for link in narrative.links}
                yield from narrative_edges(narrative, entry_tokens=tokens)
        with suppress(DocumentError):
            if found := files.digest(user):
                yield from digest_edges(found)


def _entry_tokens(key: TurnKey, turns: TurnStore, counter: TokenMeasure) -> int:
    try:
        return counter.count(turn_entry(turns.manifest(key)))
    except PandoraError:
        return 0


_CONTEXT = "context.md"
_NO_TURN = re.compile(r"digest$|(?:session|notes|research_cache|webpage_cache)/|(?:preferences|facts)\.md$")
_TURN_PART = re.compile(r"[^/#@]*")
OnStep = Callable[[int, int], None]
"""Receives the number of parts done, and of all parts."""


@dataclass(frozen=True, slots=True)
class LineageService:
    """The lineage of one store."""

    root: Path
    turns: TurnStore
    counter: TokenMeasure
    index: DuckLineageIndex
    sources: SourceFiles
    notes: NoteStore
    clock: Clock
    levels: Mapping[str, ReadsSource] = field(default_factory=dict[str, ReadsSource])
    """Readers of narratives (`session`) and digests (`digest`)."""
    records: Sequence[EdgeSource] = ()
    """The rows of narratives and digests, from their records."""

    def texts(self) -> StoredDocumentTexts:
        """A reader of document texts; open one per walk through the lineage."""
        stored = {kind: self._record for kind in ("research_cache", "webpage_cache")}
        pages = {name: self._page for name in ("preferences.md", "facts.md")}
        return StoredDocumentTexts(self.root, self.turns, {**stored, **pages, "notes": self._note, **self.levels})

    @property
    def expected(self) -> ExpectedLineage:
        """The rows that follow from the documents."""
        return ExpectedLineage(self.turns, self.texts(), self.counter, self.records)

    def resolve(self, text: str, *, user: UserId) -> DocumentId:
        """The document that a user names: an id; a turn or its short form, for its context.md; `digest` and the like of `user`.

        Raises BadIdError, UnknownTurnError.
        """
        name = text.strip()
        owner, colon, path = name.partition(":") if not _NO_TURN.match(name) else ("", "", name)
        if not colon:
            path = name
        if _NO_TURN.match(path):
            return DocumentId.parse(f"{owner if colon else user}:{path}")
        part = _TURN_PART.match(path)
        short, rest = (path[: part.end()], path[part.end() :]) if part else (path, "")
        key = self.turns.resolve(f"{owner}:{short}" if colon else short)
        return DocumentId.parse(f"{key}/{_CONTEXT}{rest}" if rest[:1] in ("", "#") else f"{key}{rest}")

    def ensure_index(self, *, report: Callable[[str], None], progress: Callable[[int], None] = lambda done: None) -> bool:
        """Rebuild the index where it is missing, damaged or incomplete; True where it was rebuilt. Raises StoreError."""
        fault = self.index.file.fault()
        if fault is not None and not isinstance(fault, DamagedIndexError):
            raise fault
        if fault is None and self.index.is_complete():
            return False
        report(str(fault) if fault else "the lineage index is missing or incomplete; it is rebuilt from the documents now")
        _, damaged_file = self.rebuild(report=report, progress=progress)
        if damaged_file:
            report(f"the damaged index is kept as {damaged_file}")
        return True

    def rebuild(self, *, report: Callable[[str], None], progress: Callable[[int], None] = lambda done: None) -> tuple[int, Path | None]:
        """Rebuild the index; returns the number of rows, and where a damaged index is kept. Raises StoreError."""
        return rebuild_lineage(self.expected, self.index, at=format_timestamp(self.clock()), report=report, progress=progress)

    def verify(self) -> tuple[str, ...]:
        """One sentence for each difference between rows and documents. Raises StoreError."""
        return tuple(verify_lineage(self.expected, self.index))

    def tree(self, document: DocumentId, *, depth: int | None = None) -> tuple[tuple[Branch, ...], dict[str, tuple[LineageEdge, ...]]]:
        """The tree under a document, and its rows. Raises InputError for an unknown document."""
        rows = rows_under(str(document), lambda documents: self.index.parents(document.user, documents), depth=depth)
        if not any(rows.values()) and (wrong := text_by_hash(str(document), "", self.texts())[1]):
            raise InputError(f"{document}: {wrong}")
        return tuple(tree(str(document), rows, depth=depth)), rows

    def prove(self, document: DocumentId | None = None, *, on_step: OnStep = lambda done, of: None) -> Iterator[LinkCheck | str]:
        """Verify every link under a document, or of the store, against the texts, and the rows against the manifests.

        A sentence is a difference between rows and manifests. Raises StoreError, InputError.
        """
        if document is None:
            owners = self.index.owners()
            yield from verify_lineage(self.expected, self.index)
        else:
            edges = [edge for found in self.tree(document)[1].values() for edge in found]
            owners = tuple(sorted({(document.user, DocumentId.parse(end).owner) for e in edges for end in (e.child, e.parent)}))
            owners = owners or ((document.user, document.owner),)
            turns = [found.turn.key for _, owner in owners if (found := _turn_of(owner)) and found.turn]
            yield from verify_lineage(self.expected, self.index, keys=turns)
        texts = self.texts()
        for start in range(0, len(owners), BATCH):
            batch = owners[start : start + BATCH]
            for user in dict.fromkeys(user for user, _ in batch):
                yield from check_links(self.index.rows_of(user, [owner for whose, owner in batch if whose == user]), texts)
            on_step(start + len(batch), len(owners))

    def view(self, document: DocumentId) -> LineageView:
        """The content of the page of a document's lineage. Raises InputError, StoreError."""
        branches, rows = self.tree(document)
        return lineage_view(branches, rows, self.texts())

    def _record(self, user: UserId, path: str) -> Iterable[str]:
        found = self.sources.path(user, path)
        if found is None:
            raise DocumentError(f"{user}:{path}: not among the stored sources: expected one", missing=True)
        return (read_text(path_inside(self.root, Path(found))),)

    def _note(self, user: UserId, path: str) -> Iterable[str]:
        return (self.notes.load(user, path.removeprefix("notes/")).text,)

    def _page(self, user: UserId, path: str) -> Iterable[str]:
        return (read_text(path_inside(self.root, Layout(self.root).user(user) / path)),)


def _turn_of(owner: str) -> DocumentId | None:
    return DocumentId.parse(f"{owner}/{_CONTEXT}") if is_turn(owner) else None
