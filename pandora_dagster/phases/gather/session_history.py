"""Earlier turns as one JSON line each, offered as items to choose from (specification 004, section 4.1), and their report."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.model_calls import InputDocument, Item
from pandora_dagster.contracts.turns import TurnRow
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.phases.core.day_ranges import days_line
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.core.phase_context import PhaseContext, json_line
from pandora_dagster.phases.core.turn_indexing import current_row

RECENT_TURNS = 20
"""How many turn summaries are offered by age alone (specification 004, section 4.1)."""
_QUESTION_PRIORITY = 1e12
"""Above every other priority: the question that the turn answers is never dropped."""
MAX_LISTED_TURNS = 200
"""The number of a session's newest turns that a phase reports on."""
_PROTECTED_PRIORITY, _SCORE_PRIORITY, _SESSION_PRIORITY = 1e9, 1e6, 1e3
"""Priority of a summary: protected turns first, then the score of the search (0 to 1), then the turns of the session, newest first."""
CONVERSATION_ITEM = "summary of the conversation"
"""The name of the item that replaces all turns that are rolled up."""


@dataclass(frozen=True, slots=True)
class TurnInclusion:
    """The form in which a call includes an earlier turn of the session, and the reason."""

    number: int
    form: str
    """`whole`, `summary`, `rolled up` or `left out`."""
    reason: str


def recent_turns(ctx: PhaseContext) -> tuple[TurnRow, ...]:
    """The user's turns before this one, newest last."""
    key = ctx.turn.key
    rows = ctx.deps.index.rows(key.user, session=None, before=key.number, limit=RECENT_TURNS)
    return tuple(r for row in rows if (r := current_row(ctx.deps, row)).summary)


def session_turns(ctx: PhaseContext, *, limit: int | None = MAX_LISTED_TURNS) -> tuple[TurnRow, ...]:
    """The session's turns before this one, newest last, without unfinished turns."""
    key, session = ctx.turn.key, ctx.turn.manifest.session_id
    rows = ctx.deps.index.rows(key.user, session=session, before=key.number, limit=limit)
    return tuple(r for row in rows if (r := current_row(ctx.deps, row)).summary)


def summaries_document(
    rows: Iterable[TurnRow],
    *,
    session: str,
    scores: dict[int, float] | None = None,
    protected: Collection[int] = (),
    days: tuple[str, ...] = (),
) -> InputDocument:
    """The document `turn_summaries`, newest last. `protected` turns have the highest priority, then score, session and age decide.

    `scores`: how well the index found that turns match, the best as 1. `days`: the days that the query names; they precede the turns.
    """
    items: list[Item] = []
    for age_rank, row in enumerate(sorted(rows, key=lambda r: r.number)):
        priority = (
            (scores or {}).get(row.number, 0.0) * _SCORE_PRIORITY + (_SESSION_PRIORITY if row.session_id == session else 0.0) + age_rank
        )
        priority += _PROTECTED_PRIORITY if row.number in protected else 0.0
        items.append(Item(_summary_line(row, (scores or {}).get(row.number)), priority, f"turn {row.number}"))
    return InputDocument("turn_summaries", items=tuple(items), header=days_line(days))


def window_facts(inclusions: Sequence[TurnInclusion], left_out: Collection[str]) -> dict[str, Any]:
    """The table `window` of a phase: turns of the session, adjacent turns of one form in one row.

    `left_out`: items that did not fit the call.
    """
    names = item_names(inclusions)
    sent = [TurnInclusion(t.number, "left out", "no room in the call") if names[t.number] in left_out else t for t in inclusions]
    groups = groupby(sent, key=lambda t: (t.form, t.reason))
    rows = [{"turn": number_ranges([t.number for t in group]), "how": form, "why": reason} for (form, reason), group in groups]
    return {"window": rows} if rows else {}


def item_names(inclusions: Sequence[TurnInclusion]) -> dict[int, str]:
    """Turn of the window -> the name of its item in a call."""
    return {t.number: CONVERSATION_ITEM if t.form == "rolled up" else f"turn {t.number}" for t in inclusions}


def summary_facts(rows: Iterable[TurnRow], offered: InputDocument, left_out: Collection[str]) -> dict[str, Any]:
    """`window_facts` of a call that sees summaries only: of the session's `rows` those in `offered`."""
    names = {item.name for item in offered.items}
    return window_facts([_inclusion(row.number, f"turn {row.number}" in names) for row in rows], left_out)


def earlier_turns(ctx: PhaseContext) -> tuple[int, ...]:
    """The session's earlier turns, ascending and at most the newest `MAX_LISTED_TURNS`, as an earlier phase of this turn reported them."""
    reports = (phase.report.get("facts", {}).get("window", ()) for phase in ctx.turn.manifest.phases)
    rows = next((rows for rows in reports if rows), ())
    return tuple(sorted(number for row in rows for number in _parse_ranges(str(row["turn"]))))


def _parse_ranges(text: str) -> Iterable[int]:
    """The numbers that `number_ranges` wrote."""
    for run in text.split(", "):
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)


def number_ranges(numbers: Sequence[int]) -> str:
    """`1-3, 7` for 1, 2, 3, 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _inclusion(number: int, is_offered: bool) -> TurnInclusion:
    return (
        TurnInclusion(number, "summary", "among the turns offered")
        if is_offered
        else TurnInclusion(number, "left out", "older, and not among the best matches")
    )


def _summary_line(row: TurnRow, match: float | None) -> str:
    values: dict[str, Any] = {
        "turn_id": row.number,
        "timestamp": row.created_at,
        "summary": row.summary,
        "topics": list(row.topics),
        "session": row.session_id,
        "state": row.state.value,
    }
    return json_line(values | ({} if match is None else {"match": round(match, 2)}))


def open_question(deps: PhaseDependencies, user: str, session: str) -> str | None:
    """The turn id of the session's newest turn where it asked the user for clarification (decision 11, docs/decisions/11-clarify.md)."""
    newest = [current_row(deps, row) for row in deps.index.rows(user, session=session, limit=1)]
    return newest[0].turn_id if newest and newest[0].state is TurnState.CLARIFY else None


def with_open_question(offered: InputDocument, ctx: PhaseContext) -> InputDocument:
    """The offered summaries, and last the exchange that this turn replies to: the query and the question back (decision 11,
    docs/decisions/11-clarify.md)."""
    asking_turn = ctx.turn.manifest.replies_to
    if asking_turn is None:
        return offered
    number = int(asking_turn.removeprefix("turn_"))
    context = ContextDocument.parse(ctx.deps.turns.load(TurnKey(ctx.turn.key.user, number), only=()).context)
    line = json_line({"turn_id": number, "query": context.query(), "asked_back": context.body(5), "state": TurnState.CLARIFY.value})
    return replace(offered, items=(*offered.items, Item(line, _QUESTION_PRIORITY, f"question of turn {number}")))
