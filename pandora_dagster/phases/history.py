"""Earlier turns as a call sees them: one JSON line per turn, offered as items to choose from (004 section 4.1)."""

from collections.abc import Iterable

from pandora_dagster.contracts.calls import InputDocument, Item
from pandora_dagster.contracts.turns import TurnRow
from pandora_dagster.contracts.words import TurnState
from pandora_dagster.phases.desk import Desk, line
from pandora_dagster.phases.kit import Kit

RECENT_TURNS = 20
"""How many turn summaries are offered by age alone (004 section 4.1)."""


def recent(desk: Desk) -> tuple[TurnRow, ...]:
    """The person's turns before this one, newest last."""
    number = desk.turn.key.number
    rows = desk.kit.index.rows(desk.turn.key.user, limit=RECENT_TURNS + 1)
    return tuple(r for r in rows if r.number < number and r.summary)[-RECENT_TURNS:]


def summaries(rows: Iterable[TurnRow], *, session: str, scores: dict[int, float] | None = None) -> InputDocument:
    """The document `turn_summaries`: newest last; kept by score, then by session, then by age."""
    ordered = sorted(rows, key=lambda r: r.number)
    known = scores or {}
    items = tuple(
        Item(_header(row), priority=known.get(row.number, 0.0) * 1e6 + (1e3 if row.session_id == session else 0.0) + place)
        for place, row in enumerate(ordered)
    )
    return InputDocument(
        "turn_summaries", items=tuple(Item(i.text, i.priority, f"turn {r.number}") for i, r in zip(items, ordered, strict=True))
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
    rows = kit.index.rows(user, session=session, limit=1)
    return rows[-1].turn_id if rows and rows[-1].state is TurnState.CLARIFY else None
