"""The content of a document's lineage page: the tree, what was made from it, and each compressed text beside its original.

Verdicts are computed again from the original and the stored text; the tree has the recorded ones. Credentials are removed. `api` writes the
HTML.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pandora_dagster.archive.digest_reading import DigestReading
from pandora_dagster.archive.lineage_proof import text_by_hash
from pandora_dagster.archive.lineage_tree import Branch, describe_branch
from pandora_dagster.archive.text_comparison import Mark, TextComparison, compare
from pandora_dagster.compression.content_detection import detect_content_type
from pandora_dagster.compression.original_reference import reference_line
from pandora_dagster.compression.verification.facts import Outcome
from pandora_dagster.compression.verification.text_facts import find_facts
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.lineage import DocumentId, LineageEdge, Relation
from pandora_dagster.contracts.ports.lineage_storage import DocumentTexts
from pandora_dagster.documents.citations import citation_spans, source_references
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.documents.sections import ContextDocument

MAX_TEXTS = 200
"""Texts of one page."""
MAX_CHARACTERS = 200_000
"""Characters of one text."""
_MAX_NESTED_LEVEL = 40
"""Deeper lines of the tree are shown on this level."""
_CONTEXT_FILE = "context.md"
_DERIVATIONS = (Relation.COMPRESSED, Relation.SUMMARIZED, Relation.DIGESTED)


@dataclass(frozen=True, slots=True)
class TreeLine:
    """A line of the tree: `closes` levels end after it."""

    document: str
    description: str
    level: int = 0
    has_sources: bool = False
    closes: int = 0
    anchor: str = ""
    """The document's id on the page, where its text is not shown."""


@dataclass(frozen=True, slots=True)
class Pane:
    """The text of a document, or the reason why it is not shown (`fault`)."""

    text: str = ""
    marks: tuple[Mark, ...] = ()
    omitted: int = 0
    """Characters that are not shown."""
    fault: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class LineageSource:
    """A document that another one was made from: compared with it, or its text; neither where it is on the page already."""

    document: str
    description: str
    pane: Pane | None = None
    comparison: TextComparison | None = None


@dataclass(frozen=True, slots=True)
class LineageBlock:
    """One document of the page: its own text, except where it is compared or shown above, and what it was made from."""

    document: str
    pane: Pane | None = None
    sources: tuple[LineageSource, ...] = ()


@dataclass(frozen=True, slots=True)
class DerivedDocument:
    """A document that was made from the one that is shown."""

    document: str
    description: str


@dataclass(frozen=True, slots=True)
class LineageTotals:
    """The documents of the tree, tokens before and after, and the recorded verdicts: of the document, else of all documents below it."""

    documents: int
    tokens_before: int
    tokens_after: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LineageView:
    """The content of a lineage page. `omitted` counts the documents of the tree whose texts are not on the page.

    `anchors`: document -> its id on the page."""

    document: str
    totals: LineageTotals
    tree: tuple[TreeLine, ...]
    blocks: tuple[LineageBlock, ...]
    derived: tuple[DerivedDocument, ...] = ()
    omitted: int = 0
    anchors: Mapping[str, str] = field(default_factory=dict[str, str])


def lineage_view(
    branches: Sequence[Branch],
    rows: Mapping[str, tuple[LineageEdge, ...]],
    texts: DocumentTexts,
    *,
    derived: Iterable[LineageEdge] = (),
    readings: Callable[[DocumentId], DigestReading | None] = lambda _: None,
    is_whole: bool = True,
) -> LineageView:
    """Build the page of a tree from its rows, the document itself first; without `is_whole` with its own text and those of its sources
    only. `derived`: rows of what was made from it; `readings`: a document as a person reads it, None where that is its text."""
    builder = _ViewBuilder(rows, texts, readings)
    for branch in branches:
        builder.anchors.setdefault(branch.document, f"d{len(builder.anchors) + 1}")
    root = branches[0].document
    blocks = tuple(block for document in (list(builder.anchors) if is_whole else [root]) if (block := builder.block(document)))
    omitted = sum("#" not in d for d in builder.anchors) - len(builder.shown) if is_whole else 0
    used_by = tuple(DerivedDocument(e.child, describe_branch(Branch(1, e.child, e.child_sha, (e,)))) for e in derived)
    tree = builder.tree(branches)
    return LineageView(root, _totals(root, rows), tree, blocks, used_by, max(0, omitted), builder.anchors)


def _totals(root: str, rows: Mapping[str, tuple[LineageEdge, ...]]) -> LineageTotals:
    made = [edge for edges in rows.values() for edge in edges if edge.relation in _DERIVATIONS]
    own = [edge for edge in made if edge.child == root]
    judged = [edge for edge in own if edge.verdicts] or [edge for edge in made if edge.verdicts]
    counts = {name: sum(edge.verdicts.get(name, 0) for edge in judged) for name in ("total", *Outcome)} if judged else {}
    documents = {end.partition("#")[0] for edges in rows.values() for edge in edges for end in (edge.parent, edge.child)} | {root}
    return LineageTotals(len(documents), sum(edge.parent_tokens for edge in own), max((e.child_tokens for e in own), default=0), counts)


@dataclass(slots=True)
class _ViewBuilder:
    """Assigns each document its id on the page, and shows each text and places each id once."""

    rows: Mapping[str, tuple[LineageEdge, ...]]
    texts: DocumentTexts
    readings: Callable[[DocumentId], DigestReading | None]
    anchors: dict[str, str] = field(default_factory=dict[str, str])
    """Document -> its id on the page."""
    shown: set[str] = field(default_factory=set[str])
    """Documents whose text is on the page."""
    placed: set[str] = field(default_factory=set[str])
    """Ids that are on the page already."""

    def tree(self, branches: Sequence[Branch]) -> tuple[TreeLine, ...]:
        """The tree; a document without a text on the page has its id here."""
        levels = [min(branch.level, _MAX_NESTED_LEVEL) for branch in branches]
        return tuple(
            TreeLine(
                branch.document, describe_branch(branch), level, follower > level, max(0, level - follower), self._claim(branch.document)
            )
            for branch, level, follower in zip(branches, levels, [*levels[1:], 0], strict=True)
        )

    def block(self, document: str) -> LineageBlock | None:
        """The document with what it was made from; None where it is on the page already."""
        made_from = [e for e in self.rows.get(document, ()) if e.relation in _DERIVATIONS]
        if not made_from and (document in self.shown or (self.shown and "#" in document)):
            return None
        sha = next((e.child_sha for e in self.rows.get(document, ())), "") or self._linked_sha(document)
        is_compressed = any(e.relation is Relation.COMPRESSED and e.parent_sha != e.child_sha for e in made_from)
        pane = None if is_compressed else self._pane(document, sha)
        sources = tuple(source for edge in made_from if (source := self._source(edge, sha)))
        pane = pane or self._pane(document, sha)
        return LineageBlock(document, pane, sources) if pane or sources else None

    def _source(self, edge: LineageEdge, sha: str) -> LineageSource | None:
        """What a document was made from: both in rows where one was compressed to the other, else its text."""
        if len(self.shown) >= MAX_TEXTS:
            return None
        description = describe_branch(Branch(1, edge.parent, edge.parent_sha, (edge,)))
        before, after = self._text(edge.parent, edge.parent_sha), self._text(edge.child, sha)
        is_compared = edge.relation is Relation.COMPRESSED and before is not None and after is not None and before != after
        if is_compared and not self.shown & {edge.parent, edge.child} and before is not None and after is not None:
            return LineageSource(edge.parent, description, comparison=self._comparison(edge, before, after))
        return LineageSource(edge.parent, description, self._pane(edge.parent, edge.parent_sha))

    def _comparison(self, edge: LineageEdge, before: str, after: str) -> TextComparison:
        self.shown |= {edge.parent, edge.child}
        turn_document = DocumentId.parse(edge.parent).turn
        name = turn_document.name if turn_document else ""
        content_type = ContentType.CONTEXT_DOC if name == _CONTEXT_FILE else detect_content_type(name, before)
        return compare(
            find_facts(before),
            after,
            reference=reference_line(name, content_type),
            original_marks=self._marks(edge.parent, before, redact(before)),
            shortened_marks=self._marks(edge.child, after, redact(after)),
        )

    def _pane(self, document: str, sha: str) -> Pane | None:
        """The text of a document with its marks; None where it is on the page already, or the page is full."""
        if document in self.shown or len(self.shown) >= MAX_TEXTS:
            return None
        self.shown.add(document)
        text, fault = text_by_hash(document, sha, self.texts)
        if text is None:
            return Pane(fault=fault, anchor=self._claim(document))
        reading = self.readings(DocumentId.parse(document))
        redacted = redact(reading.text if reading else text)
        if reading:
            links = reading.marks if redacted == reading.text else ()  # their places are those of the unredacted text
            marks = (Mark(0, 0, anchor=self._claim(document)), *links)
        else:
            marks = tuple(self._marks(document, text, redacted))
        return Pane(redacted[:MAX_CHARACTERS], marks, max(0, len(redacted) - MAX_CHARACTERS))

    def _marks(self, document: str, text: str, redacted: str) -> list[Mark]:
        """Where the document and its sections begin, what it cites, and which passages of it are cited."""
        return [
            Mark(0, 0, anchor=self._claim(document)),
            *self._cited_marks(document, text, redacted),
            *self._citation_marks(document, redacted),
            *self._section_marks(document, redacted),
        ]

    def _claim(self, document: str) -> str:
        """The id of a document on the first call, which places it; "" afterwards."""
        anchor = self.anchors.get(document, "")
        if not anchor or anchor in self.placed:
            return ""
        self.placed.add(anchor)
        return anchor

    def _text(self, document: str, sha: str) -> str | None:
        """The stored text with this hash, None where there is none."""
        return text_by_hash(document, sha, self.texts)[0]

    def _linked_sha(self, document: str) -> str:
        """The hash of a document by a link from it; "" where none has one."""
        return next((e.parent_sha for edges in self.rows.values() for e in edges if e.parent == document), "")

    def _cited_marks(self, document: str, text: str, redacted: str) -> Iterator[Mark]:
        """The passages that other documents cite. Spans count the characters of the unredacted text: a redacted text has no marks."""
        for edges in self.rows.values() if text == redacted else ():
            for edge in edges:
                if edge.parent == document and edge.relation is Relation.CITED and edge.span:
                    yield Mark(*edge.span, kind="span", title=f"cited by {edge.child}", href=edge.child)

    def _citation_marks(self, document: str, redacted: str) -> Iterator[Mark]:
        """A mark for each citation in a context.md: a link to the cited document, where that is on the page."""
        document_id = DocumentId.parse(document)
        if document_id.turn is None or document_id.turn.name != _CONTEXT_FILE:
            return
        parsed = ContextDocument.parse(redacted)
        paths = {s.label: s.path for number in (4, 2) for s in source_references(parsed.body(number))}
        for start, end, label in citation_spans(redacted):
            cited = DocumentId.of_source(document_id.user, paths[label]) if label in paths else None
            if cited is not None:
                yield Mark(start, end, href=str(cited))

    def _section_marks(self, document: str, redacted: str) -> Iterator[Mark]:
        """An anchor at the start of each section that is in the tree."""
        parsed = ContextDocument.parse(redacted)
        start = len(parsed.preamble)
        for section in parsed.sections:
            if f"{document}#{section.number}" in self.anchors and (anchor := self._claim(f"{document}#{section.number}")):
                yield Mark(start, start, anchor=anchor)
            start += len(section.text)
