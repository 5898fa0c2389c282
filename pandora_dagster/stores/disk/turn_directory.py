"""Users, turns and revisions by their names, turn numbers given once per user, and the first day of the store. Opens no document."""

import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from pandora_dagster.contracts.ids import MAX_TURN_NUMBER, TurnKey, UserId, turn_number, user_id
from pandora_dagster.errors import BadIdError, DocumentError, StoreError, UnknownTurnError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, encode_text, read_text, write_atomic
from pandora_dagster.stores.disk.layout import REVISIONS, Layout

_COUNTER = ".last_number"
_LOCK = ".last_number.lock"


def allocate_numbers(layout: Layout, user: UserId, count: int, *, seconds: float) -> range:
    """`count` numbers that no turn of `user` had or will have; a number is never given twice, also when several processes ask.

    The counter file remembers numbers whose folders are gone; the folders count where the counter is missing or behind them.
    """
    if count < 1:
        raise ValueError(f"count {count}: expected at least 1")
    folder = layout.turns(user)
    with file_lock(folder / _LOCK, what=f"turn numbers of {user}", seconds=seconds):
        first = _last_given(layout, user) + 1
        if first + count - 1 > MAX_TURN_NUMBER:
            raise StoreError(f"{folder}: turn {first + count - 1}: expected at most {MAX_TURN_NUMBER}")
        write_atomic(folder / _COUNTER, f"{first + count - 1}\n".encode())
    return range(first, first + count)


def turn_numbers(folder: Path) -> Iterator[int]:
    """The numbers of the turn folders in `folder`, by their names alone, in no order."""
    if not folder.is_dir():
        return
    with disk_errors(folder, "cannot list"), os.scandir(folder) as entries:
        for entry in entries:
            number = _number(entry.name)
            if number is not None and entry.is_dir():
                yield number


def _last_given(layout: Layout, user: UserId) -> int:
    folder = layout.turns(user)
    counted = _counted(folder / _COUNTER)
    # Listing 100,000 folders at every start costs 50 ms or more, so the counter is used until a folder contradicts it.
    if counted is not None and not os.path.lexists(layout.turn(TurnKey(user, counted + 1))):
        return counted
    return max(turn_numbers(folder), default=0) if counted is None else max(counted, *turn_numbers(folder))


def _counted(path: Path) -> int | None:
    try:
        text = path.read_bytes().strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path}: cannot read the last turn number: {error.strerror}") from error
    return int(text) if text.isdigit() and len(text) <= 9 else None


def _number(name: str) -> int | None:
    try:
        number = turn_number(name)
    except BadIdError:
        return None
    return number if f"turn_{number:06d}" == name else None


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
    """The turn that a user means; raises BadIdError, or UnknownTurnError where none or several fit."""
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
    if text.isascii() and text.isdigit() and len(text) <= 9 and 0 < int(text) <= MAX_TURN_NUMBER:
        return int(text)
    return turn_number(text)


def _user(entry: Path) -> UserId | None:
    try:
        return user_id(entry.name) if entry.is_dir() else None
    except BadIdError:
        return None


_FIRST_DAY = "first_day"


class FirstDay:
    """The first day that a store has turns of, in `<root>/first_day` as one ISO date: Dagster's day partitions begin there when it is
    before the day of the settings. An import stores the first day of all turns, an archival run that of the turns that are due. An
    unreadable file counts as none.
    """

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._root, self._lock_seconds = root, lock_seconds

    def read(self) -> date | None:
        """The day, None where no turn is older than the day of the settings."""
        try:
            return date.fromisoformat(read_text(self._root / _FIRST_DAY, limit=100).strip())
        except (DocumentError, ValueError):
            return None

    def extend(self, day: date, *, known: date) -> bool:
        """Store `day` where it is before `known`, the day of the settings, and the stored one; True where it was. Raises StoreError."""
        if day >= known or ((stored := self.read()) and day >= stored):
            return False
        with file_lock(self._root / f".{_FIRST_DAY}.lock", what="the first day of the store", seconds=self._lock_seconds):
            if (stored := self.read()) and day >= stored:
                return False
            write_atomic(self._root / _FIRST_DAY, encode_text(_FIRST_DAY, f"{day.isoformat()}\n"))
        return True
