"""The forms of a text by which two versions of it are compared: values, codes, names, content words, and the function words between.

A form has a kind and a key, which is one for all spellings of a value: `1,299.00` and `1.299,00` have the key `1299`.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby

from pandora_dagster.language.dates import MONTHS, days
from pandora_dagster.language.tokens import tokens


class FormKind(StrEnum):
    """What a form is. Function words (articles, pronouns, negations) are `glue`."""

    VALUE = "value"
    CODE = "code"
    NAME = "name"
    WORD = "word"
    GLUE = "glue"


_MAX_SUBJECT_WORDS = 6
"""Words around a value that are its subject."""
_FUNCTION_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_SIGNED_LINE, _SIGNED_LINE_OF_HUNK = re.compile(r"^[+-](?=[^\s\d+-]).*", re.MULTILINE), re.compile(r"^[+-].*", re.MULTILINE)
_NUMBERING = re.compile(r"^[^\S\n]*(?:\d{1,3}[.)]|\(\d{1,3}\))\s|(?<!\w)\[\d{1,4}\]", re.MULTILINE)
"""Numbers of list items and citations: no values."""
_MARK = re.compile(r"^[^\S\n]*(?:(?:[-*\u2022]|>|#{1,6}|\d{1,3}[.)])\s+)+|^>+", re.MULTILINE)
_MARKUP = re.compile(r"[\s*_`|\"\u201c\u201d\u201e]+")
_EDGE, _DIGITS = " .;:,", re.compile(r"\d+")
_ENGLISH, _EUROPEAN = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?=\D|$)"), re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+(?=,\d|\D|$)(?!\.)")
_DECIMAL_COMMA, _ZEROS = re.compile(r"(?<=\d),(?=\d{1,2}(?:\D|$))"), re.compile(r"(?<=\d)\.0+(?=\D|$)")
_SUBJECT = re.compile(r" \([^()]*\)$|(?<=:\d\d) (?!am$|pm$)[^\W\d_]+$")
_MINUS = str.maketrans({"\u2212": "-", "\u00a0": " ", "\u202f": " "})


@dataclass(frozen=True, slots=True)
class Form:
    """One form: characters `start` to `end` of its text. Equal keys are the same form; `sign` is that of its line in a diff."""

    kind: FormKind
    key: str
    text: str
    start: int
    end: int
    sign: str = ""

    @property
    def signed(self) -> str:
        return f"{self.sign} {self.key}" if self.sign else self.key

    @property
    def is_content(self) -> bool:
        return self.kind is not FormKind.GLUE

    @property
    def is_hard(self) -> bool:
        """Whether it is a value, code or name: replaced by another form, the statement is changed for certain."""
        return self.kind in (FormKind.VALUE, FormKind.CODE, FormKind.NAME)

    @property
    def is_letter(self) -> bool:
        """A single letter that distinguishes: hepatitis A, Doctor X."""
        return len(self.text) == 1 and self.text.isupper()


def forms(text: str, language: str, *, is_hunk: bool = False) -> tuple[Form, ...]:
    """All forms of `text` in order. The number of a list item or citation is none."""
    lines = [(m.start(), m.end(), m[0][0]) for m in (_SIGNED_LINE_OF_HUNK if is_hunk else _SIGNED_LINE).finditer(text)]
    unsigned = tuple(_with_dates(list(_forms(text, language)), text))
    if not lines:
        return unsigned
    starts = [start for start, _, _ in lines]
    signed: list[Form] = []
    for form in unsigned:
        _, end, sign = lines[max(0, bisect_right(starts, form.start) - 1)]
        signed.append(replace(form, sign=sign) if starts[0] <= form.start < end else form)
    return tuple(signed)


def _forms(text: str, language: str) -> Iterator[Form]:
    numbering = {m.start() + i for m in _NUMBERING.finditer(text) for i in range(len(m[0]))}
    at = 0
    for token in tokens(text, language):
        if token.start in numbering:
            continue
        yield from _between(text, at, token.start)
        kind = FormKind(token.kind.value)
        key = value_key(token.key) if kind is FormKind.VALUE else token.key.lower()
        yield Form(kind, key, token.text, token.start, token.end)
        at = token.end
    yield from _between(text, at, len(text))


def _with_dates(found: list[Form], text: str) -> Iterator[Form]:
    """The forms with each day as one value, in whatever spelling: `May 20, 2026`, `20 May 2026` and `2026-05-20` have one key."""
    starts = [form.start for form in found]
    at = 0
    for (start, end), moments in groupby(days(text), key=lambda day: (day.start, day.end)):
        first, last = bisect_left(starts, start), bisect_left(starts, end)
        (year, month, day), *others = (moment.key for moment in moments)
        if others or first < at or first == last or starts[first] != start or not end - 1 <= found[last - 1].end <= end:
            continue  # a range of days, or no forms of their own
        yield from found[at:first]
        key = f"{MONTHS[month - 1][:3]} {day}" + (f" {year}" if year else "")
        yield Form(FormKind.VALUE, key, text[start : found[last - 1].end], start, found[last - 1].end)
        at = last
    yield from found[at:]


def _between(text: str, start: int, end: int) -> Iterator[Form]:
    return (Form(FormKind.GLUE, m[0].lower(), m[0], m.start(), m.end()) for m in _FUNCTION_WORD.finditer(text, start, end))


def value_key(key: str) -> str:
    """One spelling of equal numbers: `1,299.00` and `1.299,00` are `1299`; what a bare number is of is no part of it."""
    plain = _ENGLISH.sub(lambda m: m[0].replace(",", ""), _SUBJECT.sub("", key.translate(_MINUS)))
    plain = _EUROPEAN.sub(lambda m: m[0].replace(".", ""), plain)
    return _ZEROS.sub("", _DECIMAL_COMMA.sub(".", plain))


def subject_of(at: int, found: Sequence[Form]) -> tuple[str, ...]:
    """What the value `found[at]` is of: stems of the words and names around it, the nearest first, up to the next value on either side."""
    near: list[tuple[int, str]] = []
    for step in (-1, 1):
        distance, n = 1, at + step
        while 0 <= n < len(found) and distance <= 3 * _MAX_SUBJECT_WORDS and found[n].kind is not FormKind.VALUE:
            if found[n].kind in (FormKind.WORD, FormKind.NAME, FormKind.CODE):
                near.append((2 * distance + (step > 0), found[n].key))
            distance, n = distance + 1, n + step
    return tuple(dict.fromkeys(key for _, key in sorted(near)))[:_MAX_SUBJECT_WORDS]


def pattern_of(form: Form) -> str:
    """What a value may be exchanged with: its digits removed from a code, a value's unit. A number in words is like one in digits."""
    if form.kind not in (FormKind.VALUE, FormKind.CODE):
        return form.kind.value
    return _DIGITS.sub("0", form.key) if _DIGITS.search(form.key) else "0"


def unit_key(text: str, *, is_literal: bool = False) -> str:
    """A unit without its markup, for the question whether it is verbatim; `is_literal` keeps all but white space (code, diffs)."""
    if is_literal:
        return "\n".join(" ".join(line.split()) for line in text.split("\n") if line.strip()).strip()
    return _MARKUP.sub(" ", _MARK.sub("", text.translate(_MINUS))).strip(_EDGE).casefold()
