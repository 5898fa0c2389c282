"""JSON results as rows: which objects a value holds, what identifies one, how a value is written in a cell.

Knows JSON values; knows nothing of talk, weights or budgets.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from pandora_dagster.compression.read.json_parts import is_list, is_object, leaves, shown
from pandora_dagster.compression.read.transcript_messages import Result

DATE = re.compile(r"\d{4}-\d\d-\d\d")
IDENTIFIER = re.compile(r"#?(?=[^\s]*\d)(?=[^\s]*[A-Za-z_\-])[\w\-.]+|#?\d{6,}|[A-Z]{6}")
_LOOSE_COLUMNS = frozenset(("date", "status"))
"""Columns that rows of one table may have or lack."""
_OWN_TABLE = 6
"""A list of more objects than this inside an object becomes a table of its own."""

CUT = "|\u2026"
"""Ends a row that has more cells."""
LEFT_OUT = re.compile(r"\((\d+) more rows? left out\)")


def left_out(rows: int) -> list[str]:
    """The line that says how many rows of a table do not stand (DECISIONS 2); none where all do."""
    return [f"({rows} more row{'s' if rows > 1 else ''} left out)"] if rows > 0 else []


@dataclass(frozen=True, slots=True)
class Row:
    """One object. `date` comes from the call where the object has none. `is_cut` where an earlier compression may have left
    columns out."""

    position: int
    values: Mapping[str, Any]
    is_cut: bool = False

    @property
    def kind(self) -> frozenset[str]:
        """What rows of one table share."""
        return frozenset(self.values) - _LOOSE_COLUMNS

    @property
    def identity(self) -> str:
        return identity(self.values)

    @property
    def date(self) -> str:
        found = self.values.get("date")
        return found if isinstance(found, str) else ""


@dataclass(frozen=True, slots=True)
class Options:
    """Lists of objects that belong together (a choice of pairs), by their identities."""

    position: int
    groups: tuple[tuple[str, ...], ...]


def rows(result: Result) -> tuple[Row, ...] | None:
    """The objects of a result, None where it is not made of objects."""
    found = _objects(result.value)
    if found is None:
        return None
    arguments = result.call.arguments if result.call else None
    date = arguments.get("date") if is_object(arguments) and is_list(result.value) else None
    plain = [item for value in found for item in _unfolded(value)]
    return tuple(Row(result.position, _dated(item, date)) for item in plain)


def options(result: Result) -> Options | None:
    """How the objects of a list of lists stand together, None for any other result."""
    value = result.value
    if not is_list(value) or not value or not all(is_list(group) for group in value):
        return None
    return Options(result.position, tuple(tuple(identity(item) for item in group if is_object(item)) for group in value))


def _objects(value: object) -> list[dict[str, Any]] | None:
    if is_object(value):
        return list(value.values()) if len(value) > 1 and is_identity_map(value) else [value]
    if not is_list(value) or not value:
        return None
    if all(is_object(item) for item in value):
        return value
    if all(is_list(group) and group and all(is_object(item) for item in group) for group in value):
        return [item for group in value for item in group]
    return None


def _dated(value: dict[str, Any], date: object) -> dict[str, Any]:
    if not isinstance(date, str) or "date" in value:
        return value
    items = list(value.items())
    return dict([*items[:1], ("date", date), *items[1:]])


def _unfolded(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """An object, and the objects of its long lists, each with its parent's identity where it has more than lists."""
    long = {name: inner for name, item in value.items() if (inner := _inner(item)) and len(inner) > _OWN_TABLE}
    own = {name: item for name, item in value.items() if name not in long}
    if own or not long:
        yield own
    for name, inner in long.items():
        for item in inner:
            yield {**item, f"{name} of": named} if own and (named := owner(value)) else item


def _inner(value: object) -> list[dict[str, Any]]:
    if is_identity_map(value):
        return list(value.values())
    return value if is_list(value) and value and all(is_object(item) for item in value) else []


def is_identity_map(value: object) -> TypeGuard[dict[str, dict[str, Any]]]:
    """Whether an object maps identities to the objects that carry them."""
    return (
        is_object(value)
        and bool(value)
        and all(is_object(item) and any(name == v for v in item.values() if isinstance(v, str)) for name, item in value.items())
    )


def identity(values: Mapping[str, Any]) -> str:
    """What names an object: its first plain value that looks like an identifier, else its first plain value."""
    plain = [shown(value) for value in values.values() if isinstance(value, str)]
    named = next((text for text in plain if IDENTIFIER.fullmatch(text) and not DATE.match(text)), None)
    named = named or next((text for text in plain if (text.isupper() and len(text) > 3) or any(c.isdigit() for c in text)), None)
    return named or next((leaf for leaf in leaves(dict(values))), "")


def owner(values: Mapping[str, Any]) -> str:
    """What an object is called by its own plain members: an identifier, else the first where that is a name or a date; "" for none."""
    plain = [shown(value) for value in values.values() if isinstance(value, str)]
    named = next((text for text in plain if IDENTIFIER.fullmatch(text) and not DATE.match(text)), None)
    first = next((shown(value) for value in values.values() if not isinstance(value, dict | list)), "")
    is_name = first not in ("true", "false", "null") and (bool(DATE.fullmatch(first)) or any(c.isalpha() for c in first))
    return named or (first if is_name else "")


def nested_items(value: object) -> list[tuple[dict[str, Any], str]]:
    """The objects of a list of which some hold others, each with its words in the list's cell."""
    objects = [item for item in value if is_object(item)] if is_list(value) else []
    shared = _shared(objects)
    return [(item, _member_values(item, shared)) for item in objects] if len(items(value)) < len(objects) else []


def items(value: object) -> list[dict[str, Any]]:
    """The flat objects of a list or an identity map, each with two plain members or more."""
    inner = list(value.values()) if is_identity_map(value) else value if is_list(value) else []
    flat = [item for item in inner if is_object(item) and not any(isinstance(v, dict | list) for v in item.values())]
    return [item for item in flat if len(item) > 1]


def item_text(item: Mapping[str, Any], *, named: bool) -> str:
    """A flat object in words; `named` where no header shows what its members are."""
    return _flat_entry(item) if named else " ".join(shown(value) for value in item.values())


def cell(value: object, between: str = "; ") -> str:
    """A value on one line, without the table's separators: the objects of a list set off by `; `, of a list in one of them by `, `."""
    if is_identity_map(value):
        return "; ".join(_flat_entry(item) for item in value.values())
    if is_object(value):
        return " ".join(cell(item) for item in value.values())
    if is_list(value):
        shared = _shared(value)
        parts = (_member_values(item, shared) if is_object(item) else cell(item) for item in value)
        return (between if any(isinstance(item, dict | list) for item in value) else " ").join(parts)
    return shown(value).replace("|", "/")


def cell_under(value: object, told: str) -> str:
    """A value below a header that tells `told` of its members: one with other members names them all."""
    if layout(value) in ("", told):
        return cell(value)
    return "; ".join(_member_values(item, ()) for item in (value if is_list(value) else [value]) if is_object(item))


def _member_values(item: Mapping[str, Any], shared: Sequence[str]) -> str:
    """The members of an object: those that the header names alone, any other behind its name."""
    return " ".join([*(cell(item[name], ", ") for name in shared), *(_named(n, v) for n, v in item.items() if n not in shared)])


def _named(name: str, value: object) -> str:
    if is_object(value):
        return f"{name} {_member_values(value, ())}"
    if is_list(value) and any(is_object(item) for item in value):
        return f"{name} " + ", ".join(_member_values(item, ()) if is_object(item) else cell(item) for item in value)
    return f"{name} {cell(value)}"


def _shared(values: Sequence[object]) -> tuple[str, ...]:
    """The first members of objects, as far as all have them in one order and each with one layout."""
    objects = [item for item in values if is_object(item)]
    shared: list[str] = []
    for names in zip(*objects, strict=False):
        if len(set(names)) > 1 or len({told for item in objects if (told := layout(item[names[0]]))}) > 1:
            break
        shared.append(names[0])
    return tuple(shared)


def _flat_entry(item: Mapping[str, Any]) -> str:
    """An object of an identity map: identity first; numbers carry their name, which the header can not show."""
    name = identity(item)
    rest = (shown_as(key, value) for key, value in item.items() if value != name and not name.startswith(str(value)))
    return " ".join([name, *(part for part in rest if part)])


def shown_as(name: str, value: object) -> str:
    """A member of an object: a number with its name before it, anything else alone."""
    text = cell(value)
    return f"{name} {text}" if text.replace(".", "").replace("-", "").isdigit() else text


def layout(value: object) -> str:
    """The members of a nested value, for the header: `[city,date]` for a list of objects that begin with these, `[city,date…]` where
    some have more."""
    if is_identity_map(value):
        return ""
    if is_object(value):
        return "(" + ",".join(name + layout(item) for name, item in value.items()) + ")"
    if is_list(value):
        objects = [item for item in value if is_object(item)]
        if shared := _shared(value):
            names = [name + next((told for item in objects if (told := layout(item[name]))), "") for name in shared]
            return "[" + ",".join(names) + ("\u2026]" if any(len(item) > len(shared) for item in objects) else "]")
    return ""
