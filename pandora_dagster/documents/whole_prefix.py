"""The beginning of an answer that has room: whole units, and no heading, speaker or table header without what it is of."""

from collections.abc import Callable, Sequence

from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.documents.units.unit_reader import read_units

_FENCES = ("```", "~~~")


def whole_prefix(text: str, fits: Callable[[str], bool]) -> str:
    """The longest beginning of `text` that ends with a unit and fits; "" where the first unit does not. All of a text that fits.

    `fits` must hold for every beginning of a text for which it holds.
    """
    if fits(text):
        return text
    units = read_units(text)
    low, high = 0, len(units)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text[: _end(text, units[middle - 1])]) else (low, middle - 1)
    while low and not _is_whole(units, low):
        low -= 1
    return text[: _end(text, units[low - 1])] if low else ""


def complete_prefix(text: str) -> str:
    """The beginning of a text that still grows: all units but the last one, which may not have ended."""
    units = read_units(text)
    return text[: _end(text, units[-2])] if len(units) > 1 and not units[-2].is_context else ""


def _is_whole(units: Sequence[Unit], count: int) -> bool:
    """Whether the first `count` units say by themselves what they say in the text."""
    return not units[count - 1].is_context and all(need < count for unit in units[:count] for need in unit.needs)


def _end(text: str, unit: Unit) -> int:
    """Where the unit ends in the text; of code, after the fence that closes it."""
    if unit.kind is not UnitKind.CODE:
        return unit.end
    after = text.find("\n", unit.end)
    closing = text[after + 1 :].partition("\n")[0] if after >= 0 else ""
    return after + 1 + len(closing) if closing.strip().startswith(_FENCES) else unit.end
