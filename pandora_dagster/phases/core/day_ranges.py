"""The days that a query names as readable ranges, and the line of a gathered document that carries them."""

from datetime import date, timedelta

_LINE = "Days that the query names: "


def day_ranges(terms: tuple[str, ...]) -> tuple[str, ...]:
    """Date terms as readable ranges: consecutive days as `2026-11-09 to 2026-11-15`, a month `2026-10`, a year `2025`."""
    days = [term.removeprefix("@") for term in terms]
    runs: list[list[str]] = []
    for day in sorted(days):
        follows = bool(runs) and len(day) == len(runs[-1][-1]) == 10 and date.fromisoformat(day) - date.fromisoformat(runs[-1][-1])
        if follows == timedelta(1):
            runs[-1].append(day)
        else:
            runs.append([day])
    return tuple(f"{run[0]} to {run[-1]}" if len(run) > 1 else run[0] for run in runs)


def is_in_ranges(day: str, ranges: tuple[str, ...]) -> bool:
    """Whether an ISO day is in the ranges of `day_ranges`."""
    return any(first <= day[: len(first)] <= (last or first) for first, _, last in (one.partition(" to ") for one in ranges) if day)


def days_line(ranges: tuple[str, ...]) -> str:
    """The line of a document that names the days; "" without days."""
    return _LINE + ", ".join(ranges) if ranges else ""


def read_days_line(document: str) -> tuple[str, ...]:
    """The days in the first line of a document; () without that line."""
    first = document.partition("\n")[0]
    return tuple(first.removeprefix(_LINE).split(", ")) if first.startswith(_LINE) else ()
