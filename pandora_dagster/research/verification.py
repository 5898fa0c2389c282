"""What code verifies of a claim: the quote is in the visible text of the page, and the value is in the quote."""

import re

from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.documents.webpages.fields.availability import STATES, written_availability
from pandora_dagster.language.requests.asked_values import AskedKind, values_of
from pandora_dagster.language.terms import WITHOUT_BLANKS

_BETWEEN = re.compile(r"[\s|]+")
_BESIDE_A_NUMBER = re.compile(r"(?<=\d) (?=\D)|(?<=\D) (?=\d)")
"""`210 g` and `210g` are one value, `2 10 g` is another."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_WRITTEN_NUMBER = re.compile(r"(?:(?<!\w)[-\u2212])?\d+(?:[.,]\d+)*")
_WRITTEN_DAY = re.compile(r"\d{1,2}\.\d{1,2}\.\d{2,4}")
_NO_YEAR = "0000"
"""The year of a date that is written without one."""


def is_in_page(quote: str, page: PageDoc) -> bool:
    """Whether the words of `quote` are one after another in the visible text of the page; line breaks and the bars of tables are blanks."""
    return _holds(_one_line("\n".join(zone.text for zone in page.zones if zone.visible)), _one_line(quote))


def is_value_of(value: str, quote: str, page: PageDoc) -> bool:
    """Whether a unit has the value: in these words, or as the date or the state of availability that it writes in others.

    A date without a year counts as that of the page's own date.
    """
    wanted, given = (_BESIDE_A_NUMBER.sub("", _one_line(text).casefold()) for text in (value, quote))
    if not wanted:
        return False
    state, stated = value.strip().lower().replace(" ", "_"), written_availability(quote)
    if state in STATES and stated:
        return stated == state  # `Not in stock` has the words of the other state
    if _holds(given, wanted):
        return True
    if _DAY.fullmatch(value):
        own_year = (page.extracted_data.date or "")[:4]
        written = (found.key for found in values_of(AskedKind.DATE, quote, page.language))
        return any(key[5:] == value[5:] and key[:4] in (value[:4], _NO_YEAR if own_year == value[:4] else "") for key in written)
    return False


def _one_line(text: str) -> str:
    return _BETWEEN.sub(" ", text).strip()


def _holds(text: str, words: str) -> bool:
    """Whether `text` has the words, whole at both ends: `10 g` is not in `210 g`, `-10 g` and `2.10 g`, `no` is not in `known`."""
    numbers = [(found.start(), found.end()) for found in _WRITTEN_NUMBER.finditer(text) if not _WRITTEN_DAY.fullmatch(found[0])]
    at = text.find(words) if words else -1
    while at >= 0:
        end = at + len(words)
        is_cut = any(start < at < stop or start < end < stop for start, stop in numbers)
        if not (is_cut or _is_one_word(text[at - 1 : at], words[0]) or _is_one_word(words[-1], text[end : end + 1])):
            return True
        at = text.find(words, at + 1)
    return False


def _is_one_word(left: str, right: str) -> bool:
    """Whether two signs are of one word, or of one part of a written date."""
    is_word = left.isalpha() and right.isalpha() and not WITHOUT_BLANKS.search(left + right)
    return is_word or (left.isdigit() and right.isdigit())
