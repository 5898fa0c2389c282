"""Phase 2, the Context Gatherer: RETRIEVAL chooses, loading is strict, SYNTHESIS compiles section 2 (004)."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from pandora_dagster.contracts.compression_results import CompressionInput
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.model_calls import InputDocument, Item, Source
from pandora_dagster.contracts.phase_outputs import GatheredContext, RetrievalPlan
from pandora_dagster.contracts.turns import Turn, TurnRow
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.documents.markdown import cell, table
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.language.relative_days import days_line
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput, as_json, parsed_answer
from pandora_dagster.phases.gather import retrieval_scope, session_history
from pandora_dagster.phases.gather.compact_context import KnownFacts, conversation_context, known_facts
from pandora_dagster.phases.gather.prior_turns import (
    context_path,
    item_worth,
    prior_turn,
    protected_turns,
    session_window,
    with_turn_header,
)
from pandora_dagster.phases.gather.section2 import GATHERED_FILE, MEMORY_FILES, LoadedContext, fit_section2, key_fact_budget, matching_visit
from pandora_dagster.phases.gather.source_documents import LoadedSources, load_sources
from pandora_dagster.phases.gather.source_headers import list_source_headers
from pandora_dagster.retrieval.context_window import limit_turns, window_policy
from pandora_dagster.retrieval.turn_excerpts import PER_TURN_LIMIT
from pandora_dagster.retrieval.turn_row import READ_FILES

RETRIEVAL = "pipeline/phase2_retrieval"
SYNTHESIS = "pipeline/phase2_synthesis"
PLANNER = "pipeline/phase3_planner"
_FRAMES = 200
"""Tokens of a SYNTHESIS pack around its documents: frames, names and the line about the session."""
_FACT_FRAME = 24
"""Tokens around a fact: category, date, turn, label."""
_PREFERENCES_HEADING = "===== STORED USER PREFERENCES ====="
_MEMORY_WORTH = 1e13
"""Worth of what is stored about the person."""
_MEMORY_TOKENS = 300
"""Of one stored value: most are a few words, the longest that may be stored is a page."""


async def retrieval_plan(ctx: PhaseContext) -> PhaseOutput:
    """RETRIEVAL: which of the offered sources matter (004 section 4.1)."""
    analysis, rows = ctx.analysis(), session_history.session_turns(ctx)
    found = retrieval_scope.candidate_turns(ctx, f"{analysis.resolved_query} {' '.join(analysis.entities)}")
    offered, others = _candidates_document(ctx, found, rows), list_source_headers(ctx)
    result = await ctx.ask(RETRIEVAL, [ctx.analysis_document(), offered, *others.documents])
    plan = parsed_answer(result, RetrievalPlan)
    facts = {"sources": _source_count(plan), **found.facts, **session_history.summary_facts(rows, offered, result.record.left_out)}
    facts |= {name: told for name, told in (("notices", others.notices), ("headers_left_out", others.left_out)) if told}
    return PhaseOutput(files={"retrieval_plan.json": as_json(plan)}, facts=facts, shown=_plan_table(plan))


async def gathered_context(ctx: PhaseContext) -> PhaseOutput:
    """Load what the plan names and the session's window, and let SYNTHESIS compile section 2 (004 sections 4.2, 4.3, 5)."""
    plan = ctx.read("retrieval_plan.json", RetrievalPlan)
    loaded, told, header, context = await _load_plan(ctx, plan)
    days = retrieval_scope.named_days(ctx)
    header = "\n".join(line for line in (days_line(days), header) if line)
    documents = [
        ctx.analysis_document(),
        *context,
        InputDocument("prior_turns", items=loaded.items, header=header),
        InputDocument("stored_preferences", items=_preference_items(loaded.memory), header=_PREFERENCES_HEADING if loaded.memory else ""),
        *loaded.others.documents,
    ]
    result = await ctx.ask(SYNTHESIS, [d for d in documents if d.text or d.items], sources=loaded.sources)
    gathered = parsed_answer(result, GatheredContext)
    of_window = set(session_history.item_names(told).values())
    loaded = replace(loaded, left_out=(*loaded.left_out, *(n for n in result.record.left_out if n not in of_window)))
    room, now = _section2_room(ctx), ctx.deps.clock()
    fitting = await _compress_key_facts(ctx, gathered, loaded, room)
    section = fit_section2(fitting, replace(loaded, days=days), room=room, counter=ctx.deps.counter, now=now)
    facts: dict[str, Any] = {"sources": len(loaded.sources), "context_quality": section.quality}
    facts["left_out"] = len(section.left_out) + len(loaded.left_out)
    if unused := [e.key for e in loaded.memory if e.key not in gathered.session_preferences]:
        facts["memory_not_used"] = unused
    if passed := _unused_sources(gathered, loaded.others):
        facts["sources_not_used"] = passed
    if loaded.left_out:
        facts["left_out_of_call"] = list(loaded.left_out)
    if section.left_out:
        facts["left_out_of_section_2"] = [asdict(item) for item in section.left_out]
    facts |= session_history.window_facts(told, result.record.left_out)
    return PhaseOutput(
        sections={2: section.text}, files={"gathered_context.json": as_json(gathered)}, facts=facts, verdicts=section.verdicts
    )


def _unused_sources(gathered: GatheredContext, others: LoadedSources) -> list[str]:
    """Loaded research, visits and notes of which SYNTHESIS took nothing: for want of room, or as they did not bear on the query."""
    seen = [record.visit_id for data in gathered.visit_data if (record := matching_visit(data, others.visits))]
    notes = {k.note for k in gathered.forever_knowledge}
    passed = [f"research {r.topic}" for r in (others.research,) if r and gathered.cached_research is None]
    passed += [f"visit {v.visit_id}" for v in others.visits if v.visit_id not in seen]
    return passed + [f"note {n.header.name}" for n in others.notes if n.header.name not in notes]


async def _compress_key_facts(ctx: PhaseContext, gathered: GatheredContext, loaded: LoadedContext, room: int) -> GatheredContext:
    """Each chosen turn within its limit: the key facts of one that is over it are compressed (DECISIONS 2). They were
    gathered for the query already, so all of them count."""
    if ctx.deps.summarizer is None:
        return gathered
    limit = min(PER_TURN_LIMIT, key_fact_budget(gathered, loaded, room=room, counter=ctx.deps.counter, now=ctx.deps.clock()))
    turns = list(gathered.prior_turns)
    for place, turn in enumerate(turns):
        text = "\n".join(" ".join(fact.split()) for fact in turn.key_facts)
        if ctx.deps.counter.count(text) > limit:
            reported = CompressionInput(text, f"{GATHERED_FILE}: turn {turn.turn}", ContentType.PRIOR_TURN)
            shrunk = ctx.record_compression(await ctx.deps.summarizer.fit_text(reported, target=limit, site=ctx.site))
            turns[place] = turn.model_copy(update={"key_facts": tuple(line for line in shrunk.split("\n") if line.strip())})
    return gathered.model_copy(update={"prior_turns": tuple(turns)})


def _candidates_document(ctx: PhaseContext, found: retrieval_scope.TurnCandidates, of_session: Sequence[TurnRow]) -> InputDocument:
    session = ctx.turn.manifest.session_id
    best = max((c.score for c in found.candidates), default=0.0) or 1.0
    scores = {c.row.number: c.score / best for c in found.candidates}
    rows = {c.row.number: c.row for c in found.candidates}
    kept = protected_turns(ctx, of_session)
    rows |= {row.number: row for row in of_session if row.number in kept}
    summarised = (row for row in rows.values() if row.summary)  # an unfinished turn has none, and nothing to remember yet
    return session_history.summaries_document(
        summarised, session=session, scores=scores, protected=kept, days=retrieval_scope.named_days(ctx)
    )


async def _load_plan(
    ctx: PhaseContext, plan: RetrievalPlan
) -> tuple[LoadedContext, tuple[session_history.TurnInclusion, ...], str, tuple[InputDocument, ...]]:
    """Strictly what the plan names, a thing that is missing HALTs (004 section 9); then the session's window, and what is known."""
    rows, known = session_history.session_turns(ctx), known_facts(ctx)
    turns, over = _limit_turns(ctx, [_load_turn(ctx, TurnKey(ctx.turn.key.user, n)) for n in dict.fromkeys(plan.relevant_turns)], rows)
    sources = tuple(Source(str(n), context_path(t.key.turn_id), _turn_title(t), t.key.turn_id) for n, t in enumerate(turns, 1))
    memory = await _compress_entries(ctx, _memory_entries(ctx, plan.relevant_memory_keys))
    items, left_out = await _turn_items(ctx, turns, sources, plan, protected_turns(ctx, rows))
    files = sorted({MEMORY_FILES[e.kind] for e in memory})
    sources += tuple(Source(str(len(sources) + n), name, "Stored user preferences") for n, name in enumerate(files, 1))
    others = await load_sources(ctx, plan, first_label=len(sources) + 1)
    sources += others.sources
    seen = await session_window(
        ctx,
        rows,
        chosen={t.key.number for t in turns},
        room=_synthesis_room(ctx, memory, others, known),
        retrieved_tokens=sum(ctx.deps.counter.count(item.text) for item in items),
        first_label=max((int(s.label) for s in sources), default=0) + 1,
    )
    sources += seen.sources
    context, more = conversation_context(known, sources, user=ctx.turn.key.user, turn_count=len(rows) + 1)
    left = (*over, *left_out, *others.left_out, *seen.left_out)
    return LoadedContext((*items, *seen.items), (*sources, *more), memory, left, others), seen.told, seen.header, context


def _limit_turns(ctx: PhaseContext, turns: Sequence[Turn], rows: Sequence[TurnRow]) -> tuple[list[Turn], tuple[str, ...]]:
    """The chosen turns that the policy's counts let in (002 section 5), and the names of the others."""
    here = frozenset(t.key.number for t in turns if t.manifest.session_id == ctx.turn.manifest.session_id)
    first = rows[0].number if rows else ctx.turn.key.number
    kept, left = limit_turns(window_policy(ctx.deps.policy), [t.key.number for t in turns], here=here, first=first)
    return [t for t in turns if t.key.number in kept], tuple(f"turn {n}" for n in left)


def _load_turn(ctx: PhaseContext, key: TurnKey) -> Turn:
    """An earlier turn by its number; this turn and later ones are no history."""
    where = f"retrieval_plan.json: relevant_turns: {key.number}"
    if not 0 < key.number < ctx.turn.key.number:
        raise DocumentError(f"{where}: not an earlier turn than {ctx.turn.key}: expected one of those offered", missing=True)
    try:
        turn = ctx.deps.turns.load(key, only=READ_FILES)
    except UnknownTurnError as error:
        raise DocumentError(f"{where}: {key} does not exist: expected one of those offered", missing=True) from error
    if not retrieval_scope.may_load(ctx, turn):
        raise DocumentError(f"{where}: {key} is of another session, and {key.user} has not consented: expected one of those offered")
    return turn


async def _turn_items(
    ctx: PhaseContext, turns: Sequence[Turn], sources: Sequence[Source], plan: RetrievalPlan, kept: frozenset[int]
) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    items: list[Item] = []
    left_out: list[str] = []
    for place, (turn, source) in enumerate(zip(turns, sources, strict=True)):
        number = turn.key.number
        text, left = await prior_turn(ctx, turn, source.path, limit=PER_TURN_LIMIT)
        value = item_worth(number, is_protected=True) if number in kept else _turn_worth(plan, number) - place
        items.append(Item(with_turn_header(number, turn.manifest.created_at, source.label, text), value, f"turn {number}"))
        left_out += [f"turn {number}: {name}" for name in left]
    return tuple(items), tuple(left_out)


def _turn_worth(plan: RetrievalPlan, number: int) -> float:
    known = plan.turn_relevance.get(str(number))
    return {"high": 300.0, "medium": 200.0, "low": 100.0}[known.relevance if known else "medium"]


def _memory_entries(ctx: PhaseContext, keys: Sequence[str]) -> tuple[MemoryEntry, ...]:
    known = ctx.deps.memory.entries(ctx.turn.key.user)
    if missing := [k for k in keys if all(e.key != k for e in known)]:
        where = f"retrieval_plan.json: relevant_memory_keys: {', '.join(missing)}"
        raise DocumentError(f"{where}: not in the memory store: expected keys that were offered", missing=True)
    return tuple(e for k in dict.fromkeys(keys) for e in known if e.key == k)


async def _compress_entries(ctx: PhaseContext, entries: tuple[MemoryEntry, ...]) -> tuple[MemoryEntry, ...]:
    """Each value within its limit: one over it is compressed to it (DECISIONS 2)."""
    found = list(entries)
    for place, entry in enumerate(entries):
        if ctx.deps.summarizer and ctx.deps.counter.count(entry.value) > _MEMORY_TOKENS:
            reported = CompressionInput(
                entry.value, f"{MEMORY_FILES[entry.kind]}: {entry.key}", ContentType.GENERIC, query=ctx.analysis().resolved_query
            )
            shrunk = await ctx.deps.summarizer.fit_text(reported, target=_MEMORY_TOKENS, site=ctx.site)
            found[place] = replace(entry, value=ctx.record_compression(shrunk))
    return tuple(found)


def _preference_items(entries: Sequence[MemoryEntry]) -> tuple[Item, ...]:
    """An item a key, in the order in which RETRIEVAL named them: memory goes before all else (004 section 7.3)."""
    return tuple(Item("\n".join(_preference_lines(e)), _MEMORY_WORTH - place, f"memory {e.key}") for place, e in enumerate(entries))


def _preference_lines(entry: MemoryEntry) -> list[str]:
    """The current value, and under it what it contradicts."""
    origin = f", turn {entry.source_turn}" if entry.source_turn else ""
    lines = [f"- {entry.key}: {cell(entry.value)} (confidence {entry.confidence:.2f}{origin})"]
    return lines + [f"  earlier, until {(entry.last_updated or 'an unknown day')[:10]}: {cell(e.value)}" for e in entry.earlier[:1]]


def _turn_title(turn: Turn) -> str:
    summary = turn.manifest.summary
    return str(summary["summary"]) if summary else f"turn of {turn.manifest.created_at[:10]}"


def _section2_room(ctx: PhaseContext) -> int:
    """Tokens section 2 may take so that the Planner can read it beside sections 0 and 1 (000 section 11)."""
    count, budget = ctx.deps.counter.count, ctx.deps.cookbook.get(PLANNER, ctx.mode).recipe.token_budget
    tools = sum(count(f"{t.spec.name}{t.spec.description}{t.spec.parameters}") + 20 for t in ctx.deps.tools.values())
    taken = 2 * count(ctx.query) + count(ctx.context_document.body(1)) + tools + 120
    return min(2_000, max(200, budget.input - taken))


def _synthesis_room(ctx: PhaseContext, memory: Sequence[MemoryEntry], others: LoadedSources, known: KnownFacts) -> int:
    """Tokens that earlier turns may take in the pack of SYNTHESIS, beside the query (said twice), its analysis, other sources and what
    is known."""
    count, budget = ctx.deps.counter.count, ctx.deps.cookbook.get(SYNTHESIS, ctx.mode).recipe.token_budget
    taken = 2 * count(ctx.query) + count(ctx.file("query_analysis.json")) + sum(count(i.text) for i in _preference_items(memory)) + _FRAMES
    taken += sum(count(item.text) for document in others.documents for item in document.items)
    taken += sum(count(fact.fact) + _FACT_FRAME for fact in known.all_facts)
    return max(0, budget.input - taken)


def _source_count(plan: RetrievalPlan) -> int:
    named = (plan.relevant_turns, plan.relevant_memory_keys, plan.relevant_notes, plan.webpage_cache_needed)
    return sum(map(len, named)) + plan.research_cache_match.matched


def _plan_table(plan: RetrievalPlan) -> str:
    turns = [(f"turn {n}", *_relevance_reason(plan, n)) for n in plan.relevant_turns]
    others = [(k, "", "") for k in (*plan.relevant_memory_keys, *plan.relevant_notes, *plan.webpage_cache_needed)]
    match = plan.research_cache_match
    others += [(f"research {match.topic}", "", f"reuse: {match.reuse_recommendation}")] if match.matched else []
    return table(("Source", "Relevance", "Reason"), [*turns, *others]) + f"\n\n{plan.reasoning}"


def _relevance_reason(plan: RetrievalPlan, number: int) -> tuple[str, str]:
    known = plan.turn_relevance.get(str(number))
    return (known.relevance, known.reason) if known else ("", "")
