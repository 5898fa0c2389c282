"""Finds words that refer to a thing (`it`, `that one`), and whether the query itself names the thing."""

import re

from pandora_dagster.runtime.extractive.queries.content_words import STOP_WORDS, content_words, words
from pandora_dagster.runtime.extractive.queries.entities import EMAIL, IDENTIFIER, NAME, QUOTED, URL

_POINTING_WORD = re.compile(
    r"\b(?:(?:the )?(?:same|other|first|second|third|fourth|fifth|last|previous|next|cheaper|cheapest|bigger|smaller) ones?"
    r"|(?:that|this|these|those) ones?|it|them|they|these|those"
    r"|(?:that|this)(?=\W*$|[,.;!?]|\s+(?:please|again|for|to|with|in|on|still|now|then|instead)\b))\b",
    re.IGNORECASE,
)
_POINTING_AT_NOTHING = re.compile(
    r"\bwhat (?:time|day|date|year|month|season) (?:is|was) it\b"
    r"|\b(?:is|was|does|did|will|would|can) it (?:\w+ ){1,3}(?:to|that|if|when|whether) \w"
    r"|\bit(?:['’]s| (?:is|was|takes?|took|makes?|matters?|means?|costs?)) (?:\w+ ){0,3}(?:to|that|if|when|whether) \w"
    r"|\b(?:is|was|will) it (?:be )?(?:(?:rain|snow)\w*|sunny|cold|hot|warm|windy|late|early|dark)\b"
    r"|\bit(?:['’]s| is| was) (?:(?:rain|snow)\w*|sunny|cold|hot|warm|windy|late|early|dark)\b"
    r"|\b(?:these|those) (?!(?:ones?|in|on|for|to|please|still|are|were)\b)[a-z]{3,}"
    r"|\bthis (?:week|month|year|morning|evening|weekend|time)\b",
    re.IGNORECASE,
)
"""An `it` that refers to no thing, and pointing words with their noun."""
_POLITE_WORDS = frozenset(words("please kindly just also still like need want help today tomorrow"))
_MAX_QUESTION_WORDS = 1
"""A word of its own beside the pointing one says what is asked (`in stock`), not yet of what."""
_MAX_ORDER_WORDS = 3
"""The same after an order (`change it to a window seat`)."""


def find_pointer(query: str) -> str:
    """The word in `query`, verbatim, that refers to a thing which the query itself does not name; "" where there is none."""
    if any(shape.search(query) for shape in (QUOTED, NAME, IDENTIFIER, URL, EMAIL)):
        return ""
    found = _POINTING_WORD.search(_POINTING_AT_NOTHING.sub(lambda m: " " * len(m.group(0)), query))
    if not found:
        return ""
    before, after = words(query[: found.start()]), _subject_words(query[found.end() :])
    governing = bool(before) and before[-1] not in STOP_WORDS
    named = _subject_words(" ".join(before[:-1] if governing else before))
    most = _MAX_ORDER_WORDS if governing and not _is_question(before) else _MAX_QUESTION_WORDS
    return "" if named or len(after) > most else found.group(0)


def asks_for_antecedent(before: str) -> bool:
    """Whether the words before a pronoun ask for the thing that it refers to: `Which desk did we order, and what did` it `cost?`."""
    asked = [word for word in words(before) if word not in ("and", "but", "so")]
    return bool(_subject_words(before)) and _is_question(asked) and not _POINTING_WORD.search(before)


def _subject_words(text: str) -> list[str]:
    return [w for w in content_words(text) if w not in _POLITE_WORDS]


def _is_question(before: list[str]) -> bool:
    return before[0] in ("what", "which", "who", "when", "where", "how", "why")
