"""Users, turns and revisions by the names of their folders, turn numbers, and the store's first day. Reads no document."""

import os
from collections.abc import Iterator
from pathlib import Path

from pandora_dagster.contracts.ids import MAX_TURN_NUMBER, TurnKey, UserId, turn_number, user_id
from pandora_dagster.errors import BadIdError, StoreError, UnknownTurnError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, write_atomic
from pandora_dagster.stores.disk.layout import REVISIONS, Layout

_COUNTER = ".last_number"
_LOCK = ".last_number.lock"
_MAX_EXAMPLES = 5
"""Turns that a message about an ambiguous number names."""
_MAX_DIGITS = 9
"""Digits of a number that is read; `HIGHEST_TURN` has fewer."""


def allocate_numbers(layout: Layout, user: UserId, count: int, *, seconds: float) -> range:
    """`count` numbers that no turn of `user` had or will have; a number is never allocated twice, also by several processes.

    The counter file `.last_number` covers deleted folders; where it is missing or behind the folders, the folders are listed.
    """
    if count < 1:
        raise ValueError(f"count {count}: expected at least 1")
    folder = layout.turns(user)
    with file_lock(folder / _LOCK, what=f"turn numbers of {user}", seconds=seconds):
        first = _last_allocated(layout, user) + 1
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
            number = _folder_number(entry.name)
            if number is not None and entry.is_dir():
                yield number


def _last_allocated(layout: Layout, user: UserId) -> int:
    """The highest number that was allocated."""
    folder = layout.turns(user)
    counter = _stored_counter(folder / _COUNTER)
    # Listing 100,000 folders at every start costs 50 ms or more, so the counter is used until a folder contradicts it.
    if counter is not None and not os.path.lexists(layout.turn(TurnKey(user, counter + 1))):
        return counter
    return max(turn_numbers(folder), default=0) if counter is None else max(counter, *turn_numbers(folder))


def _stored_counter(path: Path) -> int | None:
    """The number in the counter file; None where it is missing or damaged."""
    try:
        text = path.read_bytes().strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path}: cannot read the last turn number: {error.strerror}") from error
    return int(text) if text.isdigit() and len(text) <= _MAX_DIGITS else None


def _folder_number(name: str) -> int | None:
    """The number of a turn folder by its name; None for any other name."""
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
        return tuple(sorted(user for entry in layout.users.iterdir() if (user := _user_of_folder(entry)) is not None))


def turn_keys(layout: Layout, user: UserId | None) -> Iterator[TurnKey]:
    """Turns by user and number."""
    for owner in user_ids(layout) if user is None else (user_id(user),):
        for number in sorted(turn_numbers(layout.turns(owner))):
            yield TurnKey(owner, number)


def resolve_turn(layout: Layout, text: str) -> TurnKey:
    """The turn named by `<user>:turn_000811`, `turn_000811` or `811`.

    Raises BadIdError, or UnknownTurnError where no user has it, or several.
    """
    owner, colon, number_text = text.strip().rpartition(":")
    number = _short_number(number_text)
    candidates = (user_id(owner),) if colon else user_ids(layout)
    matches = [key for user in candidates if layout.turn(key := TurnKey(user, number)).is_dir()]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise UnknownTurnError(f"turn {text[:80]!r}: no such turn under {layout.root}: expected one that `pandora turns` lists")
    examples = ", ".join(map(str, matches[:_MAX_EXAMPLES])) + (" ..." if len(matches) > _MAX_EXAMPLES else "")
    raise UnknownTurnError(f"turn {text[:80]!r}: {len(matches)} users have it ({examples}): expected <user>:{matches[0].turn_id}")


def newest_revision(folder: Path) -> int:
    """The highest revision of a turn folder, 0 where it was never re-run."""
    revisions = folder / REVISIONS
    if not revisions.is_dir():
        return 0
    with disk_errors(revisions, "cannot list"):
        names = [entry.name for entry in revisions.iterdir()]
    return max((int(name) for name in names if name.isascii() and name.isdigit() and str(int(name)) == name), default=0)


def _short_number(text: str) -> int:
    """The number in `turn_000811` or `811`; raises BadIdError."""
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS and 0 < int(text) <= MAX_TURN_NUMBER:
        return int(text)
    return turn_number(text)


def _user_of_folder(entry: Path) -> UserId | None:
    """The user whose folder this is; None for anything else."""
    try:
        return user_id(entry.name) if entry.is_dir() else None
    except BadIdError:
        return None
