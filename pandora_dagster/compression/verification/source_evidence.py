"""The text of the sources that a statement cites, made ready for comparison: numbers with their units, days, words, clauses."""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from pandora_dagster.compression.verification.forms import Form, FormKind, forms, unit_key, value_key
from pandora_dagster.compression.verification.unit_index import UnitIndex
from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.language.cues import negations
from pandora_dagster.language.dates import Moment, days, month_number, times
from pandora_dagster.language.detection import language_of
from pandora_dagster.language.quantities import Quantity, is_currency, quantities, spellings
from pandora_dagster.language.tokens import numeral_value

_PREFIX_LETTERS = 5
"""Letters by which an inflected or compounded word is found in a source."""
_MAX_NEAR_UNITS = 12
"""Units of a source that a statement is compared with."""
_MIN_UNIT_SHARE = 0.8
"""Share of a statement's words and values with which a unit says the same, but for negation and force."""
_MIN_CLAUSE_SHARE = 0.7
"""Share of a statement's words with which a clause of a source speaks of the same."""
_MIN_DIGITS = 3
"""Digits from which a number without a unit is one of its own."""
MIN_POLARITY_WORDS = 3
"""Content words below which a negation may be of another word than the source's: `Jonah: no gluten`, `Jonah: gluten`."""
_CLAUSE_BREAK = re.compile(r"[,;:]\s|\s(?=(?:and|und|et|y|e|en|or|oder|but|aber|mais|pero|statt|instead)\s)")
_MIN_RIVAL_LEAD = 0.3
"""How much more of a statement's words the unit of a rival value has than any unit of the value itself."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_CELL = re.compile(r"(?<=,)\d+(?:\.\d+)?(?=,)")
"""A number between commas without blanks: a cell of a CSV row."""


class SourceEvidence:
    """The text of one or more sources, made ready for comparison."""

    def __init__(self, text: str) -> None:
        self.text, self.language = text, language_of(text)
        self.lower = text.casefold()
        self._clauses: dict[int, list[tuple[str, tuple[Form, ...]]]] = {}

    @cached_property
    def index(self) -> UnitIndex:
        return UnitIndex(self.text, self.language)

    @cached_property
    def normalized(self) -> str:
        return unit_key(self.text)

    @cached_property
    def _forms(self) -> tuple[Form, ...]:
        return forms(self.text, self.language)

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(f.key for f in self._forms) | self.index.everywhere

    @cached_property
    def _numbers(self) -> dict[str, set[tuple[str, str]]]:
        """Number -> unit and counted word of each of its places, "" for none."""
        found: dict[str, set[tuple[str, str]]] = {}
        for quantity in quantities(self.text, self.language):
            for part in numbers_of(quantity):
                found.setdefault(part, set()).add((quantity.unit, quantity.counted))
        for cell in _CELL.findall(self.text):
            found.setdefault(plain_number(cell), set()).add(("", ""))
        for form in self._forms:
            if form.kind is FormKind.CODE:
                for part in _NUMBER.findall(form.key):
                    found.setdefault(plain_number(part), set()).add(("", ""))
            elif (number := numeral_value(form.text)) is not None:
                found.setdefault(str(number), set()).add(("", ""))
        return found

    @cached_property
    def _moments(self) -> tuple[Moment, ...]:
        return (*days(self.text), *times(self.text))

    @cached_property
    def _months(self) -> frozenset[int]:
        return frozenset(m.key[1] for m in self._moments if len(m.key) == 3)

    def is_comparable_in(self, language: str) -> bool:
        """Whether the words of a statement in `language` can be compared with this text."""
        return not language or not self.language or language == self.language

    def has(self, form: Form, language: str) -> bool:
        """Whether the text has a form, in this spelling or another one of the same value or name."""
        if form.kind is FormKind.VALUE:
            return self._has_value(form, language)
        if form.key in self._keys or form.text.casefold() in self.lower or month_number(form.text) in self._months:
            return True
        parts = form.text.casefold().split("_")
        return len(parts) > 1 and all(part.isalpha() and part in self.lower for part in parts)

    def has_moment(self, moment: Moment) -> bool:
        return any(moment.agrees(other) for other in self._moments if len(other.key) == len(moment.key))

    def _has_value(self, form: Form, language: str) -> bool:
        """Whether the number is in the text, and not only with another unit or as the number of something else."""
        if (number := numeral_value(form.text)) is not None:
            return str(number) in self._numbers
        found = list(quantities(form.text, language))
        return (
            all(self._has_number(part, q, language) for q in found for part in numbers_of(q))
            if found
            else form.text.casefold() in self.lower
        )

    def _has_number(self, part: str, wanted: Quantity, language: str) -> bool:
        there = self._numbers.get(part)
        if there is None:
            return False
        units, counted = {unit for unit, _ in there}, {what for _, what in there}
        if wanted.unit:
            is_named = any(word in self.lower for word in spellings(wanted.unit))
            return wanted.unit in units or ("" in units and (is_named or not is_currency(wanted.unit)))
        is_plain = any(not unit and not what for unit, what in there)
        return (
            not wanted.counted
            or is_plain
            or wanted.counted in counted
            or wanted.counted in self._keys
            or not self.is_comparable_in(language)
        )

    def has_word(self, form: Form) -> bool:
        return form.key in self._keys or _is_word_of(form, self.lower)

    def near(self, own: Iterable[Form]) -> tuple[int, ...]:
        """The units that share most with a statement, the nearest first."""
        wanted = {f.key for f in own if f.is_content}
        scores = {
            o: s
            for o in {h for k in wanted for h in self.index.holders.get(k, ())}
            if (s := sum(map(self.index.weight, wanted & self.index.content_keys(o))))
        }
        return tuple(sorted(scores, key=lambda o: (-scores[o], o))[:_MAX_NEAR_UNITS])

    def covers(self, order: int, own: Sequence[Form]) -> bool:
        """Whether a unit has nearly all words and values of a statement."""
        text, keys = self.index.units[order].text.casefold(), self.index.content_keys(order)
        content = [f for f in own if f.is_content]
        return share_of(content, text, keys) >= _MIN_UNIT_SHARE

    def holders(self, form: Form, language: str) -> list[int]:
        """The units that have one of the numbers of a value, by their order."""
        if (number := numeral_value(form.text)) is not None:
            wanted = {str(number)}
        else:
            wanted = {part for q in quantities(form.text, language) for part in numbers_of(q)}
        return sorted({order for part in wanted for order in self._orders.get(part, ())})

    @cached_property
    def _orders(self) -> dict[str, list[int]]:
        """Number -> the content units that have it."""
        found: dict[str, list[int]] = {}
        for unit in self.index.content:
            numbers = {part for q in quantities(unit.text, self.language) for part in numbers_of(q)}
            numbers |= {plain_number(cell) for cell in _CELL.findall(unit.text)}
            for form in self.index.forms(unit.order):
                if form.kind is FormKind.CODE:
                    numbers |= {plain_number(part) for part in _NUMBER.findall(form.key)}
                elif (number := numeral_value(form.text)) is not None:
                    numbers.add(str(number))
            for number in numbers:
                found.setdefault(number, []).append(unit.order)
        return found

    def has_key(self, form: Form) -> bool:
        """Whether the text has a value in one spelling of its number together with its unit, or with what it counts."""
        digits = sum(map(str.isdigit, form.key))
        if digits >= _MIN_DIGITS and form.key.isdigit():
            return form.key in self._numbers
        return form.key in self._keys and digits > 0 and not form.key.isdigit()

    def share(self, order: int, words: Sequence[Form]) -> float:
        """The share of `words` that a unit has, what names it included, and in a talk the messages beside it."""
        index = self.index
        unit = index.units[order]
        orders = {order, *unit.needs, *(n for u in unit.needs for n in index.units[u].needs)}
        if unit.message:
            orders |= {n for n in (order - 1, order + 1) if 0 <= n < len(index.units)}
        text = " ".join(f"{index.units[n].speaker} {index.units[n].text}" for n in sorted(orders))
        return share_of(words, text, {key for n in orders for key in index.content_keys(n)})

    def rival(self, form: Form, own: Sequence[Form], words: Sequence[Form], holders: Sequence[int]) -> tuple[str, str] | None:
        """A value that the source has in the place of another one, with its clause or row; None where there is none.

        Its clause has nearly all words of the statement, and the clauses of the other value have far fewer.
        """
        said = {f.key for f in own}
        orders = self._near_orders(words, holders)
        rows = {self.index.units[o].text for o in orders if self.index.units[o].kind is UnitKind.ROW}
        wholes = [(self.index.units[o].text, self.index.forms(o)) for o in orders]
        for parts in (wholes, [part for o in orders for part in self._parts(o)]):
            shares = [(share_of(words, text, {f.key for f in found}), text, found, _has_number_of(form, text)) for text, found in parts]
            best = max((share for share, _, _, is_holder in shares if is_holder), default=0.0)
            for share, text, found, is_holder in shares:
                other = next(
                    (f.text for f in found if f.key not in said and _may_replace(f, form, is_row=text in rows and not self.has_key(form))),
                    "",
                )
                if not is_holder and other and share >= max(_MIN_CLAUSE_SHARE, best + _MIN_RIVAL_LEAD):
                    return other, text
        return None

    def _near_orders(self, words: Sequence[Form], holders: Sequence[int]) -> list[int]:
        return sorted({*self.near(words), *holders[:_MAX_NEAR_UNITS]})

    def _parts(self, order: int) -> list[tuple[str, tuple[Form, ...]]]:
        """The clauses of a unit, a row whole, with their forms."""
        if order not in self._clauses:
            unit, found = self.index.units[order], self.index.forms(order)
            spans = [(0, len(unit.text) + 1)] if unit.kind is UnitKind.ROW else list(clauses(unit.text))
            self._clauses[order] = [(unit.text[a:b], tuple(f for f in found if a <= f.start < b)) for a, b in spans]
        return self._clauses[order]

    def opposite_clause(self, statement: str, own: Sequence[Form], near: Sequence[int]) -> str:
        """The clause that has nearly all words of a statement and another polarity, where no clause has the same; "" for none."""
        words = [f for f in own if f.is_content]
        if len(words) < MIN_POLARITY_WORDS:
            return ""
        spoken = (part for o in near if self.index.units[o].kind is not UnitKind.ROW for part in self._parts(o))
        same = [text for text, found in spoken if share_of(words, text, {f.key for f in found}) >= _MIN_CLAUSE_SHARE]
        is_negated = negations(statement) > 0
        return same[0] if same and all((negations(text) > 0) != is_negated for text in same) else ""

    def shown(self, near: Sequence[int]) -> str:
        return self.index.units[near[0]].text if near else ""


def clauses(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each clause of a sentence: up to a comma, a semicolon or a conjunction."""
    at = 0
    for found in _CLAUSE_BREAK.finditer(text):
        yield at, found.end()
        at = found.end()
    yield at, len(text) + 1


def numbers_of(quantity: Quantity) -> tuple[str, ...]:
    """The numbers of a quantity, a range or ratio as several, each in one spelling."""
    return tuple(map(plain_number, _NUMBER.findall(value_key(quantity.number))))


def _may_replace(form: Form, other: Form, *, is_row: bool) -> bool:
    """Whether two values are of one unit; in a row, whose header may name it, a value without a unit may replace one with it."""
    if form.kind is not FormKind.VALUE:
        return False
    unit, wanted = ({q.unit or q.counted for q in quantities(f.text)} - {""} or {f.key.partition(" ")[2]} - {""} for f in (form, other))
    return unit == wanted or (is_row and not unit)


def _has_number_of(form: Form, text: str) -> bool:
    number = numeral_value(form.text)
    wanted = {str(number)} if number is not None else {part for q in quantities(form.text) for part in numbers_of(q)}
    return any(plain_number(n) in wanted for n in _NUMBER.findall(value_key(text))) or any(
        str(numeral_value(w)) in wanted for w in text.split()
    )


def share_of(words: Sequence[Form], text: str, keys: AbstractSet[str]) -> float:
    """The share of `words` that a text has, inflected and compounded ones included; `keys` are those of its forms."""
    lower = text.casefold()
    return sum(f.key in keys or _is_word_of(f, lower) for f in words) / len(words) if words else 1.0


def _is_word_of(form: Form, lower: str) -> bool:
    """Whether a text in lower case has a word, or one that begins or ends with its first letters."""
    word = form.text.casefold()
    if len(word) >= _PREFIX_LETTERS:
        return word[:_PREFIX_LETTERS] in lower
    return word in lower and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", lower) is not None


def plain_number(number: str) -> str:
    """A number without leading and trailing zeros."""
    head, point, tail = number.partition(".")
    return (head.lstrip("0") or "0") + (f".{tail.rstrip('0')}" if point and tail.strip("0") else "")
