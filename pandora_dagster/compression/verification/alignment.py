"""Aligns the units of a shortened text with those of its original: verbatim ones first, then by the rarest forms that they share.

Knows two indexes; judges nothing but whether a verbatim unit is under another label.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from pandora_dagster.compression.verification.comparison import Difference
from pandora_dagster.compression.verification.forms import unit_key
from pandora_dagster.compression.verification.unit_index import UnitIndex

_MARK = re.compile(r"^\W*\[?(?:\u2026|\.\.\.)?\s*\(?\d[\d,.]* (?:more )?[\w -]{0,40}left out\W*$|^\s*\[\u2026\]\s*$", re.IGNORECASE)
"""A line that counts what was left out: no statement."""
_WINDOW, _MOST_SOURCES = 3, 4
_MOST_SAME = 20
"""Equal units on either side of the last aligned one that are looked at."""
_LEAST, _NEXT = 0.3, 0.2
"""Share of a statement's forms, by weight, that its first source has, and that each further one adds."""
_ALIKE = 0.6
"""Share of the forms, small words included, with which a statement without a word of its own source is the unit behind the last one."""
_ENDS = ".!?:;\u3002\uff01\uff1f"


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
        found = [str(d) for d in self.differences if d.is_change]
        return [*found, f"under another label: {self.label}"] if self.label else found


def is_mark(line: str) -> bool:
    """Whether a line only counts what was left out."""
    return bool(_MARK.match(line))


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
            found = self._verbatim(unit.order) or self._joined(unit.order) or self._retold(unit.order)
            if found.sources:
                self._last = found.sources[-1]
                self._used.update(found.sources if found.is_verbatim else ())
            yield found

    def _verbatim(self, order: int) -> Alignment | None:
        key = self._shortened.keys[order]
        same = self._original.by_key.get(key, ())
        if not same:
            return Alignment(order, (), is_verbatim=True) if key in self._headings else None
        at = bisect_right(same, self._last)
        same = same[max(0, at - _MOST_SAME) : at + _MOST_SAME]
        fitting = [o for o in same if not self._other_label(order, o)]
        chosen = fitting or same
        best = min(chosen, key=lambda o: (o in self._used, o <= self._last, abs(o - self._last)))
        return Alignment(order, (best,), is_verbatim=True, label="" if fitting else self._other_label(order, best))

    def _other_label(self, order: int, source: int) -> str:
        """What names the unit in the shortened text, and names another one in the original."""
        own, theirs = self._shortened.labels(order), self._original.labels(source)
        if self._shortened.follows_gap(order):  # what introduced another unit is not read as the introduction of this one
            own = own & {unit_key(self._shortened.units[order].speaker)}
        return next(iter(sorted(label for label in own - theirs if label in self._known_labels)), "") if theirs else ""

    def _joined(self, order: int) -> Alignment | None:
        """A unit that is several whole ones of the original behind one another, or whole sentences of one."""
        key = self._shortened.keys[order]
        near, share = self._original.nearest(self._shortened.content_keys(order), after=self._last)
        if share < _LEAST:
            return None
        around = [u.order for u in self._original.units[max(0, near - _WINDOW) : near + _WINDOW + 1] if not u.is_context]
        inside = [o for o in around if self._original.keys[o] and self._original.keys[o] in key]
        left = key
        for o in sorted(inside, key=lambda o: -len(self._original.keys[o])):
            left = left.replace(self._original.keys[o], "", 1)
        if inside and not any(sign.isalnum() for sign in left):
            return Alignment(order, tuple(inside), is_verbatim=True)
        whole = self._original.keys[near]
        at = whole.find(key)
        begins = at <= 0 or whole[:at].rstrip()[-1:] in _ENDS
        ends = at + len(key) == len(whole) or whole[at + len(key) : at + len(key) + 1] in _ENDS
        return Alignment(order, (near,), is_verbatim=True) if at >= 0 and key and begins and ends else None

    def _retold(self, order: int) -> Alignment:
        wanted = self._shortened.content_keys(order)
        total = sum(map(self._original.weight, wanted)) or 1.0
        sources: list[int] = []
        while wanted and len(sources) < _MOST_SOURCES:
            near, _ = self._original.nearest(wanted, after=self._last)
            shared = wanted & self._original.content_keys(near) if near >= 0 else set[str]()
            if sum(map(self._original.weight, shared)) / total < (_NEXT if sources else _LEAST):
                break
            sources.append(near)
            wanted -= shared
        return Alignment(order, tuple(sources) or self._in_place(order), is_verbatim=False)

    def _in_place(self, order: int) -> tuple[int, ...]:
        """The unit behind the last aligned one, where most forms of both are the same: a short sentence whose one word of content was
        exchanged."""
        after = next((u.order for u in self._original.units[self._last + 1 : self._last + 1 + _WINDOW] if not u.is_context), None)
        if self._last < 0 or after is None:
            return ()
        theirs, own = ({f.key for f in index.forms(n)} for index, n in ((self._original, after), (self._shortened, order)))
        return (after,) if own and len(theirs & own) >= _ALIKE * max(len(theirs), len(own)) else ()
