"""Phase 2, the Context Gatherer: RETRIEVAL chooses, loading is strict, SYNTHESIS compiles section 2 (004)."""

from collections.abc import Sequence

from pandora_dagster.contracts.answers import GatheredContext, RetrievalPlan
from pandora_dagster.contracts.calls import InputDocument, Item, Source
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports import MemoryEntry
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.phases import history
from pandora_dagster.phases.desk import Desk, Written, answer_of, as_json, line
from pandora_dagster.phases.section2 import Loaded, fitting_section2
from pandora_dagster.selection.excerpts import PER_TURN_LIMIT, excerpt
from pandora_dagster.text.tables import cell, table

RETRIEVAL = "pipeline/phase2_retrieval"
SYNTHESIS = "pipeline/phase2_synthesis"
PLANNER = "pipeline/phase3_planner"
CANDIDATES = 20
"""Turns the index offers to RETRIEVAL."""
RECENT_OF_SESSION = 3
"""Turns of the session that are offered whatever their score."""
_STORED = "===== STORED USER PREFERENCES ====="


async def retrieval_plan(desk: Desk) -> Written:
    """RETRIEVAL: which of the offered sources matter (004 section 4.1)."""
    analysis = desk.analysis()
    offered = _candidates(desk, f"{analysis.resolved_query} {' '.join(analysis.entities)}")
    documents = [InputDocument("query_analysis.json", desk.file("query_analysis.json")), offered, _memory_headers(desk)]
    result = await desk.ask(RETRIEVAL, documents)
    plan = answer_of(result, RetrievalPlan)
    return Written(files={"retrieval_plan.json": as_json(plan)}, facts={"sources": _chosen(plan)}, shown=_plan_table(plan))


async def gathered_context(desk: Desk) -> Written:
    """Load what the plan names, and let SYNTHESIS compile section 2 from it (004 sections 4.2, 4.3, 5)."""
    plan = desk.read("retrieval_plan.json", RetrievalPlan)
    loaded = _load(desk, plan)
    documents = [
        InputDocument("query_analysis.json", desk.file("query_analysis.json")),
        InputDocument("prior_turns", items=loaded.items),
        InputDocument("stored_preferences", _preferences(loaded.memory)),
    ]
    result = await desk.ask(SYNTHESIS, [d for d in documents if d.text or d.items], sources=loaded.sources)
    gathered = answer_of(result, GatheredContext)
    section = fitting_section2(gathered, loaded, room=_room(desk), counter=desk.kit.counter)
    facts = {"sources": len(loaded.sources), "context_quality": section.quality, "left_out": len(section.left_out) + len(loaded.left_out)}
    return Written(sections={2: section.text}, files={"gathered_context.json": as_json(gathered)}, facts=facts)


def _candidates(desk: Desk, query: str) -> InputDocument:
    key, session = desk.turn.key, desk.turn.manifest.session_id
    found = desk.kit.index.candidates(key.user, query, limit=CANDIDATES, before=key.number)
    best = max((c.score for c in found), default=0.0) or 1.0
    scores = {c.row.number: c.score / best for c in found}
    rows = {c.row.number: c.row for c in found}
    for row in desk.kit.index.rows(key.user, session=session, before=key.number, limit=RECENT_OF_SESSION):
        rows.setdefault(row.number, row)
    summarised = (row for row in rows.values() if row.summary)  # an unfinished turn has none, and nothing to remember yet
    return history.summaries(summarised, session=session, scores=scores)


def _memory_headers(desk: Desk) -> InputDocument:
    entries = desk.kit.memory.entries(desk.turn.key.user)
    headers = [{"key": e.key, "value_preview": str(e.value)[:80], "last_updated": e.last_updated, "kind": e.kind} for e in entries]
    return InputDocument("memory_headers", items=tuple(Item(line(h), name=f"memory {h['key']}") for h in headers))


def _load(desk: Desk, plan: RetrievalPlan) -> Loaded:
    """Strictly what the plan names: a thing that is missing HALTs (004 section 9)."""
    key = desk.turn.key
    turns = [_turn(desk, TurnKey(key.user, number)) for number in dict.fromkeys(plan.relevant_turns)]
    sources = tuple(Source(str(place), f"turns/{t.key.turn_id}/context.md", _title(t), t.key.turn_id) for place, t in enumerate(turns, 1))
    items, left_out = _items(desk, turns, sources, plan)
    memory = _entries(desk, plan.relevant_memory_keys)
    if memory:
        files = sorted({"preferences.md" if e.kind == "preference" else "facts.md" for e in memory})
        sources += tuple(Source(str(len(sources) + n), name, "Stored user preferences") for n, name in enumerate(files, 1))
    return Loaded(items, sources, memory, left_out)


def _turn(desk: Desk, key: TurnKey) -> Turn:
    """An earlier turn by its number; this turn and later ones are no history."""
    where = f"retrieval_plan.json: relevant_turns: {key.number}"
    if not 0 < key.number < desk.turn.key.number:
        raise DocumentError(f"{where}: not an earlier turn than {desk.turn.key}: expected one of those offered", missing=True)
    try:
        return desk.kit.turns.load(key)
    except UnknownTurnError as error:
        raise DocumentError(f"{where}: {key} does not exist: expected one of those offered", missing=True) from error


def _items(desk: Desk, turns: Sequence[Turn], sources: Sequence[Source], plan: RetrievalPlan) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    items: list[Item] = []
    left_out: list[str] = []
    query = desk.analysis().resolved_query
    for place, (turn, source) in enumerate(zip(turns, sources, strict=True)):
        chosen = excerpt(turn, query, limit=PER_TURN_LIMIT, counter=desk.kit.counter, scores=desk.kit.scores)
        head = f"===== PRIOR TURN {turn.key.number} ({turn.manifest.created_at[:10]}) [{source.label}] ====="
        items.append(Item(f"{head}\n{chosen.text}", _worth(plan, turn.key.number) - place, f"turn {turn.key.number}"))
        left_out += [f"turn {turn.key.number}: {name}" for name in chosen.left_out]
    return tuple(items), tuple(left_out)


def _worth(plan: RetrievalPlan, number: int) -> float:
    known = plan.turn_relevance.get(str(number))
    return {"high": 300.0, "medium": 200.0, "low": 100.0}[known.relevance if known else "medium"]


def _entries(desk: Desk, keys: Sequence[str]) -> tuple[MemoryEntry, ...]:
    known = {e.key: e for e in desk.kit.memory.entries(desk.turn.key.user)}
    if missing := [k for k in keys if k not in known]:
        where = f"retrieval_plan.json: relevant_memory_keys: {', '.join(missing)}"
        raise DocumentError(f"{where}: not in the memory store: expected keys that were offered", missing=True)
    return tuple(known[k] for k in dict.fromkeys(keys))


def _preferences(entries: Sequence[MemoryEntry]) -> str:
    if not entries:
        return ""
    lines = [f"- {e.key}: {cell(e.value)} (confidence {e.confidence:.2f}, turn {e.source_turn})" for e in entries]
    return "\n".join([_STORED, *lines])


def _title(turn: Turn) -> str:
    summary = turn.manifest.summary
    return str(summary["summary"]) if summary else f"turn of {turn.manifest.created_at[:10]}"


def _room(desk: Desk) -> int:
    """Tokens section 2 may take so that the Planner can read it beside sections 0 and 1 (000 section 11)."""
    count, budget = desk.kit.counter.count, desk.kit.cookbook.get(PLANNER, desk.mode).recipe.token_budget
    tools = sum(count(f"{t.name}{t.description}{t.parameters}") + 20 for t in desk.kit.tools.values())
    taken = 2 * count(desk.query) + count(desk.context.body(1)) + tools + 120
    return min(2_000, max(200, budget.input - taken))


def _chosen(plan: RetrievalPlan) -> int:
    return len(plan.relevant_turns) + len(plan.relevant_memory_keys) + len(plan.relevant_notes) + len(plan.webpage_cache_needed)


def _plan_table(plan: RetrievalPlan) -> str:
    turns = [(f"turn {n}", *_why(plan, n)) for n in plan.relevant_turns]
    others = [(k, "", "") for k in (*plan.relevant_memory_keys, *plan.relevant_notes, *plan.webpage_cache_needed)]
    return table(("Source", "Relevance", "Reason"), [*turns, *others]) + f"\n\n{plan.reasoning}"


def _why(plan: RetrievalPlan, number: int) -> tuple[str, str]:
    known = plan.turn_relevance.get(str(number))
    return (known.relevance, known.reason) if known else ("", "")
