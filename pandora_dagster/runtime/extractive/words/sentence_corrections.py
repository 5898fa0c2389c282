"""Whether one sentence takes back what another says, whoever they are about: `it moved to Tuesday`, `295 euros instead of 260`.

Rules over words of change, figures and days, in English and German; knows nothing of turns.
"""

import re

from pandora_dagster.language.dates import MONTHS, WEEKDAYS
from pandora_dagster.runtime.extractive.words.user_statements import ALIKE, matter
from pandora_dagster.runtime.extractive.words.word_matching import LIGHT_VERBS, STOP_WORDS, stem, word_set, words

_REPLACED = re.compile(
    r"\b(?:instead of|rather than|no longer|not|nicht|from|replac(?:es|ed|ing)|statt|anstatt|nicht mehr|von)\s+"
    r"(?:the |a |an |my |our |der |dem |den |das )?((?:[\w$€£%:.,/-]+ ?){1,3})",
    re.IGNORECASE,
)
"""What a correction names as the value that went before: the first words after it."""
_CHANGED = re.compile(
    r"\b(?:mov(?:ed|es|ing)|switch(?:ed|ing)|chang(?:ed|es)|migrated|postponed|rescheduled|delayed|brought forward|updated|correction"
    r"|actually|instead|no longer|any ?more|now|new|verschoben|verlegt|geändert|korrektur|stattdessen|nicht mehr|jetzt|nun|doch|statt"
    r"|neue[rs]?|not\b.{1,60}?\bbut|nicht\b.{1,60}?\bsondern|umgezogen|korrigiert)\b",
    re.IGNORECASE,
)
_DAYS = frozenset(
    (
        *WEEKDAYS,
        *MONTHS,
        *word_set("montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag"),
        *word_set("januar februar märz mai juni juli oktober dezember"),
    )
)
_DAY_STEMS = frozenset(map(stem, _DAYS))
_LIGHT = frozenset(map(stem, LIGHT_VERBS)) | frozenset(
    map(stem, word_set("comes kommt coming euro euros dollar dollars pounds francs percent prozent hours minutes uhr"))
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")


def corrects(new: str, old: str) -> bool:
    """Whether `new` says of the matter of `old` that it changed: it names the old value as replaced, or gives another figure or day
    in its place with a word that tells of a change. Where each names something that the other does not, they are about two things."""
    if not _CHANGED.search(new) or words(new) == words(old):
        return False
    one, other = _plain(matter(_CHANGED.sub(" ", new))), _plain(matter(old))
    before = frozenset(words(old))
    named = frozenset(w for m in _REPLACED.finditer(new) for w in words(m.group(1)) if w not in STOP_WORDS) & before
    if named and (one & other) - frozenset(map(stem, named)):
        return True
    if one - other and other - one:
        return False
    differs = any(a and b and a.isdisjoint(b) for a, b in zip(_values(new), _values(old), strict=True))
    return differs and len(one & other) >= max(1, ALIKE * min(len(one), len(other)))


def _plain(stems: frozenset[str]) -> frozenset[str]:
    """Stems of a matter without figures, days and units, which are its values, and without verbs that say little."""
    return frozenset(s for s in stems if s.isalpha() and s not in _DAY_STEMS) - _LIGHT


def _values(sentence: str) -> tuple[frozenset[str], frozenset[str]]:
    """Figures, years left out: what was so in one year does not end what was so in another; days of the week and months."""
    return frozenset(f for f in _FIGURE.findall(sentence) if not _YEAR.fullmatch(f)), frozenset(words(sentence)) & _DAYS
