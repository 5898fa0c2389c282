"""Phase 2, the Context Gatherer: RETRIEVAL chooses, loading is strict, SYNTHESIS compiles section 2 (004).

Earlier turns come first, then the sources that `PhaseDependencies.context_sources` registers, in their order.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

from pydantic import BaseModel, create_model

from pandora_dagster.contracts.compression_results import CompressionInput
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.phase_outputs import GatheredContext, RetrievalPlan
from pandora_dagster.contracts.ports.context_source import ContextSource, SourceQuery
from pandora_dagster.documents.markdown import table
from pandora_dagster.documents.pasted_blocks import own_words
from pandora_dagster.phases.core.day_ranges import days_line
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput, as_json, parsed_answer
from pandora_dagster.phases.gather import session_history
from pandora_dagster.phases.gather.compact_context import KnownFacts
from pandora_dagster.phases.gather.prior_turns import session_window
from pandora_dagster.phases.gather.section2 import GATHERED_FILE, Background, LoadedContext, LoadedSource, fit_section2, key_fact_budget
from pandora_dagster.phases.gather.turn_source import PriorTurnSource
from pandora_dagster.retrieval.term_overlap import language_gap
from pandora_dagster.retrieval.turn_excerpts import PER_TURN_LIMIT

RETRIEVAL = "pipeline/phase2_retrieval"
SYNTHESIS = "pipeline/phase2_synthesis"
PLANNER = "pipeline/phase3_planner"
SUPPLEMENTARY_TOKENS = 2_200
"""Tokens that supplementary sources take together in the pack of SYNTHESIS; the rest is for turns and memory."""
_FRAMES = 200
"""Tokens of a SYNTHESIS pack around its documents: frames, names and the line about the session."""
_ITEM = "- "
"""Before each key fact that is compressed: one is kept whole or left out, as an item of a list is."""
_Answer = TypeVar("_Answer", bound=BaseModel)


async def retrieval_plan(ctx: PhaseContext) -> PhaseOutput:
    """RETRIEVAL: choose among the headers of every source (004 section 4.1)."""
    turns, query = PriorTurnSource.of(ctx), _source_query(ctx)
    sources = _all_sources(ctx, turns)
    headers = [source.headers(query) for source in sources]
    result = await ctx.ask(RETRIEVAL, [ctx.analysis_document(), *(h.document for h in headers)])
    plan = parsed_answer(result, _with_fields(RetrievalPlan, [s.traits.plan_field for s in sources], tuple[str, ...]))
    listed = sorted(sources, key=lambda s: s.traits.is_supplementary and s.traits.priority)  # turns and memory first
    choices = [choice for source in listed for choice in source.choices(plan)]
    facts: dict[str, Any] = {"sources": len(choices)}
    for offered in headers:
        facts |= offered.facts
    facts |= session_history.summary_facts(turns.rows, headers[0].document, result.record.left_out)
    lists = {"notices": [n for h in headers for n in h.notices], "headers_left_out": [n for h in headers for n in h.left_out]}
    facts |= {name: tuple(values) for name, values in lists.items() if values}
    shown = table(("Source", "Relevance", "Reason"), choices) + f"\n\n{plan.reasoning}"
    return PhaseOutput(files={"retrieval_plan.json": as_json(plan)}, facts=facts, shown=shown)


async def gathered_context(ctx: PhaseContext) -> PhaseOutput:
    """Load what the plan names and the background, and let SYNTHESIS compile section 2 (004 sections 4.2, 4.3, 5)."""
    turns = PriorTurnSource.of(ctx)
    sources = _all_sources(ctx, turns)
    plan = ctx.read("retrieval_plan.json", _with_fields(RetrievalPlan, [s.traits.plan_field for s in sources], tuple[str, ...]))
    loaded = await _load_sources(ctx, sources, plan)
    window, facts = await _backgrounds(ctx, turns, loaded)
    cited = tuple(source for found in (*loaded, window, facts) for source in found.cited)
    documents = [ctx.analysis_document(), *_source_documents(loaded, (window, facts))]
    result = await ctx.ask(SYNTHESIS, [d for d in documents if d.text or d.items], sources=cited)
    gathered = parsed_answer(result, _with_fields(GatheredContext, [s.traits.answer_field for s in sources], tuple[dict[str, Any], ...]))
    reported = session_history.item_names(window.inclusions).values()
    left_out = [name for found in (*loaded, window) for name in found.left_out]
    left_out += [name for name in result.record.left_out if name not in reported]
    context = LoadedContext(tuple(loaded), cited, tuple(left_out), _language_gap(ctx, loaded))
    return await _output(ctx, gathered, context, session_history.window_facts(window.inclusions, result.record.left_out))


async def _output(ctx: PhaseContext, gathered: GatheredContext, loaded: LoadedContext, window: dict[str, Any]) -> PhaseOutput:
    """Section 2 of what SYNTHESIS gathered, and what the phase reports of it."""
    room = _section2_room(ctx)
    fitting = await _compress_key_facts(ctx, gathered, loaded, room)
    section = fit_section2(fitting, loaded, room=room, counter=ctx.deps.counter, now=ctx.deps.clock())
    facts: dict[str, Any] = {"sources": len(loaded.cited), "context_quality": section.quality}
    facts["left_out"] = len(section.left_out) + len(loaded.left_out)
    for found in loaded.sources:
        if unused := found.source.unused(gathered, found.records):
            facts.setdefault(found.source.traits.unused_fact, []).extend(unused)
    if loaded.left_out:
        facts["left_out_of_call"] = list(loaded.left_out)
    if section.left_out:
        facts["left_out_of_section_2"] = [asdict(item) for item in section.left_out]
    files = {GATHERED_FILE: as_json(gathered)}
    return PhaseOutput(sections={2: section.text}, files=files, facts=facts | window, verdicts=section.verdicts)


def _language_gap(ctx: PhaseContext, loaded: Sequence[LoadedSource]) -> str:
    """Judged by what was loaded; where nothing was, by the user's newest turns."""
    texts = [item.text for found in loaded for item in found.items]
    return language_gap(own_words(ctx.query), texts or [row.summary for row in session_history.recent_turns(ctx)])


def _all_sources(ctx: PhaseContext, turns: PriorTurnSource) -> tuple[ContextSource[Any], ...]:
    return (turns, *ctx.deps.context_sources)


def _with_fields(answer: type[_Answer], names: Sequence[str], of_type: Any) -> type[_Answer]:
    """The model of an answer with the fields that registered sources name beyond those of the shipped recipe, empty by default."""
    added: dict[str, Any] = {name: (of_type, ()) for name in names if name not in answer.model_fields}
    return create_model(answer.__name__, __base__=answer, **added) if added else answer


def _source_query(ctx: PhaseContext) -> SourceQuery:
    analysis, summarizer = ctx.analysis(), ctx.deps.summarizer

    async def compress(content: CompressionInput, target: int) -> str:
        if summarizer is None:
            return content.text
        return ctx.record_compression(await summarizer.fit_text(content, target=target, site=ctx.site))

    return SourceQuery(
        user=ctx.turn.key.user,
        text=ctx.query,
        resolved=analysis.resolved_query,
        entities=analysis.entities,
        reference=analysis.content_reference,
        now=ctx.deps.clock(),
        counter=ctx.deps.counter,
        scores=ctx.deps.scores,
        compress=compress if summarizer else None,
    )


async def _load_sources(ctx: PhaseContext, sources: Sequence[ContextSource[Any]], plan: RetrievalPlan) -> list[LoadedSource]:
    """Exactly what the plan names; a record that is missing HALTs (004 section 9).

    Labels count up over all records, also those of supplementary sources that do not fit `SUPPLEMENTARY_TOKENS` any more.
    """
    query, label, room = _source_query(ctx), 0, SUPPLEMENTARY_TOKENS
    records = [source.load(query, plan) for source in sources]
    loaded: list[LoadedSource] = []
    for source, (chosen, omitted) in zip(sources, records, strict=True):
        found = LoadedSource(source, left_out=omitted)
        for place, record in enumerate(chosen):
            label += 1
            passage = await source.read(query, record, str(label), place)
            if source.traits.is_supplementary:
                cost = sum(ctx.deps.counter.count(item.text) + 2 for item in passage.items)
                if cost > room:
                    found = replace(found, left_out=(*found.left_out, *(item.name for item in passage.items)))
                    continue
                room -= cost
            found = replace(
                found,
                records=(*found.records, record),
                items=(*found.items, *passage.items),
                cited=(*found.cited, replace(source.cite(record), label=str(label))),
                left_out=(*found.left_out, *passage.left_out),
            )
        loaded.append(found)
    return loaded


async def _backgrounds(ctx: PhaseContext, turns: PriorTurnSource, loaded: Sequence[LoadedSource]) -> tuple[Background, Background]:
    """The session's window in what the loaded records and the known facts leave, and these facts."""
    facts = KnownFacts.of(ctx, len(turns.rows) + 1)
    continued = InputDocument(turns.traits.document, header=days_line(turns.days))
    window = await session_window(ctx, turns.rows, continued, loaded, _synthesis_room(ctx) - facts.tokens)
    return window, facts.background([source for found in (*loaded, window) for source in found.cited])


def _source_documents(loaded: Sequence[LoadedSource], backgrounds: Sequence[Background]) -> list[InputDocument]:
    """One document for each source, the items of the highest priority first unless it keeps the order of the plan; what a background
    adds to it follows. Documents of backgrounds alone come first."""
    added = {document.name: document for found in backgrounds for document in found.documents}
    documents: list[InputDocument] = []
    for found in loaded:
        traits = found.source.traits
        more = added.pop(traits.document, InputDocument(traits.document))
        items = found.items if traits.in_plan_order else sorted(found.items, key=lambda item: -item.priority)
        documents.append(InputDocument(traits.document, items=(*items, *more.items), header=traits.heading or more.header))
    return [*added.values(), *documents]


async def _compress_key_facts(ctx: PhaseContext, gathered: GatheredContext, loaded: LoadedContext, room: int) -> GatheredContext:
    """Each chosen turn within its limit: the key facts of a turn over it are compressed (DECISIONS 2). SYNTHESIS chose them for the
    query, so all of them count."""
    if ctx.deps.summarizer is None:
        return gathered
    limit = min(PER_TURN_LIMIT, key_fact_budget(gathered, loaded, room=room, counter=ctx.deps.counter, now=ctx.deps.clock()))
    turns = list(gathered.prior_turns)
    for place, turn in enumerate(turns):
        text = "\n".join(f"{_ITEM}{' '.join(fact.split())}" for fact in turn.key_facts)
        if ctx.deps.counter.count(text) > limit:
            content = CompressionInput(text, f"{GATHERED_FILE}: turn {turn.turn}", ContentType.PRIOR_TURN)
            result = ctx.record_compression(await ctx.deps.summarizer.fit_text(content, target=limit, site=ctx.site))
            kept = tuple(line.removeprefix(_ITEM) for line in result.split("\n") if line.strip())
            turns[place] = turn.model_copy(update={"key_facts": kept})
    return gathered.model_copy(update={"prior_turns": tuple(turns)})


def _section2_room(ctx: PhaseContext) -> int:
    """Tokens section 2 may take so that the Planner can read it beside sections 0 and 1 (000 section 11)."""
    count, budget = ctx.deps.counter.count, ctx.deps.recipes.get(PLANNER, ctx.mode).recipe.token_budget
    tools = sum(count(f"{t.spec.name}{t.spec.description}{t.spec.parameters}") + 20 for t in ctx.deps.tools.values())
    taken = 2 * count(ctx.query) + count(ctx.context_document.body(1)) + tools + 120
    return min(2_000, max(200, budget.input - taken))


def _synthesis_room(ctx: PhaseContext) -> int:
    """Tokens that sources may take in the pack of SYNTHESIS, beside the query (which it contains twice) and its analysis."""
    count, budget = ctx.deps.counter.count, ctx.deps.recipes.get(SYNTHESIS, ctx.mode).recipe.token_budget
    return budget.input - 2 * count(ctx.query) - count(ctx.file("query_analysis.json")) - _FRAMES
