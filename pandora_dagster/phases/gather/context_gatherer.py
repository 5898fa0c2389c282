"""Phase 2, the Context Gatherer (specification 004): RETRIEVAL picks what to read, SYNTHESIS writes what it found into section 2.

1. `retrieval_plan`: each source lists a header for each record. The recipe RETRIEVAL names those that matter
   in `retrieval_plan.json`.
2. `gathered_context`: the named records are loaded, each under a citation label; one that is missing HALTs the turn. Background that
   no plan names is added: the window of the session and the known facts.
3. The recipe SYNTHESIS reads both and answers with `gathered_context.json`, e.g. the key facts of each turn.
4. Each source renders its subsection from that answer; `gather.section2` joins them and drops items until they fit.

Earlier turns are the first source; the others are those of `PhaseDependencies.context_sources`, in their order.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

from pydantic import BaseModel, create_model

from pandora_dagster.contracts.compression_results import CompressionInput
from pandora_dagster.contracts.enums import SECTION_BUDGETS, ContentType
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
"""The recipe that picks records by their headers."""
SYNTHESIS = "pipeline/phase2_synthesis"
"""The recipe that reads the picked records and writes what section 2 says of them."""
PLANNER = "pipeline/phase3_planner"
SUPPLEMENTARY_TOKENS = 2_200
"""Tokens that supplementary sources take together in the pack of SYNTHESIS; the rest is for turns and memory."""
_FRAME_TOKENS = 200
"""Tokens of a SYNTHESIS pack around its documents: frames, names and the line about the session."""
_ITEM_SEPARATOR_TOKENS = 2
"""Tokens between two items of a pack."""
_MIN_SECTION2_TOKENS = 200
"""Section 2 gets these even where the Planner's other input leaves less."""
_TOOL_FRAME_TOKENS = 20
"""Tokens around a tool in the Planner's document `tools`."""
_PLANNER_FRAME_TOKENS = 120
"""Tokens around the Planner's documents and sections."""
_LIST_MARK = "- "
"""Precedes each key fact that is compressed: one is kept whole or left out, as an item of a list is."""
_Answer = TypeVar("_Answer", bound=BaseModel)


async def retrieval_plan(ctx: PhaseContext) -> PhaseOutput:
    """RETRIEVAL: choose among the headers of every source (specification 004, section 4.1)."""
    turns, query = PriorTurnSource.of(ctx), _source_query(ctx)
    sources = _all_sources(ctx, turns)
    headers = [source.headers(query) for source in sources]
    result = await ctx.ask(RETRIEVAL, [ctx.analysis_document(), *(h.document for h in headers)])
    plan = parsed_answer(result, _extend_model(RetrievalPlan, [s.traits.plan_field for s in sources], tuple[str, ...]))
    listed_sources = sorted(sources, key=lambda s: s.traits.is_supplementary and s.traits.priority)  # turns and memory first
    choices = [choice for source in listed_sources for choice in source.choices(plan)]
    facts: dict[str, Any] = {"sources": len(choices)}
    if ctx.turn.key.number == 1 and not any(h.document.text or h.document.items for h in headers):
        facts["nothing_stored"] = True
    for source_headers in headers:
        facts |= source_headers.facts
    facts |= session_history.summary_facts(turns.rows, headers[0].document, result.record.left_out)
    lists = {"notices": [n for h in headers for n in h.notices], "headers_left_out": [n for h in headers for n in h.left_out]}
    facts |= {name: tuple(values) for name, values in lists.items() if values}
    shown = table(("Source", "Relevance", "Reason"), choices) + f"\n\n{plan.reasoning}"
    return PhaseOutput(files={"retrieval_plan.json": as_json(plan)}, facts=facts, shown=shown)


async def gathered_context(ctx: PhaseContext) -> PhaseOutput:
    """Load what the plan names and the background, and let SYNTHESIS compile section 2 (specification 004, sections 4.2, 4.3, 5)."""
    turns = PriorTurnSource.of(ctx)
    sources = _all_sources(ctx, turns)
    plan = ctx.read("retrieval_plan.json", _extend_model(RetrievalPlan, [s.traits.plan_field for s in sources], tuple[str, ...]))
    loaded = await _load_sources(ctx, sources, plan)
    window, facts = await _backgrounds(ctx, turns, loaded)
    cited = tuple(source for provider in (*loaded, window, facts) for source in provider.cited)
    documents = [ctx.analysis_document(), *_source_documents(loaded, (window, facts))]
    result = await ctx.ask(SYNTHESIS, [d for d in documents if d.text or d.items], sources=cited)
    gathered = parsed_answer(result, _extend_model(GatheredContext, [s.traits.answer_field for s in sources], tuple[dict[str, Any], ...]))
    window_items = session_history.item_names(window.inclusions).values()
    left_out = [name for provider in (*loaded, window) for name in provider.left_out]
    left_out += [name for name in result.record.left_out if name not in window_items]
    context = LoadedContext(tuple(loaded), cited, tuple(left_out), _language_gap(ctx, loaded), ctx.analysis().resolved_query or ctx.query)
    return await _section2_output(ctx, gathered, context, session_history.window_facts(window.inclusions, result.record.left_out))


async def _section2_output(
    ctx: PhaseContext, gathered: GatheredContext, loaded: LoadedContext, window_report: dict[str, Any]
) -> PhaseOutput:
    """Section 2 of what SYNTHESIS gathered, and what the phase reports of it."""
    budget_tokens = _section2_budget(ctx)
    compressed = await _compress_key_facts(ctx, gathered, loaded, budget_tokens)
    section = fit_section2(compressed, loaded, budget_tokens=budget_tokens, counter=ctx.deps.counter, now=ctx.deps.clock())
    facts: dict[str, Any] = {"sources": len(loaded.cited), "context_quality": section.quality}
    if loaded.language_gap:
        facts["language_gap"] = loaded.language_gap
    facts["left_out"] = len(section.left_out) + len(loaded.left_out)
    for loaded_source in loaded.sources:
        if unused := loaded_source.source.unused(gathered, loaded_source.records):
            facts.setdefault(loaded_source.source.traits.unused_fact, []).extend(unused)
    if loaded.left_out:
        facts["left_out_of_call"] = list(loaded.left_out)
    if section.left_out:
        facts["left_out_of_section_2"] = [asdict(item) for item in section.left_out]
    files = {GATHERED_FILE: as_json(gathered)}
    return PhaseOutput(sections={2: section.text}, files=files, facts=facts | window_report, verdicts=section.verdicts)


def _language_gap(ctx: PhaseContext, loaded: Sequence[LoadedSource]) -> str:
    """Judged by what was loaded; where nothing was, by the user's newest turns."""
    texts = [item.text for source in loaded for item in source.items]
    return language_gap(own_words(ctx.query), texts or [row.summary for row in session_history.recent_turns(ctx)])


def _all_sources(ctx: PhaseContext, turns: PriorTurnSource) -> tuple[ContextSource[Any], ...]:
    return (turns, *ctx.deps.context_sources)


def _extend_model(answer: type[_Answer], names: Sequence[str], of_type: Any) -> type[_Answer]:
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
    """Exactly what the plan names; a record that is missing HALTs (specification 004, section 9).

    Labels count up over all records, also those of supplementary sources that do not fit `SUPPLEMENTARY_TOKENS` any more.
    """
    query, label, remaining_tokens = _source_query(ctx), 0, SUPPLEMENTARY_TOKENS
    loads = [source.load(query, plan) for source in sources]
    loaded: list[LoadedSource] = []
    for source, (chosen, omitted) in zip(sources, loads, strict=True):
        loaded_source = LoadedSource(source, left_out=omitted)
        for rank, record in enumerate(chosen):
            label += 1
            passage = await source.read(query, record, str(label), rank)
            if source.traits.is_supplementary:
                cost = sum(ctx.deps.counter.count(item.text) + _ITEM_SEPARATOR_TOKENS for item in passage.items)
                if cost > remaining_tokens:
                    loaded_source = replace(loaded_source, left_out=(*loaded_source.left_out, *(item.name for item in passage.items)))
                    continue
                remaining_tokens -= cost
            loaded_source = replace(
                loaded_source,
                records=(*loaded_source.records, record),
                items=(*loaded_source.items, *passage.items),
                cited=(*loaded_source.cited, replace(source.cite(record), label=str(label))),
                left_out=(*loaded_source.left_out, *passage.left_out),
            )
        loaded.append(loaded_source)
    return loaded


async def _backgrounds(ctx: PhaseContext, turns: PriorTurnSource, loaded: Sequence[LoadedSource]) -> tuple[Background, Background]:
    """The session's window in what the loaded records and the known facts leave, and these facts."""
    facts = KnownFacts.of(ctx, len(turns.rows) + 1)
    turn_document = InputDocument(turns.traits.document, header=days_line(turns.days))
    window = await session_window(ctx, turns.rows, turn_document, loaded, _synthesis_budget(ctx) - facts.tokens)
    return window, facts.background([source for provider in (*loaded, window) for source in provider.cited])


def _source_documents(loaded: Sequence[LoadedSource], backgrounds: Sequence[Background]) -> list[InputDocument]:
    """One document for each source, the items of the highest priority first unless it keeps the order of the plan; what a background
    adds to it follows. Documents of backgrounds alone come first."""
    added = {document.name: document for provider in backgrounds for document in provider.documents}
    documents: list[InputDocument] = []
    for provider in loaded:
        traits = provider.source.traits
        background = added.pop(traits.document, InputDocument(traits.document))
        items = provider.items if traits.in_plan_order else sorted(provider.items, key=lambda item: -item.priority)
        documents.append(InputDocument(traits.document, items=(*items, *background.items), header=traits.heading or background.header))
    return [*added.values(), *documents]


async def _compress_key_facts(ctx: PhaseContext, gathered: GatheredContext, loaded: LoadedContext, budget_tokens: int) -> GatheredContext:
    """Each chosen turn within its limit: the key facts of a turn over it are compressed (decision 2,
    docs/decisions/02-selection-then-compression.md). SYNTHESIS chose them for the query, so all of them count."""
    if ctx.deps.summarizer is None:
        return gathered
    limit = min(
        PER_TURN_LIMIT, key_fact_budget(gathered, loaded, budget_tokens=budget_tokens, counter=ctx.deps.counter, now=ctx.deps.clock())
    )
    turns = list(gathered.prior_turns)
    for index, turn in enumerate(turns):
        text = "\n".join(f"{_LIST_MARK}{' '.join(fact.split())}" for fact in turn.key_facts)
        if ctx.deps.counter.count(text) > limit:
            content = CompressionInput(text, f"{GATHERED_FILE}: turn {turn.turn}", ContentType.PRIOR_TURN)
            result = ctx.record_compression(await ctx.deps.summarizer.fit_text(content, target=limit, site=ctx.site))
            key_facts = tuple(line.removeprefix(_LIST_MARK) for line in result.split("\n") if line.strip())
            turns[index] = turn.model_copy(update={"key_facts": key_facts})
    return gathered.model_copy(update={"prior_turns": tuple(turns)})


def _section2_budget(ctx: PhaseContext) -> int:
    """Tokens that section 2 may take so that the Planner can read it beside sections 0 and 1 (specification 000, section 11)."""
    count, budget = ctx.deps.counter.count, ctx.deps.recipes.get(PLANNER, ctx.mode).recipe.token_budget
    specs = [tool.spec for tool in ctx.deps.tools.values()]
    tool_tokens = sum(count(f"{s.name}{s.description}{s.parameters}") + _TOOL_FRAME_TOKENS for s in specs)
    other_tokens = 2 * count(ctx.query) + count(ctx.context_document.body(1)) + tool_tokens + _PLANNER_FRAME_TOKENS
    return min(SECTION_BUDGETS[2], max(_MIN_SECTION2_TOKENS, budget.input - other_tokens))


def _synthesis_budget(ctx: PhaseContext) -> int:
    """Tokens that sources may take in the pack of SYNTHESIS, beside the query (which it contains twice) and its analysis."""
    count, budget = ctx.deps.counter.count, ctx.deps.recipes.get(SYNTHESIS, ctx.mode).recipe.token_budget
    return budget.input - 2 * count(ctx.query) - count(ctx.file("query_analysis.json")) - _FRAME_TOKENS
