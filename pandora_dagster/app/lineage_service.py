"""Lineage of one store: its index, the texts that it names, trees, verification and pages."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.archive.digest_reading import DigestReading, read_digest
from pandora_dagster.archive.level_batches import digest_edges, narrative_edges
from pandora_dagster.archive.lineage_proof import LinkCheck, check_links, text_by_hash
from pandora_dagster.archive.lineage_tree import Branch, rows_under, tree
from pandora_dagster.archive.lineage_view import LineageView, lineage_view
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.lineage import DocumentId, LineageEdge, digest_document, is_turn_owner
from pandora_dagster.contracts.ports.lineage_storage import DocumentTexts, LineageIndex
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.ports.turn_storage import TurnStore
from pandora_dagster.contracts.ports.user_storage import LevelStore
from pandora_dagster.documents.turn_entry import turn_entry
from pandora_dagster.errors import DamagedIndexError, DocumentError, InputError, PandoraError


def level_rows(files: LevelStore, turns: TurnStore, counter: TokenMeasure) -> Iterator[LineageEdge]:
    """The lineage of every readable narrative and digest."""
    for user in turns.users():
        with suppress(DocumentError):
            for narrative in files.narratives(user):
                tokens = {link.turn: _entry_tokens(TurnKey(user, link.turn), turns, counter) for link in narrative.links}
                yield from narrative_edges(narrative, entry_tokens=tokens)
        with suppress(DocumentError):
            if digest := files.digest(user):
                yield from digest_edges(digest)


def _entry_tokens(key: TurnKey, turns: TurnStore, counter: TokenMeasure) -> int:
    try:
        return counter.count(turn_entry(turns.manifest(key)))
    except PandoraError:
        return 0


_CONTEXT_FILE = "context.md"
_NO_TURN = re.compile(r"digest$|(?:session|notes|research_cache|webpage_cache)/|(?:preferences|facts)\.md$")
"""The start of a path of a document that belongs to no turn."""
_TURN_PART = re.compile(r"[^/#@]*")
OnStep = Callable[[int, int], None]
"""Receives the number of parts done, and of all parts."""
IndexRebuild = Callable[[Callable[[str], None], Callable[[int], None]], tuple[int, Path | None]]
"""Rebuilds the index with callbacks for faults and for progress; returns the number of rows, and where a damaged index is kept."""
_OWNERS_PER_BATCH = 200
"""Owners whose links are verified together."""


@dataclass(frozen=True, slots=True)
class LineageService:
    """The lineage of one store."""

    turns: TurnStore
    levels: LevelStore
    index: LineageIndex
    texts: Callable[[], DocumentTexts]
    """Opens a reader of document texts; one per walk through the lineage."""
    rebuild_index: IndexRebuild
    confirm_index: Callable[[], bool]
    """Marks the index as complete where it has the rows of all documents, and returns whether it has. Raises StoreError."""
    compare: Callable[[Iterable[TurnKey] | None], Iterator[str]]
    """One sentence for each difference between the rows of these turns, or of the whole store, and the documents. Raises StoreError."""

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
        turn_text, suffix = (path[: part.end()], path[part.end() :]) if part else (path, "")
        key = self.turns.resolve(f"{owner}:{turn_text}" if colon else turn_text)
        return DocumentId.parse(f"{key}/{_CONTEXT_FILE}{suffix}" if suffix[:1] in ("", "#") else f"{key}{suffix}")

    def ensure_index(self, *, report: Callable[[str], None], progress: Callable[[int], None] = lambda done: None) -> bool:
        """Rebuild the index where it is damaged or lacks rows; True where it was rebuilt. Raises StoreError."""
        fault = self.index.file.fault()
        if fault is not None and not isinstance(fault, DamagedIndexError):
            raise fault
        if fault is None and (self.index.is_complete() or self.confirm_index()):
            return False
        report(str(fault) if fault else "the lineage index lacks rows: it is built from the documents now")
        _, damaged_file = self.rebuild(report=report, progress=progress)
        if damaged_file:
            report(f"the damaged index is kept as {damaged_file}")
        return True

    def rebuild(self, *, report: Callable[[str], None], progress: Callable[[int], None] = lambda done: None) -> tuple[int, Path | None]:
        """Rebuild the index; returns the number of rows, and where a damaged index is kept. Raises StoreError."""
        return self.rebuild_index(report, progress)

    def verify(self) -> tuple[str, ...]:
        """One sentence for each difference between rows and documents. Raises StoreError."""
        return tuple(self.compare(None))

    def tree(self, document: DocumentId, *, depth: int | None = None) -> tuple[tuple[Branch, ...], dict[str, tuple[LineageEdge, ...]]]:
        """The tree under a document, and its rows. Raises InputError for an unknown document."""
        rows = rows_under(str(document), lambda documents: self.index.parents(document.user, documents), depth=depth)
        if not any(rows.values()) and (fault := text_by_hash(str(document), "", self.texts())[1]):
            raise InputError(f"{document}: {fault}")
        return tuple(tree(str(document), rows, depth=depth)), rows

    def prove(self, document: DocumentId | None = None, *, on_step: OnStep = lambda done, of: None) -> Iterator[LinkCheck | str]:
        """Verify every link under a document, or of the store, against the texts, and the rows against the manifests.

        A sentence is a difference between rows and manifests. Raises StoreError, InputError.
        """
        if document is None:
            owners = self.index.owners()
            yield from self.compare(None)
        else:
            edges = [edge for edges_of_child in self.tree(document)[1].values() for edge in edges_of_child]
            owners = tuple(sorted({(document.user, DocumentId.parse(end).owner) for edge in edges for end in (edge.child, edge.parent)}))
            owners = owners or ((document.user, document.owner),)
            turns = [context.turn.key for _, owner in owners if (context := _context_of(owner)) and context.turn]
            yield from self.compare(turns)
        texts = self.texts()
        for start in range(0, len(owners), _OWNERS_PER_BATCH):
            batch = owners[start : start + _OWNERS_PER_BATCH]
            for user in dict.fromkeys(user for user, _ in batch):
                yield from check_links(self.index.rows_of(user, [owner for owning_user, owner in batch if owning_user == user]), texts)
            on_step(start + len(batch), len(owners))

    def view(self, document: DocumentId, *, is_whole: bool = True) -> LineageView:
        """The content of the page of a document's lineage; without `is_whole` only with the document's own text and those of its sources.

        Raises InputError, StoreError."""
        branches, rows = self.tree(document)
        return lineage_view(branches, rows, self.texts(), derived=self._derived(document), readings=self._reading, is_whole=is_whole)

    def _reading(self, document: DocumentId) -> DigestReading | None:
        """A digest with the sources of its items; None for any other document."""
        if str(document) != digest_document(document.user) or (digest := self.levels.digest(document.user)) is None:
            return None
        return read_digest(digest, self.levels.narratives(document.user))

    def _derived(self, document: DocumentId) -> Iterator[LineageEdge]:
        """The links to what was made from a document, its sections or, of an archived one, its original."""
        name = _without_place(str(document))
        for edge in self.index.derived_from(document.user, f"{document.owner}/" if document.turn else name):
            if _without_place(edge.parent) == name != _without_place(edge.child):
                yield edge


def _without_place(document: str) -> str:
    """The document without its section, stored or cold."""
    return document.partition("#")[0].replace("/cold/", "/", 1)


def _context_of(owner: str) -> DocumentId | None:
    """The context.md of an owner that is a turn."""
    return DocumentId.parse(f"{owner}/{_CONTEXT_FILE}") if is_turn_owner(owner) else None
