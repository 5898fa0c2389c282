"""Which users, turns and revisions there are, from names alone: a listing of 100,000 turns opens no file."""

from collections.abc import Iterator
from pathlib import Path

from pandora_dagster.contracts.ids import HIGHEST_TURN, TurnKey, UserId, turn_number, user_id
from pandora_dagster.errors import BadIdError, UnknownTurnError
from pandora_dagster.stores.files import disk_errors
from pandora_dagster.stores.layout import REVISIONS, Layout
from pandora_dagster.stores.numbering import turn_numbers


def user_ids(layout: Layout) -> tuple[UserId, ...]:
    """Users that have a folder, by name."""
    if not layout.users.is_dir():
        return ()
    with disk_errors(layout.users, "cannot list"):
        return tuple(sorted(user for entry in layout.users.iterdir() if (user := _user(entry)) is not None))


def turn_keys(layout: Layout, user: UserId | None) -> Iterator[TurnKey]:
    """Turns by user and number."""
    for owner in user_ids(layout) if user is None else (user_id(user),):
        for number in sorted(turn_numbers(layout.turns(owner))):
            yield TurnKey(owner, number)


def resolve_turn(layout: Layout, text: str) -> TurnKey:
    """The turn that a person means; raises BadIdError, or UnknownTurnError where none or several fit."""
    owner, colon, short = text.strip().rpartition(":")
    number = _short_number(short)
    candidates = (user_id(owner),) if colon else user_ids(layout)
    fitting = [key for user in candidates if layout.turn(key := TurnKey(user, number)).is_dir()]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise UnknownTurnError(f"turn {text[:80]!r}: no such turn under {layout.root}: expected one that `pandora turns` lists")
    shown = ", ".join(map(str, fitting[:5])) + (" ..." if len(fitting) > 5 else "")
    raise UnknownTurnError(f"turn {text[:80]!r}: {len(fitting)} users have it ({shown}): expected <user>:{fitting[0].turn_id}")


def newest_revision(folder: Path) -> int:
    """The highest revision of a turn folder, 0 where it was never re-run."""
    revisions = folder / REVISIONS
    if not revisions.is_dir():
        return 0
    with disk_errors(revisions, "cannot list"):
        names = [entry.name for entry in revisions.iterdir()]
    return max((int(n) for n in names if n.isascii() and n.isdigit() and str(int(n)) == n), default=0)


def _short_number(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 9 and 0 < int(text) <= HIGHEST_TURN:
        return int(text)
    return turn_number(text)


def _user(entry: Path) -> UserId | None:
    try:
        return user_id(entry.name) if entry.is_dir() else None
    except BadIdError:
        return None
