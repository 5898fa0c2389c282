"""Processor time in units of a fixed piece of Python's work, measured beside it: the same on a slow, a busy and a fast machine."""

import time
from collections.abc import Callable


def _fixed_work() -> object:
    return sorted((str(number) for number in range(8_000)), key=lambda text: (len(text), text))


def in_units_of_work(action: Callable[[], object], *, times: int = 9) -> float:
    """The fastest of `times` runs of `action`, in fastest runs of the fixed work between them (2 to 3 ms)."""
    spent: dict[Callable[[], object], list[float]] = {action: [], _fixed_work: []}
    for _ in range(times):
        for work, seconds in spent.items():
            began = time.process_time()
            work()
            seconds.append(time.process_time() - began)
    return min(spent[action]) / min(spent[_fixed_work])
