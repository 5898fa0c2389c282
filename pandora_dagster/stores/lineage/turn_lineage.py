"""The lineage rows of one turn: what its documents were made from. Pure.

The rows are derived from the turn as it was written, which is in its folder while it is active and in its cold object once it is archived:
the same documents give the same rows. A recorded turn was made elsewhere: it has rows only once it is archived, and none of citations.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.lineage import SUMMARY, DocumentId, LineageEdge, Relation, document_id
from pandora_dagster.contracts.turns import Manifest, PhaseEffects, PhaseRecord, Turn
from pandora_dagster.documents.citations import REFERENCES_TITLE, cited_labels, source_references
from pandora_dagster.documents.passages import passages
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.turn_entry import turn_entry
from pandora_dagster.documents.turn_row import ANSWER_SECTION, RESPONSE_FILE
from pandora_dagster.stores.disk.files import sha
from pandora_dagster.stores.disk.layout import CONTEXT

# The claims of a section that cite a source, and where the source states them.

_CLAIM_BORDER = re.compile(r"(?:(?<!\s)\s+)?(?<!\\)\|\s*|;\s+|(?<=[.!?])\s+(?=[A-Z(\"'\d-])|\n")
_CITATION = re.compile(r"(?<!\s)\s*\[\d{1,4}\]")
_LINE_PREFIX = re.compile(r"^(?:\[(?:…\d+|\d+ (?:\w+ )?left out)\]: )?(?:[-*>#]+\s+|\d+\.\s+)?(?:\(\d{4}-\d\d-\d\d\)\s+)?")
"""What precedes a claim in its line: the mark of left-out text, a list sign, a date."""
_WORD = re.compile(r"[^\W_]{3,}|\d+")
_MIN_CLAIM_CHARACTERS, _MIN_CLAIM_WORDS, _MIN_WORD_SHARE, _MAX_SPANS = 12, 3, 0.6, 16
"""Shorter claims are not matched; a passage must have this share of a claim's words; more spans are not stored."""
Span = tuple[int, int]


def claims_of(body: str, labels: Iterable[str]) -> tuple[str, ...]:
    """The sentences and table cells in lines that cite one of `labels`, without the list of references."""
    cited = set(labels)
    # the space: `[n]:` at the start of a line, which `cited_labels` reads as no citation, cites here
    lines = (line for line in body.split(f"### {REFERENCES_TITLE}")[0].split("\n") if cited & set(cited_labels(f" {line}")))
    claims = (_LINE_PREFIX.sub("", _CITATION.sub("", claim).strip()) for line in lines for claim in _CLAIM_BORDER.split(line) if claim)
    return tuple(dict.fromkeys(claim.replace("\\|", "|") for claim in claims if len(claim) >= _MIN_CLAIM_CHARACTERS))


def cited_spans(claims: Sequence[str], source: str) -> tuple[Span, ...]:
    """The spans of `source` that state the claims: verbatim, else the one passage with most of a claim's words."""
    if not claims:
        return ()
    passage_words = [(span, frozenset(_words(source[slice(*span)]))) for span in passages(source)]
    spans = {span for claim in claims if (span := _verbatim_span(claim, source) or _most_similar_passage(claim, passage_words))}
    return tuple(sorted(spans))[:_MAX_SPANS]


def _verbatim_span(claim: str, source: str) -> Span | None:
    pattern = r"\s+".join(re.escape(word) for word in claim.split())
    match = re.search(pattern, source) if pattern else None
    return match.span() if match else None


def _most_similar_passage(claim: str, passage_words: Sequence[tuple[Span, frozenset[str]]]) -> Span | None:
    """The passage with most of the claim's words; None where none has enough of them, or two have equally many."""
    claim_words = frozenset(_words(claim))
    if len(claim_words) < _MIN_CLAIM_WORDS:
        return None
    ranked = sorted(((len(claim_words & words), span) for span, words in passage_words), reverse=True)[:2]
    if not ranked or ranked[0][0] < _MIN_WORD_SHARE * len(claim_words) or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
        return None
    return ranked[0][1]


def _words(text: str) -> Iterator[str]:
    return (word.group().casefold() for word in _WORD.finditer(text))


TOOL_RESULTS = "toolresults.md"
_LINKED_STATES = (TurnState.SAVED, TurnState.CLARIFY, TurnState.ARCHIVED)
_VERDICTS = ("kept", "equal", "recoverable", "dropped_by_rule", "mutated", "missing", "invented")
_TOOL_SECTION = 4
_CITING_SECTIONS = (2, _TOOL_SECTION, ANSWER_SECTION)
TokenCounter = Callable[[str], int]
DocumentReader = Callable[[DocumentId, str], str | None]
"""`(document, at)` -> the text of a turn's document as it was at that time; None where it cannot be read."""


def turn_edges(
    manifest: Manifest, original: Turn, *, phases: PhaseEffects, count: TokenCounter, read_document: DocumentReader
) -> tuple[LineageEdge, ...]:
    """The rows of a turn, none of one that is not completed. `original`: its documents before any archival; `manifest`: its state now."""
    if manifest.state not in _LINKED_STATES or (manifest.recorded and manifest.archive is None):
        return ()
    edges = _TurnEdges(manifest, original, phases, count, read_document)
    return (*archival_edges(manifest), *edges.sections(), *edges.compressions(), *edges.summary(), *edges.citations())


def archival_edges(manifest: Manifest) -> tuple[LineageEdge, ...]:
    """The rows from originals to compressed documents, from the manifest alone."""
    record, key = manifest.archive, manifest.key
    if record is None:
        return ()
    return tuple(
        LineageEdge(
            user_id=manifest.user_id,
            parent=document_id(key, document.name, cold=True),
            child=document_id(key, document.name),
            relation=Relation.COMPRESSED,
            parent_sha=document.sha_before,
            child_sha=document.sha_after,
            recipe=document.recipe,
            recipe_version=document.recipe_version,
            prompt_hash=document.prompt_hash,
            runtime=document.runtime,
            model=document.model,
            parent_tokens=document.tokens_before,
            child_tokens=document.tokens_after,
            verdicts=document.counts,
            call_id=next(iter(document.call_ids), ""),
            run_id=record.run_id,
            at=record.archived_at,
        )
        for document in record.documents
    )


@dataclass(frozen=True)
class _TurnEdges:
    """Makes the rows of one turn."""

    manifest: Manifest
    original: Turn
    phases: PhaseEffects
    count: TokenCounter
    read_document: DocumentReader

    @cached_property
    def document(self) -> ContextDocument:
        return ContextDocument.parse(self.original.context)

    @cached_property
    def written_at(self) -> str:
        return self.phases.written_at(self.manifest)

    @cached_property
    def tokens(self) -> int:
        return self.count(self.original.context)

    def id(self, name: str, section: int | None = None) -> str:
        return document_id(self.manifest.key, name, cold=self.manifest.archive is not None, section=section)

    def sections(self) -> Iterator[LineageEdge]:
        """The rows from each section to context.md."""
        context_sha, start = sha(self.original.context), len(self.document.preamble)
        for section in self.document.sections:
            end = start + len(section.text)
            yield self._edge(
                Relation.SECTION,
                parent=self.id(CONTEXT, section.number),
                child=self.id(CONTEXT),
                parent_sha=sha(section.text),
                child_sha=context_sha,
                span=(start, end),
                parent_tokens=self.count(section.text),
                child_tokens=self.tokens,
            )
            start = end

    def compressions(self) -> Iterator[LineageEdge]:
        """The rows to sections that were compressed while the turn was written, from the documents with their whole texts."""
        rows: dict[str, list[Mapping[str, Any]]] = {}
        for phase in self.manifest.phases:
            for row in _report_rows(phase, "facts", "compressions"):
                rows.setdefault(str(row.get("document", "")), []).append(row)
        for section in self.document.sections:
            number = section.number
            document_names = {_TOOL_SECTION: (TOOL_RESULTS,), ANSWER_SECTION: (RESPONSE_FILE,)}.get(number, ())
            for name in (*document_names, f"section_{number}_whole.md"):
                if name in rows and (text := self.original.files.get(name)) is not None:
                    yield self._edge(
                        Relation.COMPRESSED,
                        parent=self.id(name),
                        child=self.id(CONTEXT, number),
                        parent_sha=sha(text),
                        child_sha=sha(section.text),
                        **_compression_figures(rows[name]),
                    )

    def summary(self) -> Iterator[LineageEdge]:
        """The row from context.md to the turn's entry (level L1)."""
        if self.manifest.summary is None:
            return
        phase = next((p for p in self.manifest.phases if p.phase == self.phases.summary), None)
        text = turn_entry(self.manifest)
        yield self._edge(
            Relation.SUMMARIZED,
            parent=self.id(CONTEXT),
            child=document_id(self.manifest.key, SUMMARY),
            parent_sha=sha(self.original.context),
            child_sha=sha(text),
            parent_tokens=self.tokens,
            child_tokens=self.count(text),
            **(_phase_author(phase) if phase else {"runtime": str(self.manifest.summary.get("runtime", ""))}),
        )

    def citations(self) -> Iterator[LineageEdge]:
        """The rows from cited sources to sections, with the passages where they can be identified."""
        if self.manifest.recorded:
            return
        # section 2 decides where both list a label
        sources = {s.label: s.path for number in (_TOOL_SECTION, 2) for s in source_references(self.document.body(number))}
        for number in _CITING_SECTIONS:
            section, body = self.document.section(number), self.document.body(number)
            if section is None:
                continue
            labels_by_source: dict[DocumentId, list[str]] = {}
            for label in cited_labels(body):
                if (source := DocumentId.of_source(self.manifest.user_id, sources.get(label, ""))) is not None:
                    labels_by_source.setdefault(source, []).append(label)
            for parent, labels in labels_by_source.items():
                yield from self._citation_edges(parent, number, sha(section.text), claims_of(body, labels))

    def _citation_edges(self, parent: DocumentId, number: int, child_sha: str, claims: tuple[str, ...]) -> Iterator[LineageEdge]:
        text = self.read_document(parent, self.written_at) if parent.turn else None
        spans = cited_spans(claims, text) if text is not None else ()
        for span in spans or (None,):
            yield self._edge(
                Relation.CITED,
                parent=str(parent),
                child=self.id(CONTEXT, number),
                parent_sha="" if text is None else sha(text),
                child_sha=child_sha,
                span=span,
            )

    def _edge(self, relation: Relation, **fields: Any) -> LineageEdge:  # fields of a LineageEdge: str, int, a span, verdicts
        return LineageEdge.model_validate({"user_id": self.manifest.user_id, "relation": relation, "at": self.written_at, **fields})


def _phase_author(phase: PhaseRecord) -> dict[str, str]:
    """Recipe, model and time of what a phase wrote, from its last call."""
    calls = _report_rows(phase, "calls")
    call = {name: str(value) for name, value in calls[-1].items()} if calls else dict[str, str]()
    recipe = call.get("recipe", "")
    return {
        "recipe": recipe,
        "recipe_version": phase.recipes.get(recipe, ""),
        "prompt_hash": call.get("prompt", ""),
        "runtime": "+".join(phase.runtimes),
        "model": call.get("model", ""),
        "call_id": call.get("call_id", ""),
        "at": phase.finished_at,
    }


def _compression_figures(rows: list[Mapping[str, Any]]) -> dict[str, Any]:
    """The summed tokens and verdicts of a document's compressions; recipe and model from the last one."""
    last = rows[-1]
    call = {name: str(last.get(name, "")) for name in ("recipe", "recipe_version", "prompt_hash", "runtime", "model", "call_id")}
    sums = {name: sum(int(row.get(name, 0)) for row in rows) for name in ("facts", "tokens_before", "tokens_after", *_VERDICTS)}
    verdicts = {"total": sums["facts"], **{name: sums[name] for name in _VERDICTS}}
    return {**call, "parent_tokens": sums["tokens_before"], "child_tokens": sums["tokens_after"], "verdicts": verdicts}


def _report_rows(phase: PhaseRecord, *names: str) -> list[Mapping[str, Any]]:
    """The list of mappings at a path in a phase's report, [] where there is none."""
    value: object = phase.report
    for name in names:
        value = cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None
    return (
        [cast("Mapping[str, Any]", row) for row in cast("list[object]", value) if isinstance(row, Mapping)]
        if isinstance(value, list)
        else []
    )
