"""A document's lineage as one page for a browser: the tree, and each compressed text beside its original, every fact by its verdict.

Verdicts are made anew, by the ledger of the original and the text as it lies; the tree shows those that were recorded. Credentials are
taken out. Knows which text stands where; `text.html_page` knows markup.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pandora_dagster.archive.lineage_proof import text_by_hash
from pandora_dagster.compression import Outcome, Rank, Verification, build_ledger, detect_content_type, verify
from pandora_dagster.compression.compressor import reference_line
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.lineage import DocumentId, LineageEdge, Relation
from pandora_dagster.contracts.ports.lineage_storage import DocumentTexts
from pandora_dagster.documents.citations import citation_spans, source_references
from pandora_dagster.documents.html_page import Mark, element, escape, highlight, link, page, table
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.retrieval.lineage_tree import Branch, describe_branch, draw_tree
from pandora_dagster.retrieval.turn_lineage import CONTEXT, cited_document

MOST_TEXTS = 200
LONGEST_TEXT = 200_000
"""Texts that a page shows, and characters of one."""
_MOST_ROWS = 200
_DERIVATIONS = (Relation.COMPRESSED, Relation.SUMMARISED, Relation.DIGESTED)
_LEGEND = {
    Outcome.KEPT: "kept: it stands there as it was",
    Outcome.EQUAL: "equal: it stands there in other words",
    Outcome.RECOVERABLE: "recoverable: a reference leads to it",
    Outcome.DROPPED_BY_RULE: "dropped by rule",
    Outcome.MISSING: "left out: it stands in the original alone",
    Outcome.MUTATED: "changed",
    Outcome.INVENTED: "not in the original",
}


def lineage_page(branches: Sequence[Branch], rows: Mapping[str, tuple[LineageEdge, ...]], texts: DocumentTexts) -> str:
    """The page of a tree and the rows that it was made of, the document itself first."""
    shown = _Page(rows, texts)
    for branch in branches:
        shown.anchors.setdefault(branch.document, f"d{len(shown.anchors) + 1}")
    blocks = "".join(block for document in list(shown.anchors) for block in shown.block(document))
    root = branches[0].document
    left_out = sum("#" not in d for d in shown.anchors) - len(shown.done)
    note = f"{left_out} documents of the tree are not shown here: a page shows {MOST_TEXTS} texts." if left_out > 0 else ""
    legend = "".join(element("li", element("mark", escape(text), class_=outcome.value)) for outcome, text in _LEGEND.items())
    legend += element("li", element("mark", "a passage that is cited", class_="span")) + element("li", "a line below: a critical fact")
    head = element("h1", escape(f"Lineage of {root}")) + (element("p", escape(note), class_="told") if note else "")
    return page(
        f"Lineage of {root}",
        head + shown.tree(branches) + element("h3", "Facts of an original") + f'<ul class="legend">{legend}</ul>' + blocks,
    )


@dataclass(slots=True)
class _Page:
    rows: Mapping[str, tuple[LineageEdge, ...]]
    texts: DocumentTexts
    anchors: dict[str, str] = field(default_factory=dict[str, str])
    """Document -> the id of its place on the page."""
    done: set[str] = field(default_factory=set[str])
    """Documents whose text stands on the page."""
    placed: set[str] = field(default_factory=set[str])
    """Ids that stand somewhere below the tree."""

    def tree(self, branches: Sequence[Branch]) -> str:
        """The tree, each document a link to its place; one that has none below has it here."""
        lines: list[str] = []
        for before, branch in draw_tree(branches):
            anchor = self.anchors[branch.document]
            here = "" if anchor in self.placed else anchor
            self.placed.add(anchor)
            name = element("span", escape(branch.document), id=here) if here else link(anchor, branch.document)
            lines.append(f"{escape(before)}{name}  {escape(describe_branch(branch))}")
        return element("pre", "\n" + "\n".join(lines), class_="tree")

    def block(self, document: str) -> Iterator[str]:
        """A document's part of the page: beside what it was made from, or alone; nothing where it stands there already."""
        made_from = [e for e in self.rows.get(document, ()) if e.relation in _DERIVATIONS]
        if "#" in document and not made_from:
            return
        if document in self.done and not made_from:
            return
        sha = next((e.child_sha for e in self.rows.get(document, ())), "") or self._linked_sha(document)
        heading = element("h2", escape(document))
        if not made_from:
            yield heading + element("div", self._pane(document, sha), class_="pane") if self._has_room() else ""
            return
        text = self._text(document, sha)
        for place, edge in enumerate(made_from):
            if not self._has_room():
                return
            before = self._text(edge.parent, edge.parent_sha)
            judged = _verdicts(edge, before, text) if before is not None and text is not None else None
            left = element("h3", escape(f"from {edge.parent}")) + self._pane(edge.parent, edge.parent_sha, judged)
            right = element("h3", escape(f"{edge.relation} to {document}"))
            right += self._pane(document, sha) if place == 0 else element("p", link(self.anchors[document], document))
            yield (heading if place == 0 else "") + element(
                "p", escape(describe_branch(Branch(1, edge.parent, edge.parent_sha, (edge,)))), class_="told"
            )
            yield element("div", element("div", left) + element("div", right), class_="sides") + (_facts(judged) if judged else "")

    def _has_room(self) -> bool:
        return len(self.done) < MOST_TEXTS

    def _pane(self, document: str, sha: str, judged: Verification | None = None) -> str:
        """A document's text with its marks, once; the second time a link to it. Why it can not be shown, where it can not."""
        if document in self.done:
            return element("p", link(self.anchors[document], f"{document}, shown above"))
        self.done.add(document)
        text, wrong = text_by_hash(document, sha, self.texts)
        if text is None:
            return element("p", escape(wrong), id=self._place(document), class_="told")
        plain = redact(text)
        marks = [Mark(0, 0, anchor=self._place(document)), *self._cited_marks(document, text, plain), *self._links(document, plain)]
        marks += [*self._section_marks(document, plain), *(_fact_marks(judged) if judged else ())]
        cut = plain[:LONGEST_TEXT]
        more = element("p", escape(f"{len(plain) - LONGEST_TEXT:,} characters more"), class_="told") if len(plain) > LONGEST_TEXT else ""
        return highlight(cut, marks) + more

    def _place(self, document: str) -> str:
        anchor = self.anchors.get(document, "")
        if not anchor or anchor in self.placed:
            return ""
        self.placed.add(anchor)
        return anchor

    def _text(self, document: str, sha: str) -> str | None:
        return text_by_hash(document, sha, self.texts)[0]

    def _linked_sha(self, document: str) -> str:
        """The hash that a link to the document has."""
        return next((e.parent_sha for edges in self.rows.values() for e in edges if e.parent == document), "")

    def _cited_marks(self, document: str, text: str, plain: str) -> Iterator[Mark]:
        """Passages that others cite; their places are told of the text with its credentials."""
        for edges in self.rows.values() if text == plain else ():
            for edge in edges:
                if edge.parent == document and edge.relation is Relation.CITED and edge.span:
                    yield Mark(*edge.span, kind="span", title=f"cited by {edge.child}", href=self.anchors.get(edge.child, ""))

    def _links(self, document: str, plain: str) -> Iterator[Mark]:
        """Each citation of a context.md as a link to the document that it names, where that is on the page."""
        place = DocumentId.parse(document)
        if place.turn is None or place.turn.name != CONTEXT:
            return
        parsed = ContextDocument.parse(plain)
        paths = {s.label: s.path for number in (4, 2) for s in source_references(parsed.body(number))}
        for start, end, label in citation_spans(plain):
            found = cited_document(place.user, paths[label]) if label in paths else None
            if found is not None:
                yield Mark(start, end, href=self.anchors.get(str(found), ""))

    def _section_marks(self, document: str, plain: str) -> Iterator[Mark]:
        """Where the sections of a document begin that have a place in the tree."""
        parsed = ContextDocument.parse(plain)
        start = len(parsed.preamble)
        for section in parsed.sections:
            if f"{document}#{section.number}" in self.anchors and (anchor := self._place(f"{document}#{section.number}")):
                yield Mark(start, start, anchor=anchor)
            start += len(section.text)


def _verdicts(edge: LineageEdge, before: str, after: str) -> Verification | None:
    """What became of each fact; None of what was not held to a ledger, or stands whole."""
    if edge.relation is not Relation.COMPRESSED or before == after:
        return None
    place = DocumentId.parse(edge.parent).turn
    name = place.name if place else ""
    kind = ContentType.CONTEXT_DOC if name == CONTEXT else detect_content_type(name, before)
    return verify(build_ledger(before, kind), redact(before), after, reference=reference_line(name, kind))


def _fact_marks(judged: Verification) -> Iterator[Mark]:
    for verdict in judged.verdicts:
        if (fact := verdict.fact) is not None:
            said = [f"{fact.kind.value}, {fact.rank.value}: {verdict.outcome.value.replace('_', ' ')}", verdict.reason, verdict.evidence]
            kind = verdict.outcome.value + (" critical" if fact.rank is Rank.CRITICAL else "")
            yield Mark(fact.start, fact.end, kind=kind, title="; ".join(part for part in said if part)[:400])


def _facts(judged: Verification) -> str:
    """How many facts had which verdict, and those that do not stand as they were."""
    counts = ", ".join(f"{judged.counts[o.value]} {o.value.replace('_', ' ')}" for o in Outcome if judged.counts[o.value])
    other = [v for v in judged.verdicts if v.outcome is not Outcome.KEPT]
    rows = [
        (v.outcome.value, v.fact.rank.value if v.fact else "", v.fact.kind.value if v.fact else "", v.text[:300], v.reason) for v in other
    ]
    summary = element("summary", escape(f"{judged.counts['total']} facts: {counts}"))
    more = element("p", escape(f"{len(rows) - _MOST_ROWS} more")) if len(rows) > _MOST_ROWS else ""
    shown = table(("Verdict", "Rank", "Kind", "Fact", "Reason"), rows[:_MOST_ROWS]) + more if rows else ""
    return element("details", summary + shown)
