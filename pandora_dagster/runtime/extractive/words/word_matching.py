"""Words, stems and weights, as small as this runtime needs them. Knows English endings; knows nothing of documents."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from pandora_dagster.language.stop_words import stop_words

WORD = re.compile(r"\d+(?:[.,:]\d+)+|[^\W_]+(?:['’](?:[^\W\d_]{1,2})\b)?")
_TAIL = re.compile(r"['’](?:[^\W\d_]{1,2})$")


def word_set(text: str) -> frozenset[str]:
    """The words of a written list, split at blanks."""
    return frozenset(text.split())


STOP_WORDS = frozenset[str]().union(*map(stop_words, ("de", "fr", "es", "it"))) - stop_words("en") | word_set(
    """a about above after again against all also am an and any are as at back be because been before being below between both but by can
    could did do does doing don down during each few for from further get go got had has have having he her here hers him his how i if in
    into is isn it its just let like ll me more most my no nor not now of off ok okay on once one ones only or other our ours out over own
    please re s same she should so some such t than that the their theirs them then there these they thing things this those through to
    too under until up us ve very was we were what when where which while who whom whose why will with would yes you your yours d m
    thank thanks hello hi hey"""
)
"""Words that say nothing about what a text is about."""
META_WORDS = word_set(
    """talk talked talking discuss discussed mention mentioned tell told say said says ask asked asking speak spoke remember recall know
    want wanted need show give find look see help question answer earlier previous previously last conversation chat something anything
    exactly much many long often ever already really time times"""
)
"""Words of a question that are about the asking, not about the matter."""
LIGHT_VERBS = word_set(
    "do did done have get got make made take took give gave go went use used put come came be keep kept let set happen happened"
)
"""Verbs that say little by themselves: what was done stands beside them."""
_ENDINGS = (
    *(
        "izations",
        "ization",
        "ations",
        "ements",
        "nesses",
        "ation",
        "ement",
        "ities",
        "ness",
        "ings",
        "ments",
        "ment",
        "ions",
        "ious",
        "able",
    ),
    *("ible", "ing", "ion", "ies", "ied", "ity", "ers", "est", "ous", "ive", "ally", "ful", "ed", "es", "er", "ly", "al", "s", "y", "e"),
)
"""Longest first where one ends another."""


def stem(word: str) -> str:
    """`word` (lower case) without its English ending; words with a digit and words under four letters stay whole."""
    if len(word) < 4 or not word.isalpha():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] in "eiy":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl" else word


def words(text: str) -> list[str]:
    """The words of `text` in lower case; numbers and ids whole, possessive tails cut."""
    return [_TAIL.sub("", w) if "'" in w or "’" in w else w for w in WORD.findall(text.lower())]


def terms(text: str) -> tuple[str, ...]:
    """Stems of the words of `text` that are no stop words, in order, repeated as they stand."""
    return tuple(stem(w) for w in words(text) if w not in STOP_WORDS)


def content_words(text: str) -> tuple[str, ...]:
    """The words of a query that say what it is about, each once, in order, in lower case."""
    return tuple(dict.fromkeys(w for w in words(text) if w not in STOP_WORDS and w not in META_WORDS))


def weights(query: Iterable[str], documents: Sequence[Collection[str]]) -> dict[str, float]:
    """Each query stem's weight by its rarity among the documents' stems; above 0, also for a stem that stands in all."""
    total = len(documents)
    counts = {t: sum(t in d for d in documents) for t in dict.fromkeys(query)}
    return {t: math.log(1 + (total - n + 0.5) / (n + 0.5)) + 0.1 for t, n in counts.items()}


def coverage(query: Mapping[str, float], stems: Collection[str]) -> float:
    """The share (0 to 1) of the query's weight that `stems` hold."""
    whole = sum(query.values())
    return sum(w for t, w in query.items() if t in stems) / whole if whole else 0.0


FILLERS = frozenset(
    map(
        stem,
        word_set(
            """welcome feel free reach assist assistance happy help further questions sorry sure great glad good nice amazing awesome cool
            wonderful day enjoy safe moment sounds absolutely definitely wow yeah oh haha luck keep hope details thing"""
        ),
    )
)
"""Stems of courtesies: a sentence of these alone says nothing."""
