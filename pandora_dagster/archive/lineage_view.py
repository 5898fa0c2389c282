"""The content of a document's lineage page: the tree, and each compressed text beside its original, every fact with its verdict.

Verdicts are computed again from the original and the stored text; the tree has the recorded ones. Credentials are removed. `api` writes the
HTML.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pandora_dagster.archive.lineage_proof import text_by_hash
from pandora_dagster.archive.lineage_tree import Branch, describe_branch, draw_tree
from pandora_dagster.compression import detect_content_type
from pandora_dagster.compression.compressor import reference_line
from pandora_dagster.compression.verification.facts import Outcome, Rank
from pandora_dagster.compression.verification.verifier import Verification, verify
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.lineage import DocumentId, LineageEdge, Relation
from pandora_dagster.contracts.ports.record_storage import DocumentTexts
from pandora_dagster.documents.citations import citation_spans, source_references
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.execution.fit.summarization_engine import fact_rows

MAX_TEXTS = 200
"""Texts of one page."""
MAX_CHARACTERS = 200_000
"""Characters of one text."""
_CONTEXT_FILE = "context.md"
_MAX_TITLE_CHARACTERS = 400
_DERIVATIONS = (Relation.COMPRESSED, Relation.SUMMARIZED, Relation.DIGESTED)
LEGEND = {
    Outcome.KEPT: "kept: unchanged",
    Outcome.EQUAL: "equal: kept in other words",
    Outcome.RECOVERABLE: "recoverable: a reference leads to it",
    Outcome.DROPPED_BY_RULE: "dropped by rule",
    Outcome.MISSING: "missing: only in the original",
    Outcome.MUTATED: "changed",
    Outcome.INVENTED: "not in the original",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A range of characters with a CSS class (`kind`), a title, a link or an anchor. Where classes overlap, the shortest range is shown.

    `href` and `anchor` are ids of the page. An anchor is placed at `start`.
    """

    start: int
    end: int
    kind: str = ""
    title: str = ""
    href: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class TreeLine:
    """A line of the tree. `anchor` is the document's id where its text is not on the page, else `href` leads to the text."""

    indent: str
    document: str
    description: str
    anchor: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Pane:
    """The text of a document, or the reason why it is not shown (`fault`), or a link to where it is shown (`href`, `label`)."""

    heading: str = ""
    text: str = ""
    marks: tuple[Mark, ...] = ()
    omitted: int = 0
    """Characters that are not shown."""
    fault: str = ""
    anchor: str = ""
    href: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class FactSummary:
    """The number of facts with each verdict, and the rows of `fact_rows` for those that are not kept unchanged."""

    counts: str
    rows: tuple[Mapping[str, str], ...]
    omitted: int


@dataclass(frozen=True, slots=True)
class Derivation:
    """A document beside the one that it was made from."""

    description: str
    parent: Pane
    child: Pane
    facts: FactSummary | None = None


@dataclass(frozen=True, slots=True)
class LineageBlock:
    """One document of the page: what it was made from, or its own text where it has no derivation."""

    document: str
    derivations: tuple[Derivation, ...] = ()
    pane: Pane | None = None


@dataclass(frozen=True, slots=True)
class LineageView:
    """The content of a lineage page. `omitted` counts the documents of the tree whose texts are not on the page."""

    document: str
    tree: tuple[TreeLine, ...]
    blocks: tuple[LineageBlock, ...]
    omitted: int = 0


def lineage_view(branches: Sequence[Branch], rows: Mapping[str, tuple[LineageEdge, ...]], texts: DocumentTexts) -> LineageView:
    """Build the page of a tree from its rows, the document itself first."""
    builder = _ViewBuilder(rows, texts)
    for branch in branches:
        builder.anchors.setdefault(branch.document, f"d{len(builder.anchors) + 1}")
    blocks = tuple(block for document in list(builder.anchors) if (block := builder.block(document)))
    omitted = sum("#" not in d for d in builder.anchors) - len(builder.shown)
    return LineageView(branches[0].document, builder.tree(branches), blocks, max(0, omitted))


@dataclass(slots=True)
class _ViewBuilder:
    """Assigns each document its id on the page, and shows each text and places each id once."""

    rows: Mapping[str, tuple[LineageEdge, ...]]
    texts: DocumentTexts
    anchors: dict[str, str] = field(default_factory=dict[str, str])
    """Document -> its id on the page."""
    shown: set[str] = field(default_factory=set[str])
    """Documents whose text is on the page."""
    placed: set[str] = field(default_factory=set[str])
    """Ids that are on the page already."""

    def tree(self, branches: Sequence[Branch]) -> tuple[TreeLine, ...]:
        """The tree with links to the texts; a document without a text on the page has its id here."""
        lines: list[TreeLine] = []
        for indent, branch in draw_tree(branches):
            anchor = self.anchors[branch.document]
            target = {"href": anchor} if anchor in self.placed else {"anchor": anchor}
            self.placed.add(anchor)
            lines.append(TreeLine(indent, branch.document, describe_branch(branch), **target))
        return tuple(lines)

    def block(self, document: str) -> LineageBlock | None:
        """The document beside what it was made from, or alone; None where it is on the page already."""
        made_from = [e for e in self.rows.get(document, ()) if e.relation in _DERIVATIONS]
        if not made_from and ("#" in document or document in self.shown or not self._can_show_more()):
            return None
        sha = next((e.child_sha for e in self.rows.get(document, ())), "") or self._linked_sha(document)
        if not made_from:
            return LineageBlock(document, pane=self._pane(document, sha))
        text = self._text(document, sha)
        derivations: list[Derivation] = []
        for edge in made_from:
            if not self._can_show_more():
                break
            before = self._text(edge.parent, edge.parent_sha)
            verification = _verification(edge, before, text) if before is not None and text is not None else None
            parent = self._pane(edge.parent, edge.parent_sha, heading=f"from {edge.parent}", verification=verification)
            heading = f"{edge.relation} to {document}"
            child = (
                Pane(heading, href=self.anchors[document], label=document) if derivations else self._pane(document, sha, heading=heading)
            )
            description = describe_branch(Branch(1, edge.parent, edge.parent_sha, (edge,)))
            derivations.append(Derivation(description, parent, child, _fact_summary(verification) if verification else None))
        return LineageBlock(document, tuple(derivations)) if derivations else None

    def _can_show_more(self) -> bool:
        return len(self.shown) < MAX_TEXTS

    def _pane(self, document: str, sha: str, *, heading: str = "", verification: Verification | None = None) -> Pane:
        """The text of a document with its marks; the second time, a link to the first."""
        if document in self.shown:
            return Pane(heading, href=self.anchors[document], label=f"{document}, shown above")
        self.shown.add(document)
        text, fault = text_by_hash(document, sha, self.texts)
        if text is None:
            return Pane(heading, fault=fault, anchor=self._claim_anchor(document))
        redacted = redact(text)
        marks = [
            Mark(0, 0, anchor=self._claim_anchor(document)),
            *self._cited_marks(document, text, redacted),
            *self._citation_marks(document, redacted),
        ]
        marks += [*self._section_marks(document, redacted), *(_fact_marks(verification) if verification else ())]
        return Pane(heading, redacted[:MAX_CHARACTERS], tuple(marks), max(0, len(redacted) - MAX_CHARACTERS))

    def _claim_anchor(self, document: str) -> str:
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
                    yield Mark(*edge.span, kind="span", title=f"cited by {edge.child}", href=self.anchors.get(edge.child, ""))

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
                yield Mark(start, end, href=self.anchors.get(str(cited), ""))

    def _section_marks(self, document: str, redacted: str) -> Iterator[Mark]:
        """An anchor at the start of each section that is in the tree."""
        parsed = ContextDocument.parse(redacted)
        start = len(parsed.preamble)
        for section in parsed.sections:
            if f"{document}#{section.number}" in self.anchors and (anchor := self._claim_anchor(f"{document}#{section.number}")):
                yield Mark(start, start, anchor=anchor)
            start += len(section.text)


def _verification(edge: LineageEdge, before: str, after: str) -> Verification | None:
    """The verdict on each fact of a compressed text; None for an unchanged text and for other relations, which have no facts verified."""
    if edge.relation is not Relation.COMPRESSED or before == after:
        return None
    turn_document = DocumentId.parse(edge.parent).turn
    name = turn_document.name if turn_document else ""
    content_type = ContentType.CONTEXT_DOC if name == _CONTEXT_FILE else detect_content_type(name, before)
    return verify(before, after, reference=reference_line(name, content_type))


def _fact_marks(verification: Verification) -> Iterator[Mark]:
    for verdict in verification.verdicts:
        if (fact := verdict.fact) is not None:
            head = f"{fact.kind.value}, {fact.rank.value}: {verdict.outcome.value.replace('_', ' ')}"
            title = "; ".join(part for part in (head, verdict.reason, verdict.evidence) if part)
            kind = verdict.outcome.value + (" critical" if fact.rank is Rank.CRITICAL else "")
            yield Mark(fact.start, fact.end, kind=kind, title=title[:_MAX_TITLE_CHARACTERS])


def _fact_summary(verification: Verification) -> FactSummary:
    counts = ", ".join(f"{verification.counts[o.value]} {o.value.replace('_', ' ')}" for o in Outcome if verification.counts[o.value])
    changed = [verdict for verdict in verification.verdicts if verdict.outcome is not Outcome.KEPT]
    rows = fact_rows(changed)
    return FactSummary(f"{verification.counts['total']} facts: {counts}", rows, len(changed) - len(rows))
