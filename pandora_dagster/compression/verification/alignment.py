"""Aligns the units of a shortened text with those of its original: verbatim ones first, then by the rarest forms that they share.

In: the indexes of both texts. For each unit of the shortened text, in order: the equal unit of the original; else the whole units that it
consists of; else the units that share most of its weight. Out: an `Alignment` for each. Values are compared elsewhere (`comparison`).
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from pandora_dagster.compression.selection.unnamed_codes import is_last_line
from pandora_dagster.compression.verification.comparison import Difference
from pandora_dagster.compression.verification.forms import unit_key
from pandora_dagster.compression.verification.unit_index import UnitIndex

_OMISSION_MARK = re.compile(r"^\W*\d[\d,.]* (?:more )?[\w -]{0,40}left out\W*$|^\s*\[\u2026\]\s*$", re.IGNORECASE)
"""A line that counts what was left out: no statement."""
_WINDOW_UNITS = 3
"""Units on either side of the nearest one in which further parts of a statement are looked for."""
_MAX_SOURCES = 4
_MAX_EQUAL_UNITS = 20
"""Equal units on either side of the last aligned one that are looked at."""
_MIN_SHARE, _MIN_ADDED_SHARE = 0.3, 0.2
"""Share of a statement's forms, by weight, that its first source must have, and that each further one must add."""
_MIN_SHARE_IN_PLACE = 0.6
"""Share of the forms, function words included, from which a statement without any other source is the unit after the last aligned one."""
_SENTENCE_ENDS = ".!?:;\u3002\uff01\uff1f"


@dataclass(frozen=True, slots=True)
class Alignment:
    """A unit of the shortened text, by its order, with the units of the original that it was made from, the nearest first."""

    order: int
    sources: tuple[int, ...]
    is_verbatim: bool
    label: str = ""
    """The label under which a verbatim unit is in the shortened text and not in the original; "" for none."""
    differences: tuple[Difference, ...] = ()
    """What differs between the unit and its nearest source, once they are compared."""

    @property
    def changes(self) -> list[str]:
        """What was changed, in words; empty where no form was."""
        changes = [str(d) for d in self.differences if d.is_change]
        return [*changes, f"under another label: {self.label}"] if self.label else changes


def is_mark(line: str) -> bool:
    """Whether a line only counts what was left out."""
    return bool(_OMISSION_MARK.match(line))


def align(original: UnitIndex, shortened: UnitIndex, *, reference: str = "") -> tuple[Alignment, ...]:
    """One alignment for each unit of content in `shortened` but marks of what was left out and the line `reference`."""
    return tuple(_Aligner(original, shortened).all(reference))


class _Aligner:
    def __init__(self, original: UnitIndex, shortened: UnitIndex) -> None:
        self._original, self._shortened = original, shortened
        self._last = -1
        self._used: set[int] = set()
        self._headings = frozenset(original.keys[u.order] for u in original.units if u.is_context)
        self._known_labels = frozenset(label for u in original.content for label in original.labels(u.order))

    def all(self, reference: str) -> Iterator[Alignment]:
        for unit in self._shortened.content:
            if is_mark(unit.text) or (reference and reference in unit.text) or not self._shortened.keys[unit.order]:
                continue
            alignment = self._align_equal(unit.order) or self._align_codes(unit.order)
            alignment = alignment or self._align_joined(unit.order) or self._align_reworded(unit.order)
            if alignment.sources:
                self._last = alignment.sources[-1]
                self._used.update(alignment.sources if alignment.is_verbatim else ())
            yield alignment

    def _align_equal(self, order: int) -> Alignment | None:
        key = self._shortened.keys[order]
        equal = self._original.by_key.get(key, ())
        if not equal:
            return Alignment(order, (), is_verbatim=True) if key in self._headings else None
        at = bisect_right(equal, self._last)
        equal = equal[max(0, at - _MAX_EQUAL_UNITS) : at + _MAX_EQUAL_UNITS]
        same_label = [o for o in equal if not self._other_label(order, o)]
        best = min(same_label or equal, key=lambda o: (o in self._used, o <= self._last, abs(o - self._last)))
        return Alignment(order, (best,), is_verbatim=True, label=self._other_label(order, best))

    def _other_label(self, order: int, source: int) -> str:
        """What names the unit in the shortened text, and names another one in the original."""
        if is_last_line(self._shortened.units[order].text):  # it follows any speaker, and is of none
            return ""
        source_labels = self._original.labels(source)
        if not source_labels:
            return ""
        other = (self._shortened.labels(order) - source_labels) & self._known_labels
        introductions = other - {unit_key(self._shortened.units[order].speaker)}
        # what introduced another unit is not read as the introduction of this one: behind a gap, or right behind what it follows in both
        if introductions and (source == self._last + 1 or self._shortened.follows_gap(order)):
            other -= introductions
        elif introductions:
            # without the empty lines of the original, a label further up may be read as that of a unit that has its own between
            own = source_labels - {unit_key(self._original.units[source].speaker)}
            near = self._shortened.last_place(own, before=order)
            other -= {label for label in introductions if self._shortened.last_place((label,), before=order) < near}
        return min(other, default="")

    def _align_codes(self, order: int) -> Alignment | None:
        """The last line of a talk with tools, which names codes of many units and is made from none: each code is looked up by itself."""
        return Alignment(order, (), is_verbatim=False) if is_last_line(self._shortened.units[order].text) else None

    def _align_joined(self, order: int) -> Alignment | None:
        """A unit that consists of whole units of the original, one after the other, or of whole sentences of one."""
        key = self._shortened.keys[order]
        near, share = self._original.nearest(self._shortened.content_keys(order), after=self._last)
        if share < _MIN_SHARE:
            return None
        around = [u.order for u in self._original.units[max(0, near - _WINDOW_UNITS) : near + _WINDOW_UNITS + 1] if not u.is_context]
        inside = [o for o in around if self._original.keys[o] and self._original.keys[o] in key]
        remainder = key
        for o in sorted(inside, key=lambda o: -len(self._original.keys[o])):
            remainder = remainder.replace(self._original.keys[o], "", 1)
        if inside and not any(map(str.isalnum, remainder)):
            return Alignment(order, tuple(inside), is_verbatim=True)
        whole = self._original.keys[near]
        at = whole.find(key)
        begins_sentence = at <= 0 or whole[:at].rstrip()[-1:] in _SENTENCE_ENDS
        ends_sentence = whole[at + len(key) : at + len(key) + 1] in _SENTENCE_ENDS
        return Alignment(order, (near,), is_verbatim=True) if at >= 0 and begins_sentence and ends_sentence else None

    def _align_reworded(self, order: int) -> Alignment:
        wanted = self._shortened.content_keys(order)
        total = sum(map(self._original.weight, wanted)) or 1.0
        sources: list[int] = []
        while wanted and len(sources) < _MAX_SOURCES:
            near, _ = self._original.nearest(wanted, after=self._last)
            shared = wanted & self._original.content_keys(near) if near >= 0 else set[str]()
            if sum(map(self._original.weight, shared)) / total < (_MIN_ADDED_SHARE if sources else _MIN_SHARE):
                break
            sources.append(near)
            wanted -= shared
        return Alignment(order, tuple(sources) or self._next_unit(order), is_verbatim=False)

    def _next_unit(self, order: int) -> tuple[int, ...]:
        """The unit after the last aligned one, where most forms of both are equal: a short sentence whose one content word was
        exchanged."""
        after = next((u.order for u in self._original.units[self._last + 1 : self._last + 1 + _WINDOW_UNITS] if not u.is_context), None)
        if self._last < 0 or after is None:
            return ()
        source_keys, keys = ({f.key for f in index.forms(n)} for index, n in ((self._original, after), (self._shortened, order)))
        return (after,) if keys and len(source_keys & keys) >= _MIN_SHARE_IN_PLACE * max(len(source_keys), len(keys)) else ()
