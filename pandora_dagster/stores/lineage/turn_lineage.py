"""The rows of lineage that one turn has: what its documents were made from. Pure; the same for the same documents, archived or not.

All of them hang on the turn as it was written: in the folder while it is active, in its cold object once it is archived. A recorded turn
is as it came, and has rows from its archival on.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, cast

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.lineage import SUMMARY, DocumentId, LineageEdge, Relation, document_id
from pandora_dagster.contracts.turns import Manifest, PhaseEffects, PhaseRecord, Turn
from pandora_dagster.documents.citations import REFERENCES_TITLE, cited_labels, source_references
from pandora_dagster.documents.passages import passages
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.turn_entry import turn_entry
from pandora_dagster.documents.turn_row import ANSWER_SECTION, RESPONSE_FILE
from pandora_dagster.stores.disk.layout import CONTEXT

# What a section says under a citation, and where that is in the source it names. Knows words and lines; knows no documents.
# Pure.

_PIECE = re.compile(r"\s*(?<!\\)\|\s*|;\s+|(?<=[.!?])\s+(?=[A-Z(\"'\d-])|\n")
_LABELS = re.compile(r"\s*\[\d{1,4}\]")
_OPENING = re.compile(r"^(?:\[(?:…\d+|\d+ (?:\w+ )?left out)\]: )?(?:[-*>#]+\s+|\d+\.\s+)?(?:\(\d{4}-\d\d-\d\d\)\s+)?")
"""A mark of what a compression left out, a list's sign, and a date: no words of a claim."""
_WORD = re.compile(r"[^\W_]{3,}|\d+")
_FEWEST_LETTERS, _FEWEST_WORDS, _SHARE, _MOST = 12, 3, 0.6, 16
Span = tuple[int, int]


def claims_of(body: str, labels: Iterable[str]) -> tuple[str, ...]:
    """The sentences and cells in the lines which cite one of `labels`; the list of references says nothing itself."""
    wanted = set(labels)
    lines = (line for line in body.split(f"### {REFERENCES_TITLE}")[0].split("\n") if wanted & set(cited_labels(f" {line}")))
    found = (_OPENING.sub("", _LABELS.sub("", piece).strip()) for line in lines for piece in _PIECE.split(line) if piece)
    return tuple(dict.fromkeys(piece.replace("\\|", "|") for piece in found if len(piece) >= _FEWEST_LETTERS))


def cited_spans(claims: Sequence[str], source: str) -> tuple[Span, ...]:
    """Characters of `source` that the claims come from: the words themselves, else the one passage that has most of them."""
    if not claims:
        return ()
    parts = [(span, frozenset(_words(source[slice(*span)]))) for span in passages(source)]
    found = {span for claim in claims if (span := _verbatim(claim, source) or _likest(claim, parts))}
    return tuple(sorted(found))[:_MOST]


def _verbatim(claim: str, source: str) -> Span | None:
    pattern = r"\s+".join(re.escape(word) for word in claim.split())
    found = re.search(pattern, source) if pattern else None
    return found.span() if found else None


def _likest(claim: str, parts: Sequence[tuple[Span, frozenset[str]]]) -> Span | None:
    """The passage with most of the claim's words; None where none has enough of them, or two have the same."""
    wanted = frozenset(_words(claim))
    if len(wanted) < _FEWEST_WORDS:
        return None
    shares = sorted(((len(wanted & words), span) for span, words in parts), reverse=True)[:2]
    if not shares or shares[0][0] < _SHARE * len(wanted) or (len(shares) > 1 and shares[0][0] == shares[1][0]):
        return None
    return shares[0][1]


def _words(text: str) -> Iterator[str]:
    return (word.group().casefold() for word in _WORD.finditer(text))


RESULTS = "toolresults.md"
_LINKED = (TurnState.SAVED, TurnState.CLARIFY, TurnState.ARCHIVED)
_OUTCOMES = ("kept", "equal", "recoverable", "dropped_by_rule", "mutated", "missing", "invented")
_CITING = (2, 4, ANSWER_SECTION)
Count = Callable[[str], int]
Look = Callable[[DocumentId, str], str | None]
"""`look(document, at)`: the text of a turn's document as one read it then; None where it cannot be read."""


def turn_edges(manifest: Manifest, original: Turn, *, phases: PhaseEffects, count: Count, look: Look) -> tuple[LineageEdge, ...]:
    """The rows of a turn; none of one that is not done. `original`: its documents before any archival, `manifest`: its current state."""
    if manifest.state not in _LINKED or (manifest.recorded and manifest.archive is None):
        return ()
    made = _Turn(manifest, original, phases, count, look)
    return (*archival_edges(manifest), *made.sections(), *made.compressions(), *made.summary(), *made.citations())


def archival_edges(manifest: Manifest) -> tuple[LineageEdge, ...]:
    """What an archival made of the originals: the manifest alone tells it."""
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
class _Turn:
    manifest: Manifest
    original: Turn
    phases: PhaseEffects
    count: Count
    look: Look

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
        """What context.md is put together from."""
        whole, start = _sha(self.original.context), len(self.document.preamble)
        for section in self.document.sections:
            end = start + len(section.text)
            yield self._edge(
                Relation.SECTION,
                parent=self.id(CONTEXT, section.number),
                child=self.id(CONTEXT),
                parent_sha=_sha(section.text),
                child_sha=whole,
                span=(start, end),
                parent_tokens=self.count(section.text),
                child_tokens=self.tokens,
            )
            start = end

    def compressions(self) -> Iterator[LineageEdge]:
        """Sections that were compressed while the turn was written, each from the document that keeps its whole text."""
        rows: dict[str, list[Mapping[str, Any]]] = {}
        for phase in self.manifest.phases:
            for row in _rows(phase, "facts", "compressions"):
                rows.setdefault(str(row.get("document", "")), []).append(row)
        for number, section in ((s.number, s) for s in self.document.sections):
            wholes = {4: (RESULTS,), ANSWER_SECTION: (RESPONSE_FILE,)}.get(number, ())
            for name in (*wholes, f"section_{number}_whole.md"):
                if name in rows and (text := self.original.files.get(name)) is not None:
                    yield self._edge(
                        Relation.COMPRESSED,
                        parent=self.id(name),
                        child=self.id(CONTEXT, number),
                        parent_sha=_sha(text),
                        child_sha=_sha(section.text),
                        **_figures(rows[name]),
                    )

    def summary(self) -> Iterator[LineageEdge]:
        """The turn's entry of level L1."""
        if self.manifest.summary is None:
            return
        phase = next((p for p in self.manifest.phases if p.phase == self.phases.summary), None)
        text = turn_entry(self.manifest)
        yield self._edge(
            Relation.SUMMARIZED,
            parent=self.id(CONTEXT),
            child=document_id(self.manifest.key, SUMMARY),
            parent_sha=_sha(self.original.context),
            child_sha=_sha(text),
            parent_tokens=self.tokens,
            child_tokens=self.count(text),
            **(_made_by(phase) if phase else {"runtime": str(self.manifest.summary.get("runtime", ""))}),
        )

    def citations(self) -> Iterator[LineageEdge]:
        """What the turn's sections name as their sources, with the passages where they can be identified."""
        if self.manifest.recorded:
            return
        sources = {s.label: s.path for number in (4, 2) for s in source_references(self.document.body(number))}
        for number in _CITING:
            section, body = self.document.section(number), self.document.body(number)
            linked: dict[str, list[str]] = {}
            for label in cited_labels(body) if section else ():
                if (found := DocumentId.of_source(self.manifest.user_id, sources.get(label, ""))) is not None:
                    linked.setdefault(str(found), []).append(label)
            for parent, labels in linked.items():
                yield from self._cited(DocumentId.parse(parent), number, _sha(section.text if section else ""), claims_of(body, labels))

    def _cited(self, parent: DocumentId, number: int, child_sha: str, claims: tuple[str, ...]) -> Iterator[LineageEdge]:
        text = self.look(parent, self.written_at) if parent.turn else None
        spans = cited_spans(claims, text) if text is not None else ()
        for span in spans or (None,):
            yield self._edge(
                Relation.CITED,
                parent=str(parent),
                child=self.id(CONTEXT, number),
                parent_sha="" if text is None else _sha(text),
                child_sha=child_sha,
                span=span,
            )

    def _edge(self, relation: Relation, **fields: Any) -> LineageEdge:  # fields of an Edge: str, int, a span, verdicts
        return LineageEdge.model_validate({"user_id": self.manifest.user_id, "relation": relation, "at": self.written_at, **fields})


def _made_by(phase: PhaseRecord) -> dict[str, str]:
    """Who made what a phase wrote, as its last call says."""
    calls = _rows(phase, "calls")
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


def _figures(rows: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Tokens and verdicts of all compressions of a document together; who made them, as the last one says."""
    last = rows[-1]
    call = {name: str(last.get(name, "")) for name in ("recipe", "recipe_version", "prompt_hash", "runtime", "model", "call_id")}
    sums = {name: sum(int(row.get(name, 0)) for row in rows) for name in ("facts", "tokens_before", "tokens_after", *_OUTCOMES)}
    verdicts = {"total": sums["facts"], **{name: sums[name] for name in _OUTCOMES}}
    return {**call, "parent_tokens": sums["tokens_before"], "child_tokens": sums["tokens_after"], "verdicts": verdicts}


def _rows(phase: PhaseRecord, *names: str) -> list[Mapping[str, Any]]:
    """The rows of a phase's report at a place; none where there is no list of mappings."""
    found: object = phase.report
    for name in names:
        found = cast("Mapping[str, object]", found).get(name) if isinstance(found, Mapping) else None
    return (
        [cast("Mapping[str, Any]", row) for row in cast("list[object]", found) if isinstance(row, Mapping)]
        if isinstance(found, list)
        else []
    )


def _sha(text: str) -> str:
    return sha256(text.encode()).hexdigest()
