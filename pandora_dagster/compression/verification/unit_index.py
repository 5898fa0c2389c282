"""An index of the units of a text: which unit equals a given one, which shares the rarest forms with it, under which label one is.

Built in time linear in the text, and on first use.
"""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from pandora_dagster.compression.selection.omission_marks import without_marks
from pandora_dagster.compression.verification.facts import Omission, Place, labelled
from pandora_dagster.compression.verification.forms import Form, FormKind, forms, subject_of, unit_key
from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.documents.units.unit_reader import read_units
from pandora_dagster.language.cues import Cue, cues

LITERAL = frozenset((UnitKind.CODE, UnitKind.HUNK))
_MAX_LOOKUP_FORMS, _MAX_HOLDERS = 16, 40
"""The rarest forms by which a unit is looked up, and holders of one that are looked at: more would tell little and cost time."""
_MAX_POSITIONS = 100
"""Positions of a value in a unit that are looked at for its subject."""
_OPENING_WORDS = 3
"""Words at the beginning of a unit in which a negation makes it a prohibition."""
_MARK_END_CHARACTERS = 4
"""Characters before a unit in which the mark before it ends."""
_MAX_LABEL_DEPTH = 4
"""Steps to the units that name another one: header, heading, the item above and what introduces that."""


class UnitIndex:
    """All units of `text`, and its content units by their words."""

    def __init__(self, text: str, language: str, *, speakers: frozenset[str] = frozenset()) -> None:
        """Read `text`; its marks of what was left out are blanks, which changes no place. `speakers` are known ones: a line that begins
        with such a label is theirs, also where it is their only one."""
        self.text = text
        self.language = language
        self._plain, _ = without_marks(text)
        self.units = tuple(_with_speaker(u, speakers) for u in read_units(self._plain, language))
        self.content = tuple(u for u in self.units if not u.is_context)
        self.keys = [unit_key(u.text, is_literal=u.kind in LITERAL) for u in self.units]
        self._forms: dict[int, tuple[Form, ...]] = {}
        self._labels: dict[int, frozenset[str]] = {}
        self._positions: dict[int, dict[str, list[int]]] = {}
        self._line_starts = [0, *(i + 1 for i, sign in enumerate(text) if sign == "\n")]

    @cached_property
    def speakers(self) -> frozenset[str]:
        return frozenset(u.speaker for u in self.units if u.speaker)

    def forms(self, order: int) -> tuple[Form, ...]:
        if order not in self._forms:
            unit = self.units[order]
            self._forms[order] = forms(unit.text, self.language, is_hunk=unit.kind is UnitKind.HUNK)
        return self._forms[order]

    def positions(self, order: int) -> dict[str, list[int]]:
        """Key of a form of a unit -> its places among the unit's forms."""
        if order not in self._positions:
            positions: defaultdict[str, list[int]] = defaultdict(list)
            for n, form in enumerate(self.forms(order)):
                positions[form.key].append(n)
            self._positions[order] = positions
        return self._positions[order]

    def forbids(self, order: int) -> bool:
        """Whether a unit begins with a negation: `Never board`, `- Do not open`."""
        return Cue.NEGATION in cues(" ".join(self.units[order].text.split()[:_OPENING_WORDS]), self.language)

    def is_of(self, order: int, key: str, subject: Sequence[str]) -> bool:
        """Whether a unit has a value as the value of the same thing: with the nearest word of `subject`, or two of its words, beside it."""
        unit_forms, label_words = self.forms(order), {word for label in self.labels(order) for word in label.split()}
        for n in self.positions(order).get(key, ())[:_MAX_POSITIONS]:
            beside = {*subject_of(n, unit_forms), *label_words}
            shared = [word for word in subject if word in beside]
            if shared and (shared[0] == subject[0] or len(shared) > 1):
                return True
        return False

    @cached_property
    def by_key(self) -> dict[str, list[int]]:
        """Key of a content unit -> the content units that have it, in order."""
        orders: defaultdict[str, list[int]] = defaultdict(list)
        for unit in self.content:
            orders[self.keys[unit.order]].append(unit.order)
        return orders

    def last_place(self, keys: Iterable[str], *, before: int) -> int:
        """The order of the last unit before a unit whose key is one of `keys`; -1 for none."""
        found = (self._places_of_keys.get(key, ()) for key in keys)
        return max((places[at - 1] for places in found if (at := bisect_left(places, before))), default=-1)

    @cached_property
    def _places_of_keys(self) -> dict[str, list[int]]:
        """Key of any unit -> the units that have it, in order."""
        places: defaultdict[str, list[int]] = defaultdict(list)
        for order, key in enumerate(self.keys):
            places[key].append(order)
        return places

    @cached_property
    def holders(self) -> dict[str, list[int]]:
        """Key of a form of content -> the content units that have it, in order."""
        holders: defaultdict[str, list[int]] = defaultdict(list)
        for unit in self.content:
            for key in self.content_keys(unit.order):
                holders[key].append(unit.order)
        return holders

    @cached_property
    def everywhere(self) -> frozenset[str]:
        """Keys of all forms, those of headings, headers and speakers and all function words among them."""
        return frozenset(f.key for u in self.units for f in self.forms(u.order)) | frozenset(
            f.key for u in self.units if u.speaker for f in forms(u.speaker, self.language)
        )

    def weight(self, key: str) -> float:
        """How much a form distinguishes the units that have it."""
        return math.log(1 + len(self.content) / (1 + len(self.holders.get(key, ()))))

    def nearest(self, keys: Iterable[str], *, after: int) -> tuple[int, float]:
        """The unit that shares most with `keys`, by weight, and the share; after `after` of those that share as much. (-1, 0) for none."""
        wanted = {key: self.weight(key) for key in keys}
        scores: defaultdict[int, float] = defaultdict(float)
        for key in sorted((k for k in wanted if k in self.holders), key=lambda k: (-wanted[k], k))[:_MAX_LOOKUP_FORMS]:
            holders = self.holders[key]
            at = bisect_right(holders, after) if len(holders) > _MAX_HOLDERS else 0
            for order in holders[max(0, at - _MAX_HOLDERS // 2) : at + _MAX_HOLDERS]:
                scores[order] += wanted[key]
        if not scores:
            return -1, 0.0
        best = max(scores, key=lambda order: (round(scores[order], 6), order > after, -abs(order - after)))
        return best, sum(wanted[key] for key in self.content_keys(best) & wanted.keys()) / (sum(wanted.values()) or 1.0)

    def content_keys(self, order: int) -> set[str]:
        return {f.key for f in self.forms(order) if f.is_content}

    def share(self, text: str) -> float:
        """The share of the content words of `text` that this text has; 1 where it has none."""
        keys = [f.key for f in forms(text, self.language) if f.is_content]
        return sum(key in self.everywhere for key in keys) / len(keys) if keys else 1.0

    def has_value(self, order: int) -> bool:
        return any(f.kind is FormKind.VALUE for f in self.forms(order))

    def labels(self, order: int) -> frozenset[str]:
        """Keys of what names a unit: its speaker, the header of its table, what introduces it; headings left out."""
        if order not in self._labels:
            self._labels[order] = self._labels_of(self.units[order])
        return self._labels[order]

    def follows_gap(self, order: int) -> bool:
        """Whether something is left out right before a unit: a mark is there, or an empty line in a text that has marks."""
        before = slice(max(0, self.units[order].start - _MARK_END_CHARACTERS), self.units[order].start)
        return self._plain != self.text and (self._plain[before] != self.text[before] or self.text[before].endswith("\n\n"))

    def _labels_of(self, unit: Unit) -> frozenset[str]:
        labels, level = {unit_key(unit.speaker)} if unit.speaker else set[str](), [unit]
        for _ in range(_MAX_LABEL_DEPTH):
            level = [self.units[n] for u in level for n in u.needs]
            labels |= {self.keys[u.order] for u in level if u.kind not in (UnitKind.HEADING, UnitKind.SPEAKER)}
        return frozenset(labels)

    def place(self, start: int, end: int) -> Place:
        return Place(bisect_right(self._line_starts, start), start, end)

    def place_of(self, order: int) -> Place:
        return self.place(self.units[order].start, self.units[order].end)

    def shown(self, order: int) -> Omission:
        """A unit by its text, with its speaker before it, and its place."""
        return Omission(labelled(self.units[order]), self.place_of(order))

    def span(self, order: int, form: Form) -> tuple[int, int]:
        """Where a form of a unit is in the text: where its spelling occurs in the unit's characters, else the whole unit."""
        unit = self.units[order]
        if self.text.startswith(form.text, unit.start + form.start):
            return unit.start + form.start, unit.start + form.start + len(form.text)
        surplus = max(0, len(unit.text) - (unit.end - unit.start))  # what the unit's text has before its characters, such as a speaker
        near = unit.start + max(0, form.start - surplus)
        at = self.text.rfind(form.text, unit.start, min(unit.end, near + len(form.text) + 1))
        at = at if at >= 0 else self.text.find(form.text, unit.start, unit.end)
        return (at, at + len(form.text)) if at >= 0 else (unit.start, unit.end)


def _with_speaker(unit: Unit, speakers: frozenset[str]) -> Unit:
    """A unit that begins with the label of a known speaker as what that one says."""
    label, colon, statement = unit.text.partition(": ")
    if not colon or label.strip("*- ") not in speakers or unit.is_context:
        return unit
    return replace(unit, speaker=label.strip("*- "), text=statement, start=min(unit.end, unit.start + len(label) + 2))
