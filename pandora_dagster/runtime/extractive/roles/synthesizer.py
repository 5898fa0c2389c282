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
from pandora_dagster.runtime.extractive.evidence.asked_facts import states_asked
from pandora_dagster.runtime.extractive.evidence.choice import choose_closest, informative_passages, limit_words, rank_evidence
from pandora_dagster.runtime.extractive.evidence.citation_labels import Labels
from pandora_dagster.runtime.extractive.evidence.header_lines import as_list, as_mapping, as_number
from pandora_dagster.runtime.extractive.evidence.passage_ranking import Vocabulary
from pandora_dagster.runtime.extractive.evidence.questions import Question, read_question
from pandora_dagster.runtime.extractive.evidence.quotes import format_quote
from pandora_dagster.runtime.extractive.evidence.section_reader import SectionReader
from pandora_dagster.runtime.extractive.evidence.source_passages import Passage
from pandora_dagster.runtime.extractive.evidence.tool_results import read_results
from pandora_dagster.runtime.extractive.output_budget import Draft, fit_draft
from pandora_dagster.runtime.extractive.queries.entities import identifiers
from pandora_dagster.runtime.extractive.queries.query_intent import asks_advice, is_greeting, states_preference
from pandora_dagster.runtime.extractive.queries.query_pronouns import find_pointer
from pandora_dagster.runtime.extractive.queries.user_statements import acknowledge, extract_facts
from pandora_dagster.runtime.extractive.research.asked_question import AskedQuestion
from pandora_dagster.runtime.extractive.roles.tool_arguments import RESEARCH, read_statement

_MAX_ANSWER_WORDS = 100
_MAX_PASSAGES = 6
"""Passages of an answer."""
_MAX_CODE_WORDS = 600
_RESEARCHED = ("research_cache/", "webpage_cache/")
_AGE_CELL = r"^\| [^|\n]*\[{label}\] \|.*\| (\d+(?:\.\d+)?)h \|$"
"""The last cell of a page's row: how long ago it was seen."""


def answer(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Specification 000, section 16.3: Markdown with `[n]`; a fixed sentence where nothing was found, a greeting for a greeting, and a
    statement is noted."""
    query = pack.query
    context = ContextDocument.parse(pack.document("context.md"))
    labels = Labels((*pack.sources, *source_references(context.body(2)), *source_references(context.body(4))))
    if is_greeting(query):
        return TEMPLATES["welcome" if query.lower().lstrip().startswith("thank") else "greeting"]
    if states_preference(query) and (stored := _confirm_stored(query, context, labels)):
        return stored if counter.count(stored) <= pack.max_output_tokens else stored.replace(f' "{read_statement(query).value}"', "")
    if not labels.sources and (noted := acknowledge(query)) and counter.count(noted) <= pack.max_output_tokens:
        return noted
    days = as_list(subsection_metas(context.body(2)).get("Relevant Prior Turns", {}).get("days"))
    asked = read_question(query, days=tuple(map(str, days)))
    found = _add_ages(_choose_passages(pack, asked, context, labels), _source_ages(context.body(2), labels))
    nothing = no_result(query) if labels.sources else _acknowledge_facts(query) or no_result(query)
    return fit_draft(lambda n: _render_passages(found[:n]) if n else nothing, len(found), pack.max_output_tokens, counter)


def _acknowledge_facts(query: str) -> str:
    """What the user states, where a query states something and nothing else answers it."""
    facts = [sentence for sentence, _ in extract_facts(query)]
    return " ".join((TEMPLATES["noted"], *facts)) if facts else ""


def _confirm_stored(query: str, context: ContextDocument, labels: Labels) -> str:
    """What memory.create did, by its result; "" where it was not called."""
    outcomes = [r for r in read_results(context.body(4)) if r.tool == "memory.create"]
    if not outcomes:
        return ""
    label = next((r.label for r in outcomes if r.label), None) or next((s.label for s in labels.sources), None)
    name = "stored" if any(r.ok for r in outcomes) else "not_stored"
    return " ".join((TEMPLATES[name], f'"{read_statement(query).value}"', *([f"[{label}]"] if label else [])))


def _choose_passages(pack: PromptPack, asked: Question, context: ContextDocument, labels: Labels) -> list[Passage]:
    """The passages of the answer, best first.

    What section 2 holds of turns alone keeps its order and precedes what tools found: it was ranked with all that is around it.
    Pages, which RETRIEVAL chooses by name or reference, are shown where nothing answers in words of the question.
    """
    is_anaphoric = bool(find_pointer(pack.query)) or asks_advice(pack.query)
    reader = SectionReader(labels, asked, whole_code=pack.mode == "code")
    if any(result.tool == RESEARCH for result in read_results(context.body(4))):  # its claims answer, or nothing that is known does
        return limit_words(_citable_passages(reader.research(context.body(4)), labels)[:_MAX_PASSAGES], _MAX_ANSWER_WORDS)
    gathered = _citable_passages(reader.gathered(context.body(2)), labels)
    if not is_anaphoric:
        gathered = _without_other_facts(gathered, AskedQuestion(pack.query), labels)
    found = _tool_passages(pack, context, reader, labels) if read_results(context.body(4)) or not gathered else []
    if pack.mode == "code":
        return limit_words(_rank([*gathered, *found], asked), _MAX_CODE_WORDS)
    found = [p for p in found if p.kind is not UnitKind.CODE]
    has_asked_words = bool(Vocabulary(gathered, asked.keys(tuple({p.language for p in gathered}))).wanted)
    if all(p.turn is not None for p in gathered) and (is_anaphoric or has_asked_words or asked.days or not asked.keys()):
        quoted = {p.text for p in gathered}
        chosen = [*gathered, *(p for p in _rank(found, asked) if " ".join(p.text.split()) not in quoted)]
    else:
        chosen = _claims_first(_rank([*gathered, *found], asked), asked, labels)
    chosen = chosen or [p for p in informative_passages(gathered, asked) if p.is_page or is_anaphoric]
    return limit_words(chosen[:_MAX_PASSAGES], _MAX_ANSWER_WORDS)


def _without_other_facts(passages: Sequence[Passage], question: AskedQuestion, labels: Labels) -> list[Passage]:
    """The passages without what research found out about the thing for another question."""
    researched = {source.label for source in labels.sources if source.path.startswith(_RESEARCHED)}
    return [p for p in passages if not (p.label in researched or p.tool == RESEARCH) or states_asked(p, question)]


def _claims_first(passages: Sequence[Passage], asked: Question, labels: Labels) -> list[Passage]:
    """Claims of cached research that have a value of the asked kind precede the pages that they are from."""
    researched = {source.label for source in labels.sources if source.path.startswith("research_cache/")}
    return sorted(passages, key=lambda p: not (p.label in researched and asked.is_value(p.text)))


def _rank(passages: Sequence[Passage], asked: Question) -> list[Passage]:
    return [p for _, p in choose_closest(rank_evidence(passages, asked), asked, most=_MAX_PASSAGES)]


def _tool_passages(pack: PromptPack, context: ContextDocument, reader: SectionReader, labels: Labels) -> list[Passage]:
    """What tools gave, as section 4 reports it; of the raw results what the sections confirm."""
    confirming_text = f"{pack.query}\n{context.body(2)}\n{context.body(4)}"
    confirmed = set(identifiers(confirming_text))
    raw = reader.raw(pack.document("toolresults.md"), read_results(context.body(4)))
    confirmed_raw = [p if p.date in confirming_text else replace(p, date="") for p in raw if set(identifiers(p.text)) <= confirmed]
    return _citable_passages([*reader.results(context.body(4)), *confirmed_raw], labels)


def _citable_passages(passages: Sequence[Passage], labels: Labels) -> list[Passage]:
    """Passages with a source, without marks that lead nowhere."""
    return [p for p in passages if (p.label or not labels.sources) and (p.kind is UnitKind.CODE or not cited_labels(p.text))]


def _source_ages(body: str, labels: Labels) -> Mapping[str, str]:
    """Label -> how old its source is, where that must be said with it: `expired 42.0 hours ago`, `seen 40.0 hours ago`."""
    known = subsection_metas(body)
    research, pages = known.get("Cached Research Intelligence", {}), known.get("Visit Record Data", {})
    found: dict[str, str] = {}
    left = as_number(as_mapping(research).get("expires_hours"))
    if as_mapping(research).get("stale") and left is not None:
        found |= {s.label: _age_text("expired", f"{-left}") for s in labels.sources if s.path.startswith("research_cache/")}
    for visit in as_list(as_mapping(pages).get("verify")):
        for source in (s for s in labels.sources if s.path == f"webpage_cache/{visit}.json"):
            if seen := re.search(_AGE_CELL.format(label=source.label), body, re.MULTILINE):
                found[source.label] = _age_text("seen", seen.group(1))
    return found


def _age_text(what: str, hours: str) -> str:
    return f"{TEMPLATES[what]} {hours} {TEMPLATES['hours']} {TEMPLATES['ago']}"


def _add_ages(found: Sequence[Passage], ages: Mapping[str, str]) -> list[Passage]:
    """Each passage with its source's age where section 2 has one; what has expired comes last."""
    passages = [replace(p, date=p.date or ages.get(p.label or "", "")) for p in found]
    return sorted(passages, key=lambda p: p.date.startswith(TEMPLATES["expired"]))


def _render_passages(found: Sequence[Passage]) -> str:
    """One passage as a sentence, several as a list; a code block is shown by itself."""
    lines = [_render_passage(p) for p in found]
    if len(lines) == 1:
        return lines[0]
    return "\n".join(f"\n{line}\n" if p.kind is UnitKind.CODE else f"- {line}" for p, line in zip(found, lines, strict=True)).strip("\n")


def _render_passage(p: Passage) -> str:
    mark = f"[{p.label}]" if p.label else ""
    return (
        f"{p.text}\n{mark}" if p.kind is UnitKind.CODE else f"{format_quote(p.text, date=p.date, speaker=p.speaker, tool=p.tool)} {mark}"
    ).rstrip()
