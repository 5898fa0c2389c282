"""Role `synthesizer`: the answer as the best passage of sections 2 and 4 and those close behind it, verbatim, each with its citation."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.citations import cited_labels, source_references
from pandora_dagster.documents.meta import subsection_metas
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.language.no_result_phrases import no_result
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.evidence.choice import closest, evidence, telling, within
from pandora_dagster.runtime.extractive.evidence.citation_labels import Labels
from pandora_dagster.runtime.extractive.evidence.header_lines import as_list, as_mapping, as_number
from pandora_dagster.runtime.extractive.evidence.passage_ranking import Vocabulary
from pandora_dagster.runtime.extractive.evidence.questions import Question, question
from pandora_dagster.runtime.extractive.evidence.quotes import quote
from pandora_dagster.runtime.extractive.evidence.section_reader import SectionReader
from pandora_dagster.runtime.extractive.evidence.source_passages import Passage
from pandora_dagster.runtime.extractive.evidence.tool_results import results
from pandora_dagster.runtime.extractive.output_budget import Draft, largest
from pandora_dagster.runtime.extractive.queries.entities import identifiers
from pandora_dagster.runtime.extractive.queries.query_intent import advises, is_greeting, states_preference
from pandora_dagster.runtime.extractive.queries.query_pronouns import pointer
from pandora_dagster.runtime.extractive.queries.user_statements import acknowledged, stated
from pandora_dagster.runtime.extractive.roles.tool_arguments import statement

ANSWER_WORDS = 100
_MOST = 6
"""Passages of an answer."""
_CODE_WORDS = 600
_FRESHNESS = r"^\| [^|\n]*\[{label}\] \|.*\| (\d+(?:\.\d+)?)h \|$"
"""The last cell of a page's row: how long ago it was seen."""


def answer(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """000 section 16.3: Markdown with `[n]`; a fixed sentence where nothing was found, a greeting for a greeting, and a
    statement is noted."""
    query = pack.query
    context = ContextDocument.parse(pack.document("context.md"))
    labels = Labels((*pack.sources, *source_references(context.body(2)), *source_references(context.body(4))))
    if is_greeting(query):
        return TEMPLATES["welcome" if query.lower().lstrip().startswith("thank") else "greeting"]
    if states_preference(query) and (stored := _stored(query, context, labels)):
        return stored if counter.count(stored) <= pack.max_output_tokens else stored.replace(f' "{statement(query).value}"', "")
    if not labels.sources and (noted := acknowledged(query)) and counter.count(noted) <= pack.max_output_tokens:
        return noted
    days = as_list(subsection_metas(context.body(2)).get("Relevant Prior Turns", {}).get("days"))
    asked = question(query, days=tuple(map(str, days)))
    found = _dated(_found(pack, asked, context, labels), _ages(context.body(2), labels))
    nothing = no_result(query) if labels.sources else _noted(query) or no_result(query)
    return largest(lambda n: _listed(found[:n]) if n else nothing, len(found), pack.max_output_tokens, counter)


def _noted(query: str) -> str:
    """What the user states, where a query states something and nothing else answers it."""
    facts = [sentence for sentence, _ in stated(query)]
    return " ".join((TEMPLATES["noted"], *facts)) if facts else ""


def _stored(query: str, context: ContextDocument, labels: Labels) -> str:
    """What memory.create did, by its result; "" where it was not called."""
    outcomes = [r for r in results(context.body(4)) if r.tool == "memory.create"]
    if not outcomes:
        return ""
    label = next((r.label for r in outcomes if r.label), None) or next((s.label for s in labels.sources), None)
    name = "stored" if any(r.ok for r in outcomes) else "not_stored"
    return " ".join((TEMPLATES[name], f'"{statement(query).value}"', *([f"[{label}]"] if label else [])))


def _found(pack: PromptPack, asked: Question, context: ContextDocument, labels: Labels) -> list[Passage]:
    """The passages of the answer. What section 2 holds of turns alone keeps its order: it was ranked with all that is around it.
    Pages, which RETRIEVAL chooses by name or reference, are shown where nothing answers in words of the question."""
    is_anaphoric = pointer(pack.query) or advises(pack.query)
    reader = SectionReader(labels, asked, whole_code=pack.mode == "code")
    gathered = _citable(reader.gathered(context.body(2)), labels)
    outcomes = results(context.body(4))
    raw = reader.raw(pack.document("toolresults.md"), outcomes)
    confirming_text = f"{pack.query}\n{context.body(2)}\n{context.body(4)}"
    confirmed = set(identifiers(confirming_text))
    given = [p if p.date in confirming_text else replace(p, date="") for p in raw if set(identifiers(p.text)) <= confirmed]
    given = _citable([*reader.results(context.body(4)), *given], labels) if outcomes or not gathered else []
    if pack.mode == "code":
        ranked = closest(evidence([*gathered, *given], asked), asked, most=_MOST)
        return within([p for _, p in ranked], _CODE_WORDS)
    known = is_anaphoric or Vocabulary(gathered, asked.keys(tuple({p.language for p in gathered}))).wanted
    if not given and all(p.turn is not None for p in gathered) and (known or asked.days or not asked.keys()):
        return within(gathered[:_MOST], ANSWER_WORDS)
    ranked = closest(evidence([*gathered, *(p for p in given if p.kind is not UnitKind.CODE)], asked), asked, most=_MOST)
    return within([p for _, p in ranked] or [p for p in telling(gathered, asked) if p.is_page or is_anaphoric][:_MOST], ANSWER_WORDS)


def _citable(passages: Sequence[Passage], labels: Labels) -> list[Passage]:
    """Passages with a source, without marks that lead nowhere."""
    return [p for p in passages if (p.label or not labels.sources) and (p.kind is UnitKind.CODE or not cited_labels(p.text))]


def _ages(body: str, labels: Labels) -> Mapping[str, str]:
    """Label -> how old its source is, where that must be said with it: `expired 42.0 hours ago`, `seen 40.0 hours ago`."""
    known = subsection_metas(body)
    research, pages = known.get("Cached Research Intelligence", {}), known.get("Visit Record Data", {})
    found: dict[str, str] = {}
    left = as_number(as_mapping(research).get("expires_hours"))
    if as_mapping(research).get("stale") and left is not None:
        found |= {s.label: _ago("expired", f"{-left}") for s in labels.sources if s.path.startswith("research_cache/")}
    for visit in as_list(as_mapping(pages).get("verify")):
        for source in (s for s in labels.sources if s.path == f"webpage_cache/{visit}.json"):
            if seen := re.search(_FRESHNESS.format(label=source.label), body, re.MULTILINE):
                found[source.label] = _ago("seen", seen.group(1))
    return found


def _ago(what: str, hours: str) -> str:
    return f"{TEMPLATES[what]} {hours} {TEMPLATES['hours']} {TEMPLATES['ago']}"


def _dated(found: Sequence[Passage], ages: Mapping[str, str]) -> list[Passage]:
    """Each passage with its source's age where section 2 has one; what has expired comes last."""
    passages = [replace(p, date=p.date or ages.get(p.label or "", "")) for p in found]
    return sorted(passages, key=lambda p: p.date.startswith(TEMPLATES["expired"]))


def _listed(found: Sequence[Passage]) -> str:
    """One passage as a sentence, several as a list; a code block is shown by itself."""
    lines = [_marked(p) for p in found]
    if len(lines) == 1:
        return lines[0]
    return "\n".join(f"\n{line}\n" if p.kind is UnitKind.CODE else f"- {line}" for p, line in zip(found, lines, strict=True)).strip("\n")


def _marked(p: Passage) -> str:
    mark = f"[{p.label}]" if p.label else ""
    return (
        f"{p.text}\n{mark}" if p.kind is UnitKind.CODE else f"{quote(p.text, date=p.date, speaker=p.speaker, tool=p.tool)} {mark}"
    ).rstrip()
