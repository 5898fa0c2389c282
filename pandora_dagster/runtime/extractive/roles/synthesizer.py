"""Role `synthesizer`: the answer as the best verbatim spans of sections 2 and 4, each with its citation, most relevant first."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.citations import cited_labels, source_references
from pandora_dagster.documents.meta import subsection_metas
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.language.relative_days import strip_days
from pandora_dagster.language.sentences import sentences
from pandora_dagster.runtime.extractive.output_budget import Draft, largest
from pandora_dagster.runtime.extractive.roles.raw_results import raw_spans
from pandora_dagster.runtime.extractive.roles.tool_arguments import statement
from pandora_dagster.runtime.extractive.roles.tool_planner import results
from pandora_dagster.runtime.extractive.spans.citation_labels import Labels
from pandora_dagster.runtime.extractive.spans.document_lines import OVER, quote
from pandora_dagster.runtime.extractive.spans.document_spans import Span, SpanReader
from pandora_dagster.runtime.extractive.spans.header_lines import as_list, as_mapping, as_number
from pandora_dagster.runtime.extractive.spans.question_subject import aboutness, nearest, own_deeds, undone
from pandora_dagster.runtime.extractive.spans.span_ranking import choose, once, passages, rank, telling
from pandora_dagster.runtime.extractive.words.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.words.empty_texts import asks
from pandora_dagster.runtime.extractive.words.entities import identifiers
from pandora_dagster.runtime.extractive.words.query_intent import Question, asks_of_asking, is_greeting, question, states_preference
from pandora_dagster.runtime.extractive.words.user_statements import acknowledged

# What section 2 says of the age of its sources: research that has expired, pages to be looked at again. Knows their `_meta` alone.

_FRESHNESS = r"^\| [^|\n]*\[{label}\] \|.*\| (\d+(?:\.\d+)?)h \|$"
"""The last cell of a page's row: how long ago it was seen."""


def ages(body: str, labels: Labels) -> Mapping[str, str]:
    """Label -> how old its source is, where that must be told with it: `expired 42.0 hours ago`, `seen 40.0 hours ago`."""
    known = subsection_metas(body)
    research, pages = known.get("Cached Research Intelligence", {}), known.get("Visit Record Data", {})
    told: dict[str, str] = {}
    left = as_number(as_mapping(research).get("expires_hours"))
    if as_mapping(research).get("stale") and left is not None:
        told |= {s.label: _ago("expired", f"{-left}") for s in labels.sources if s.path.startswith("research_cache/")}
    for visit in as_list(as_mapping(pages).get("verify")):
        for source in (s for s in labels.sources if s.path == f"webpage_cache/{visit}.json"):
            if found := re.search(_FRESHNESS.format(label=source.label), body, re.MULTILINE):
                told[source.label] = _ago("seen", found.group(1))
    return told


def is_expired(date: str) -> bool:
    """Whether what stands before a line says that its source has expired."""
    return date.startswith(TEMPLATES["expired"])


def _ago(what: str, hours: str) -> str:
    return f"{TEMPLATES[what]} {hours} {TEMPLATES['hours']} {TEMPLATES['ago']}"


ANSWER_WORDS = 100
_CODE_WORDS = 600
_MOST_LOOKED_AT = 5


def answer(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """000 section 16.3: Markdown with `[n]`; a fixed sentence where nothing was found, a greeting for a greeting, and a
    statement is noted."""
    query = pack.query
    context = ContextDocument.parse(pack.document("context.md"))
    labels = Labels((*pack.sources, *source_references(context.body(2)), *source_references(context.body(4))))
    if is_greeting(query):
        return TEMPLATES["greeting"]
    if states_preference(query) and (told := _stored(query, context, labels)):
        return told if counter.count(told) <= pack.max_output_tokens else told.replace(f' "{statement(query).value}"', "")
    if not labels.sources and (noted := acknowledged(query)) and counter.count(noted) <= pack.max_output_tokens:
        return noted
    days = as_list(subsection_metas(context.body(2)).get("Relevant Prior Turns", {}).get("days"))
    found = _aged(_found(pack, question(query, days=tuple(map(str, days))), context, labels), ages(context.body(2), labels))
    if not found.spans and not found.opening:
        return _nothing(labels)
    return largest(
        lambda n: _said(found, n, _marks(labels, _MOST_LOOKED_AT)) or _nothing(labels), len(found.spans), pack.max_output_tokens, counter
    )


@dataclass(frozen=True, slots=True)
class _Finding:
    """The spans of an answer, best first; `opening` says what of the question none of them tells."""

    spans: list[Span]
    opening: str = ""


def _aged(found: _Finding, told: Mapping[str, str]) -> _Finding:
    """Each span with its source's age where section 2 tells of one; what has expired comes last."""
    spans = [replace(s, date=s.date or told.get(s.label or "", "")) for s in found.spans]
    return replace(found, spans=sorted(spans, key=lambda s: s.date.endswith(OVER) or is_expired(s.date)))


def _said(found: _Finding, most: int, marks: Sequence[str]) -> str:
    listed = _listed(passages(found.spans[:most])) if most else ""
    if not found.opening:
        return listed
    if listed:
        return f"{found.opening} {TEMPLATES['nearest']}\n{listed}"
    return " ".join((found.opening, *((TEMPLATES["looked_at"], *marks) if marks else ())))


def _stored(query: str, context: ContextDocument, labels: Labels) -> str:
    """What memory.create did, by its result; "" where it was not called."""
    outcomes = [r for r in results(context.body(4)) if r.tool == "memory.create"]
    if not outcomes:
        return ""
    label = next((r.label for r in outcomes if r.label), None)
    marks = (f"[{label}]",) if label else _marks(labels, 1)
    name = "stored" if any(r.ok for r in outcomes) else "not_stored"
    return " ".join((TEMPLATES[name], f'"{statement(query).value}"', *marks))


def _marks(labels: Labels, most: int) -> tuple[str, ...]:
    return tuple(f"[{s.label}]" for s in labels.sources[:most])


def _found(pack: PromptPack, asked: Question, context: ContextDocument, labels: Labels) -> _Finding:
    """What tells of the very thing that is asked. Where nothing does, that is said, and then what comes nearest; a deed of the
    person that nothing tells has only other deeds near it."""
    spans = [
        s
        for s in _spans(pack, asked, context, labels)
        if (s.label or not labels.sources) and (s.kind == "code" or not cited_labels(s.text))
    ]
    if pack.mode == "code":
        return _Finding(choose(rank(spans, asked), words=_CODE_WORDS))
    spans = [s for s in spans if s.kind != "code"] or spans
    about = aboutness(replace(asked, text=strip_days(asked.text)) if asked.days else asked, spans)
    if undone(asked, spans):
        told = ", ".join(f'"{line}"' for line in sentences(asked.text) if line.endswith("?"))
        opening = f"{TEMPLATES['nothing_told']} {told}" if told else TEMPLATES["nothing_found"]
        return _Finding(_best(own_deeds(spans), asked), opening)
    if about.unmet:
        named = ", ".join(dict.fromkeys(f'"{thing.words}"' for thing in about.unmet))
        return _Finding(_best(nearest(asked, about.unmet, spans), asked), f"{TEMPLATES['nothing_about']} {named}.")
    return _Finding(_best([s for i, s in enumerate(spans) if i not in about.others], asked))


def _best(spans: list[Span], asked: Question) -> list[Span]:
    """The best spans; what no longer holds comes last. A question answers only where it is asked for, or where people talk with each
    other: there it tells something too."""
    ranked = rank(spans, asked)
    if not asks_of_asking(asked.text):
        answers = [(score, s) for score, s in ranked if not asks(s.text)]
        ranked = answers or [(score, s) for score, s in ranked if s.speaker or not s.text.rstrip().endswith("?")]
    return sorted(choose(telling(once(ranked), asked), words=ANSWER_WORDS), key=lambda s: s.date.endswith(OVER))


def _spans(pack: PromptPack, asked: Question, context: ContextDocument, labels: Labels) -> list[Span]:
    """Spans of sections 2 and 4, then those of toolresults.md whose numbers, ids and addresses stand in a section too:
    what validation could not confirm is not said."""
    reader = SpanReader(labels, asked)
    only = labels.sources[0].label if len(labels.sources) == 1 else None
    fourth = next((s.label for s in source_references(context.body(4))), only)
    spans = [
        *reader.read(context.body(2), label=only),
        *(replace(s, about=frozenset()) for s in reader.read(context.body(4), label=fourth)),
    ]
    told = f"{pack.query}\n{context.body(2)}\n{context.body(4)}"
    known = set(identifiers(told))
    more = raw_spans(pack.document("toolresults.md"), results(context.body(4)), labels, reader)
    return spans + [s if s.date in told else replace(s, date="") for s in more if set(identifiers(s.text)) <= known]


def _listed(found: list[list[Span]]) -> str:
    """One passage as a sentence, several as a list; a code block stands by itself."""
    lines = [_marked(passage) for passage in found]
    if len(lines) == 1:
        return lines[0]
    return "\n".join(f"\n{line}\n" if p[0].kind == "code" else f"- {line}" for p, line in zip(found, lines, strict=True)).strip("\n")


def _marked(passage: list[Span]) -> str:
    first = passage[0]
    mark = f"[{first.label}]" if first.label else ""
    return (f"{first.text}\n{mark}" if first.kind == "code" else f"{quote(passage)} {mark}").rstrip()


def _nothing(labels: Labels) -> str:
    if not labels.sources:
        return TEMPLATES["nothing_found"]
    return " ".join((TEMPLATES["nothing_found_in"], *_marks(labels, _MOST_LOOKED_AT)))


ANSWERS = {"synthesizer": answer}
"""Recipe field `role` -> the function that answers it."""
