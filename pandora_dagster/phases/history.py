"""Earlier turns as a call sees them: one JSON line per turn, offered as items to choose from (004 section 4.1)."""

from collections.abc import Iterable

from pandora_dagster.contracts.calls import InputDocument, Item
from pandora_dagster.contracts.turns import TurnRow
from pandora_dagster.contracts.words import TurnState
from pandora_dagster.phases.desk import Desk, line
from pandora_dagster.phases.indexing import current
from pandora_dagster.phases.kit import Kit

RECENT_TURNS = 20
"""How many turn summaries are offered by age alone (004 section 4.1)."""


def recent(desk: Desk) -> tuple[TurnRow, ...]:
    """The person's turns before this one, newest last."""
    key = desk.turn.key
    rows = desk.kit.index.rows(key.user, before=key.number, limit=RECENT_TURNS)
    return tuple(r for row in rows if (r := current(desk.kit, row)).summary)


def summaries(rows: Iterable[TurnRow], *, session: str, scores: dict[int, float] | None = None) -> InputDocument:
    """The document `turn_summaries`: newest last; kept by score, then by session, then by age."""
    known = scores or {}
    items: list[Item] = []
    for place, row in enumerate(sorted(rows, key=lambda r: r.number)):
        worth = known.get(row.number, 0.0) * 1e6 + (1e3 if row.session_id == session else 0.0) + place
        items.append(Item(_header(row), worth, f"turn {row.number}"))
    return InputDocument("turn_summaries", items=tuple(items))


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
