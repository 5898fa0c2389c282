"""The text of the sources that a statement cites, made ready for comparison: numbers with their units, days, words."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from pandora_dagster.compression.verification.forms import Form, FormKind, forms, unit_key, value_key
from pandora_dagster.compression.verification.unit_index import UnitIndex
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
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_CELL = re.compile(r"(?<=,)\d+(?:\.\d+)?(?=,)")
"""A number between commas without blanks: a cell of a CSV row."""


class SourceEvidence:
    """The text of one or more sources, made ready for comparison."""

    def __init__(self, text: str) -> None:
        self.text, self.language = text, language_of(text)
        self.lower = text.casefold()

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
        return sum(f.key in keys or _is_word_of(f, text) for f in content) >= _MIN_UNIT_SHARE * len(content)

    def nearest_text(self, near: Sequence[int]) -> str:
        """The text of the nearest unit; "" for none."""
        return self.index.units[near[0]].text if near else ""


def _bare_numbers(text: str, text_forms: Iterable[Form]) -> Iterator[str]:
    """Numbers without a unit: cells of CSV rows, parts of codes, numerals."""
    yield from map(plain_number, _CELL.findall(text))
    for form in text_forms:
        if form.kind is FormKind.CODE:
            yield from map(plain_number, _NUMBER.findall(form.key))
        elif (number := numeral_value(form.text)) is not None:
            yield str(number)


def numbers_of(quantity: Quantity) -> tuple[str, ...]:
    """The numbers of a quantity, a range or ratio as several, each in one spelling."""
    return tuple(map(plain_number, _NUMBER.findall(value_key(quantity.number))))


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
