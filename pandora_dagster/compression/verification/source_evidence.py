"""The text of the sources that a statement cites, made ready for comparison: numbers with their units, days, words, clauses."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from pandora_dagster.compression.verification.forms import Form, FormKind, forms, unit_key, value_key
from pandora_dagster.compression.verification.unit_index import UnitIndex
from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.language.cues import negations
from pandora_dagster.language.dates import Moment, days, month_number, times
from pandora_dagster.language.detection import language_of, script_language
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
"""Digits from which a number without a unit is one of its statement_forms."""
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
    def script(self) -> str:
        """The language of a text in another script than Latin; "" for Latin."""
        return script_language(self.text)

    @cached_property
    def index(self) -> UnitIndex:
        return UnitIndex(self.text, self.language)

    @cached_property
    def _normalized(self) -> str:
        return unit_key(self.text)

    def quotes(self, text: str) -> bool:
        """Whether the source has these words in this order, none as a part of a longer one: `$1,250` of `$1,250.50`."""
        key = unit_key(text)
        return key in self._normalized and re.search(rf"(?<!\w)(?<!\d[.,]){re.escape(key)}(?!\w|[.,]\d)", self._normalized) is not None

    @cached_property
    def _forms(self) -> tuple[Form, ...]:
        return forms(self.text, self.language)

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(f.key for f in self._forms) | self.index.everywhere

    @cached_property
    def _numbers(self) -> dict[str, set[tuple[str, str]]]:
        """Number -> unit and counted word of each of its places, "" for none."""
        uses: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        for quantity in quantities(self.text, self.language):
            for number in numbers_of(quantity):
                uses[number].add((quantity.unit, quantity.counted))
        for number in _bare_numbers(self.text, self._forms):
            uses[number].add(("", ""))
        return dict(uses)

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
        form_quantities = list(quantities(form.text, language))
        if not form_quantities:
            return form.text.casefold() in self.lower
        return all(self._has_number(number, q, language) for q in form_quantities for number in numbers_of(q))

    def _has_number(self, number: str, quantity: Quantity, language: str) -> bool:
        """Whether the text has `number` with the unit, or of the thing, that `quantity` has."""
        uses = self._numbers.get(number)
        if uses is None:
            return False
        if quantity.unit:
            units = {unit for unit, _ in uses}
            is_unit_named = any(word in self.lower for word in spellings(quantity.unit))
            return quantity.unit in units or ("" in units and (is_unit_named or not is_currency(quantity.unit)))
        counted_words = {counted for _, counted in uses}
        is_counted = quantity.counted in counted_words or quantity.counted in self._keys
        return not quantity.counted or ("", "") in uses or is_counted or not self.is_comparable_in(language)

    def has_word(self, form: Form) -> bool:
        return form.key in self._keys or _is_word_of(form, self.lower)

    def nearest_units(self, statement_forms: Iterable[Form]) -> tuple[int, ...]:
        """The units that share most with a statement, by their order, the nearest first."""
        keys = {f.key for f in statement_forms if f.is_content}
        sharing_units = {order for key in keys for order in self.index.holders.get(key, ())}
        scores = {order: sum(map(self.index.weight, keys & self.index.content_keys(order))) for order in sharing_units}
        ranked = sorted((order for order in scores if scores[order]), key=lambda order: (-scores[order], order))
        return tuple(ranked[:_MAX_NEAR_UNITS])

    def covers(self, order: int, statement_forms: Sequence[Form]) -> bool:
        """Whether a unit has nearly all words and values of a statement."""
        text, keys = self.index.units[order].text.casefold(), self.index.content_keys(order)
        content = [f for f in statement_forms if f.is_content]
        return share_of(content, text, keys) >= _MIN_UNIT_SHARE

    def holders(self, form: Form, language: str) -> list[int]:
        """The units that have one of the numbers of a value, by their order."""
        return sorted({order for number in _value_numbers(form, language) for order in self._number_holders.get(number, ())})

    @cached_property
    def _number_holders(self) -> dict[str, list[int]]:
        """Number -> the content units that have it."""
        holders: defaultdict[str, list[int]] = defaultdict(list)
        for unit in self.index.content:
            numbers = {number for q in quantities(unit.text, self.language) for number in numbers_of(q)}
            for number in numbers.union(_bare_numbers(unit.text, self.index.forms(unit.order))):
                holders[number].append(unit.order)
        return dict(holders)

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

    def rival_value(
        self, form: Form, statement_forms: Sequence[Form], words: Sequence[Form], holders: Sequence[int]
    ) -> tuple[str, str] | None:
        """A value that the source has in the place of another one, with its clause or row; None where there is none.

        Its clause has nearly all words of the statement, and the clauses of the other value have far fewer.
        """
        statement_keys = {f.key for f in statement_forms}
        orders = sorted({*self.nearest_units(words), *holders[:_MAX_NEAR_UNITS]})
        rows = {self.index.units[o].text for o in orders if self.index.units[o].kind is UnitKind.ROW}
        wholes = [(self.index.units[o].text, self.index.forms(o)) for o in orders]
        for parts in (wholes, [part for o in orders for part in self._parts(o)]):
            shares = [
                (share_of(words, text, {f.key for f in part_forms}), text, part_forms, _has_number_of(form, text))
                for text, part_forms in parts
            ]
            best = max((share for share, _, _, is_holder in shares if is_holder), default=0.0)
            for share, text, part_forms, is_holder in shares:
                other = next(
                    (
                        f.text
                        for f in part_forms
                        if f.key not in statement_keys and _may_replace(f, form, is_row=text in rows and not self.has_key(form))
                    ),
                    "",
                )
                if not is_holder and other and share >= max(_MIN_CLAUSE_SHARE, best + _MIN_RIVAL_LEAD):
                    return other, text
        return None

    def _parts(self, order: int) -> list[tuple[str, tuple[Form, ...]]]:
        """The clauses of a unit, a row whole, with their forms."""
        if order not in self._clauses:
            unit, unit_forms = self.index.units[order], self.index.forms(order)
            spans = [(0, len(unit.text) + 1)] if unit.kind is UnitKind.ROW else list(clauses(unit.text))
            self._clauses[order] = [(unit.text[start:end], tuple(f for f in unit_forms if start <= f.start < end)) for start, end in spans]
        return self._clauses[order]

    def opposite_clause(self, statement: str, statement_forms: Sequence[Form], near: Sequence[int]) -> str:
        """The clause that has nearly all words of a statement and another polarity, where no clause has the same; "" for none."""
        words = [f for f in statement_forms if f.is_content]
        if len(words) < MIN_POLARITY_WORDS:
            return ""
        prose_clauses = (part for o in near if self.index.units[o].kind is not UnitKind.ROW for part in self._parts(o))
        same = [text for text, clause_forms in prose_clauses if share_of(words, text, {f.key for f in clause_forms}) >= _MIN_CLAUSE_SHARE]
        is_negated = negations(statement) > 0
        return same[0] if same and all((negations(text) > 0) != is_negated for text in same) else ""

    def nearest_text(self, near: Sequence[int]) -> str:
        """The text of the nearest unit; "" for none."""
        return self.index.units[near[0]].text if near else ""


def clauses(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each clause of a sentence: up to a comma, a semicolon or a conjunction."""
    at = 0
    for clause_break in _CLAUSE_BREAK.finditer(text):
        yield at, clause_break.end()
        at = clause_break.end()
    yield at, len(text) + 1


def _bare_numbers(text: str, text_forms: Iterable[Form]) -> Iterator[str]:
    """Numbers without a unit: cells of CSV rows, parts of codes, numerals."""
    yield from map(plain_number, _CELL.findall(text))
    for form in text_forms:
        if form.kind is FormKind.CODE:
            yield from map(plain_number, _NUMBER.findall(form.key))
        elif (number := numeral_value(form.text)) is not None:
            yield str(number)


def _value_numbers(form: Form, language: str = "") -> set[str]:
    """The numbers of a value: that of a numeral, or those of its quantities."""
    numeral = numeral_value(form.text)
    return {str(numeral)} if numeral is not None else {number for q in quantities(form.text, language) for number in numbers_of(q)}


def numbers_of(quantity: Quantity) -> tuple[str, ...]:
    """The numbers of a quantity, a range or ratio as several, each in one spelling."""
    return tuple(map(plain_number, _NUMBER.findall(value_key(quantity.number))))


def _may_replace(form: Form, other: Form, *, is_row: bool) -> bool:
    """Whether two values are of one unit; in a row, whose header may name it, a value without a unit may replace one with it."""
    if form.kind is not FormKind.VALUE:
        return False
    unit, other_unit = ({q.unit or q.counted for q in quantities(f.text)} - {""} or {f.key.partition(" ")[2]} - {""} for f in (form, other))
    return unit == other_unit or (is_row and not unit)


def _has_number_of(form: Form, text: str) -> bool:
    wanted = _value_numbers(form)
    has_digits = any(plain_number(number) in wanted for number in _NUMBER.findall(value_key(text)))
    return has_digits or any(str(numeral_value(word)) in wanted for word in text.split())


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
