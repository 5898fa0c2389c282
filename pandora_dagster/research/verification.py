"""What code verifies of a claim: the quote is in the visible text of the page, and the value is in the quote."""

import re

from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.documents.webpages.fields.availability import written_availability
from pandora_dagster.language.requests.asked_values import AskedKind, values_of

_BETWEEN = re.compile(r"[\s|]+")
_BESIDE_A_NUMBER = re.compile(r"(?<=\d) (?=\D)|(?<=\D) (?=\d)")
"""`210 g` and `210g` are one value, `2 10 g` is another."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
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
    if _holds(given, wanted):
        return True
    if _DAY.fullmatch(value):
        own_year = (page.extracted_data.date or "")[:4]
        written = (found.key for found in values_of(AskedKind.DATE, quote, page.language))
        return any(key[5:] == value[5:] and key[:4] in (value[:4], _NO_YEAR if own_year == value[:4] else "") for key in written)
    return written_availability(quote) == value.strip().lower().replace(" ", "_")


def _one_line(text: str) -> str:
    return _BETWEEN.sub(" ", text).strip()


def _holds(text: str, words: str) -> bool:
    """Whether `text` has the words, with whole numbers at both ends: `10 g` is not in `210 g`."""
    at = text.find(words) if words else -1
    while at >= 0:
        end = at + len(words)
        if not (words[0].isdigit() and text[:at][-1:].isdigit()) and not (words[-1].isdigit() and text[end : end + 1].isdigit()):
            return True
        at = text.find(words, at + 1)
    return False
