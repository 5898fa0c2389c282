"""Earlier turns as a call sees them: one JSON line per turn, offered as items to choose from (004 section 4.1)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from pandora_dagster.contracts.calls import InputDocument, Item
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import TurnRow
from pandora_dagster.contracts.words import TurnState
from pandora_dagster.phases.desk import Desk, line
from pandora_dagster.phases.indexing import current
from pandora_dagster.phases.kit import Kit
from pandora_dagster.phases.looking_back import crosses_sessions
from pandora_dagster.text.said_days import days_line
from pandora_dagster.text.sections import ContextDocument

RECENT_TURNS = 20
"""How many turn summaries are offered by age alone (004 section 4.1)."""
_FIRST = 1e12
"""Above what any score is worth: the question that the turn answers stays, whatever else must go."""
TOLD = 200
"""Of how many of a session's newest turns a phase says how they went."""
_NEVER_DROPPED = 1e9
CONVERSATION = "summary of the conversation"
"""The name of the item that stands for all turns that are rolled up."""


@dataclass(frozen=True, slots=True)
class Told:
    """How an earlier turn of the session went into a call, and why."""

    number: int
    how: str
    """`whole`, `summary`, `rolled up` or `left out`."""
    why: str


def recent(desk: Desk) -> tuple[TurnRow, ...]:
    """The person's turns before this one, newest last."""
    key = desk.turn.key
    session = None if crosses_sessions(desk) else desk.turn.manifest.session_id
    rows = desk.kit.index.rows(key.user, session=session, before=key.number, limit=RECENT_TURNS)
    return tuple(r for row in rows if (r := current(desk.kit, row)).summary)


def of_session(desk: Desk, *, limit: int | None = TOLD) -> tuple[TurnRow, ...]:
    """The session's turns before this one, newest last; an unfinished turn has nothing to remember yet."""
    key, session = desk.turn.key, desk.turn.manifest.session_id
    rows = desk.kit.index.rows(key.user, session=session, before=key.number, limit=limit)
    return tuple(r for row in rows if (r := current(desk.kit, row)).summary)


def summaries(
    rows: Iterable[TurnRow],
    *,
    session: str,
    scores: dict[int, float] | None = None,
    protected: Collection[int] = (),
    days: tuple[str, ...] = (),
) -> InputDocument:
    """The document `turn_summaries`: newest last; kept are `protected` turns, then by score, then by session, then by age.

    `days`: those that the query names, told before the turns.
    """
    known = scores or {}
    items: list[Item] = []
    for place, row in enumerate(sorted(rows, key=lambda r: r.number)):
        worth = known.get(row.number, 0.0) * 1e6 + (1e3 if row.session_id == session else 0.0) + place
        worth += _NEVER_DROPPED if row.number in protected else 0.0
        items.append(Item(_header(row), worth, f"turn {row.number}"))
    return InputDocument("turn_summaries", items=tuple(items), header=days_line(days))


def window_facts(told: Sequence[Told], left_out: Collection[str]) -> dict[str, Any]:
    """The table `window` of a phase: turns of the session, neighbours of one kind in one row.

    `left_out`: items the call had no room for.
    """
    names = item_names(told)
    seen = [Told(t.number, "left out", "no room in the call") if names[t.number] in left_out else t for t in told]
    groups = [(how, why, [t.number for t in group]) for (how, why), group in groupby(seen, key=lambda t: (t.how, t.why))]
    rows = [{"turn": ranges(numbers), "how": how, "why": why} for how, why, numbers in groups]
    return {"window": rows} if rows else {}


def item_names(told: Sequence[Told]) -> dict[int, str]:
    """Turn of the window -> the name of the item that carries it in a call."""
    return {t.number: CONVERSATION if t.how == "rolled up" else f"turn {t.number}" for t in told}


def summary_facts(rows: Iterable[TurnRow], offered: InputDocument, left_out: Collection[str]) -> dict[str, Any]:
    """`window_facts` of a call that sees summaries alone: of the session's `rows` those in `offered`."""
    names = {item.name for item in offered.items}
    told = [_told(row.number, f"turn {row.number}" in names) for row in rows]
    return window_facts(told, left_out)


def earlier(desk: Desk) -> tuple[int, ...]:
    """The session's earlier turns, ascending and at most the newest `TOLD`, as an earlier phase of this turn wrote them down."""
    reports = (phase.report.get("facts", {}).get("window", ()) for phase in desk.turn.manifest.phases)
    rows = next((rows for rows in reports if rows), ())
    return tuple(sorted(number for row in rows for number in _numbers(str(row["turn"]))))


def _numbers(text: str) -> Iterable[int]:
    """What `ranges` wrote, as numbers."""
    for run in text.split(", "):
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)


def ranges(numbers: Sequence[int]) -> str:
    """`1-3, 7` for 1, 2, 3, 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _told(number: int, is_offered: bool) -> Told:
    return (
        Told(number, "summary", "among the turns offered")
        if is_offered
        else Told(number, "left out", "older, and not among the best matches")
    )


def _header(row: TurnRow) -> str:
    return line(
        {
            "turn_id": row.number,
            "timestamp": row.created_at,
            "summary": row.summary,
            "topics": list(row.topics),
            "session": row.session_id,
            "state": row.state.value,
        }
    )


def open_question(kit: Kit, user: str, session: str) -> str | None:
    """The turn id of the session's last turn where that one asked the person back (DECISIONS 11)."""
    last = [current(kit, row) for row in kit.index.rows(user, session=session, limit=1)]
    return last[0].turn_id if last and last[0].state is TurnState.CLARIFY else None


def with_question(offered: InputDocument, desk: Desk) -> InputDocument:
    """The offered summaries, and last among them the exchange that this turn replies to: what was asked, and asked back (DECISIONS 11)."""
    asked = desk.turn.manifest.replies_to
    if asked is None:
        return offered
    number = int(asked.removeprefix("turn_"))
    context = ContextDocument.parse(desk.kit.turns.load(TurnKey(desk.turn.key.user, number)).context)
    told = line({"turn_id": number, "query": context.query(), "asked_back": context.body(5), "state": TurnState.CLARIFY.value})
    return replace(offered, items=(*offered.items, Item(told, _FIRST, f"question of turn {number}")))
