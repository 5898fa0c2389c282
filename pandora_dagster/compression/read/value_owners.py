"""Whose a value of a result is: the flat record it stands in, and the name it has there. What a list says of that, held to the source.

Knows results, tables and lists of single values; knows nothing of weights or budgets.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from pandora_dagster.compression.read.json_parts import is_list, is_object, shown
from pandora_dagster.compression.read.json_rows import Row, owner, rows
from pandora_dagster.compression.read.packed_text import ALSO_SEEN, LooseValue, loose_values, reread
from pandora_dagster.compression.read.transcript_messages import Result, contents, rendered, split_messages
from pandora_dagster.compression.words.normalization import key

_SEPARATORS = re.compile(r"[;:,|]")
_LONGEST = 40
_EMPTY = frozenset(("true", "false", "null"))
"""What tells nothing where nobody knows of what."""

Path = tuple[str, ...]
"""The names that lead to a value, the outermost first."""


@dataclass(frozen=True, slots=True)
class Flat:
    """The plain values of one object, each with its path; `owner` is what the object is called, "" where it has no name."""

    owner: str
    members: tuple[tuple[Path, str], ...]

    def single(self) -> Iterator[tuple[str, str, str]]:
        """Label, value and subject of each value: the record's own name stands under its key, and so does what has no record, behind
        the name of the object around it (`old_slot.status`)."""
        for path, value in self.members:
            subject = "" if value == self.owner else as_subject(self.owner)
            if subject or value == self.owner:
                yield path[-1].replace(" ", "_"), value, subject
            elif value not in _EMPTY:
                yield ".".join(path[-2:]).replace(" ", "_"), value, ""


def flats(values: Mapping[str, object], path: Path = ()) -> Iterator[Flat]:
    """A record and those inside it, each with the values that stand in it and in no other."""
    inner: list[tuple[Path, Mapping[str, object]]] = []
    own: list[tuple[Path, str]] = []
    loose: list[tuple[Path, str]] = []
    for name, value in values.items():
        _collect(value, (*path, name), own, loose, inner)
    yield Flat(owner(values), tuple(own))
    if loose:
        yield Flat("", tuple(loose))
    for at, value in inner:
        yield from flats(value, at)


def _collect(
    value: object, path: Path, own: list[tuple[Path, str]], loose: list[tuple[Path, str]], inner: list[tuple[Path, Mapping[str, object]]]
) -> None:
    """`loose` takes the cells of lists in lists: objects that were read back, without the names of their members."""
    if is_object(value):
        inner.append((path, value))
    elif is_list(value):
        for item in value:
            _collect(item, path, loose if is_list(item) else own, loose, inner)
    else:
        own.append((path, shown(value)))


def as_subject(name: str) -> str:
    """What a record is called as the head of a list: short, and without the signs that part the list."""
    plain = " ".join(_SEPARATORS.sub(" ", name).split())
    return plain if len(plain) <= _LONGEST else ""


class Owners:
    """The values of a text's results, by their record and by their name."""

    def __init__(self, text: str) -> None:
        self._text = text

    def misplaced(self, candidate: str) -> Iterator[str]:
        """Entries of the lists of single values in `candidate` that name another record, or another name, than the source has."""
        for line in candidate.split("\n"):
            for loose in loose_values(line.removeprefix(ALSO_SEEN)) if line.startswith(ALSO_SEEN) else ():
                if self._is_misplaced(loose):
                    yield f"{loose.subject}: {loose.label} {loose.value}".removeprefix(": ")

    def _is_misplaced(self, loose: LooseValue) -> bool:
        """Whether the source has the value in results, and in none of them as it is said."""
        places = self._places.get(key(loose.value), ())
        names = {key(loose.label), key(loose.label.rpartition(".")[2])}
        if not loose.subject:
            return bool(places) and not any(names & {key(name) for name in path} for path, _ in places)
        subject = key(loose.subject)
        return bool(places) and not any(key(path[-1]) in names and subject in said for path, said in places)

    @cached_property
    def _places(self) -> Mapping[str, list[tuple[Path, frozenset[str]]]]:
        """Key of a value -> where it stands: its path, and the keys of all values of its record, alone and behind their names."""
        found: defaultdict[str, list[tuple[Path, frozenset[str]]]] = defaultdict(list)
        for flat in self._flats():
            said = frozenset(k for path, value in flat.members for k in (key(value), key(f"{path[-1]} {value}")))
            for path, value in flat.members:
                found[key(value)].append((path, said))
        return found

    def _flats(self) -> Iterator[Flat]:
        earlier = reread(rendered(self._text))
        results = (item for item in contents(split_messages(earlier.text)) if isinstance(item, Result))
        every: list[Row] = [*earlier.rows, *(row for result in results for row in rows(result) or ())]
        for row in every:
            yield from flats(row.values)
        for loose in earlier.loose:
            yield Flat(loose.subject, (((loose.label,), loose.value), (("",), loose.subject)))
