"""Rows of the turn index as its tests make them: a turn by its text, or by its messages."""

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.turns import IndexedMessage, TurnRow


def text_row(number: int, text: str = "", *, user: str = "ann", session: str = "s1", **fields: object) -> TurnRow:
    """A saved turn of the day of its number."""
    created = _day(number)
    plain = {
        "user_id": user,
        "turn_id": f"turn_{number:06d}",
        "number": number,
        "session_id": session,
        "state": TurnState.SAVED,
        "created_at": created,
        "last_activity": created,
        "text": text,
    }
    return TurnRow.model_validate(plain | fields)


def message_row(number: int, *texts: str, user: str = "ann", session: str = "s1", **fields: object) -> TurnRow:
    """A saved turn whose messages are `D<number>:1` and so on."""
    report = enumerate(texts, 1)
    messages = tuple(IndexedMessage(id=f"D{number}:{i}", role="user", text=t, created_at=_day(number)) for i, t in report)
    return TurnRow.model_validate(text_row(number, user=user, session=session).model_dump() | {"messages": messages} | fields)


def _day(number: int) -> str:
    return f"2026-01-{1 + number % 28:02d}T10:00:00Z"
