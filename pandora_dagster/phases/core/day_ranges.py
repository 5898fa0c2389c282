"""The days that a query names as readable ranges, and the line of a gathered document that carries them."""

from datetime import date, timedelta

_DAYS_PREFIX = "Days that the query names: "


def day_ranges(terms: tuple[str, ...]) -> tuple[str, ...]:
    """Date terms (`@2026-11-09`) as readable ranges: consecutive days as `2026-11-09 to 2026-11-15`, a month `2026-10`, a year `2025`."""
    runs: list[list[str]] = []
    for day in sorted(term.removeprefix("@") for term in terms):
        if runs and _is_next_day(runs[-1][-1], day):
            runs[-1].append(day)
        else:
            runs.append([day])
    return tuple(f"{run[0]} to {run[-1]}" if len(run) > 1 else run[0] for run in runs)


def _is_next_day(day: str, following: str) -> bool:
    """Whether both are days, not months or years, and the second follows the first."""
    are_days = len(day) == len(following) == len("2026-11-09")
    return are_days and date.fromisoformat(following) - date.fromisoformat(day) == timedelta(1)


def is_in_ranges(day: str, ranges: tuple[str, ...]) -> bool:
    """Whether an ISO day is in the ranges of `day_ranges`."""
    bounds = (text.partition(" to ") for text in ranges)
    return bool(day) and any(first <= day[: len(first)] <= (last or first) for first, _, last in bounds)


def days_line(ranges: tuple[str, ...]) -> str:
    """The line of a document that names the days; "" without days."""
    return _DAYS_PREFIX + ", ".join(ranges) if ranges else ""


def read_days_line(document: str) -> tuple[str, ...]:
    """The days in the first line of a document; () without that line."""
    line = document.partition("\n")[0]
    return tuple(line.removeprefix(_DAYS_PREFIX).split(", ")) if line.startswith(_DAYS_PREFIX) else ()
