"""Turn numbers: each given once per user, also when several processes ask at once. Knows nothing of what a turn holds."""

import os
from collections.abc import Iterator
from pathlib import Path

from pandora_dagster.contracts.ids import HIGHEST_TURN, TurnKey, UserId, turn_number
from pandora_dagster.errors import BadIdError, StoreError
from pandora_dagster.stores.files import disk_errors, write_atomic
from pandora_dagster.stores.layout import Layout
from pandora_dagster.stores.locks import file_lock

_COUNTER = ".last_number"
_LOCK = ".last_number.lock"


def allocate_numbers(layout: Layout, user: UserId, count: int, *, seconds: float) -> range:
    """`count` numbers that no turn of `user` had or will have. A number that is given and not used stays unused.

    The counter file remembers numbers whose folders are gone; the folders count where the counter is missing or behind them.
    """
    if count < 1:
        raise ValueError(f"count {count}: expected at least 1")
    folder = layout.turns(user)
    with file_lock(folder / _LOCK, what=f"turn numbers of {user}", seconds=seconds):
        first = _last_given(layout, user) + 1
        if first + count - 1 > HIGHEST_TURN:
            raise StoreError(f"{folder}: turn {first + count - 1}: expected at most {HIGHEST_TURN}")
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
    # Listing 100,000 folders at every start costs 50 ms or more, so the counter is believed until a folder contradicts it.
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
