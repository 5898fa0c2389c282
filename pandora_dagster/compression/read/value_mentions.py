"""Who mentions a value, and how late: the weight that talk gives to the values of a transcript.

Knows messages, calls and value keys; knows nothing of tables or budgets.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from pandora_dagster.compression.read.json_parts import leaves
from pandora_dagster.compression.read.transcript_messages import Call, ProseMessage
from pandora_dagster.compression.words.normalization import KeyIndex, key, padded, words
from pandora_dagster.compression.words.query_words import Stemmer
from pandora_dagster.compression.words.word_classes import OPENERS, word_set

_VALUE = re.compile(
    r"(?<![\w.+\-])[\w.+\-]{1,64}@[\w\-]{1,64}\.[\w.\-]{1,64}|(?<!\w)(?:\w[\w\-:./,]{0,80}?\d[\w\-:.,]{0,80}[\w%]|\$?\d[\d,.]*\d%?|\d+%?|\w+_\w+\b|[A-Z][\w'\u2019]+)"
)
_DATE = re.compile(r"\d{4} \d\d \d\d")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ENUM = re.compile(r"[a-z]+(?: [a-z]+)*")
_HALF_AFTER = 4
"""Messages after which a mention is half as near to what is talked about now."""
_MEASURES = {
    "price": word_set("cheap cheaper cheapest expensive dear dearest cost costs pay"),
    "cost": word_set("cheap cheaper cheapest expensive price pay"),
    "distance": word_set("close closer closest near nearer nearest far farther farthest"),
    "duration": word_set("long longer longest short shorter shortest fast faster fastest"),
    "date": word_set("when early earlier earliest late later latest old older oldest new newer newest"),
    "time": word_set("when early earlier earliest late later latest"),
    "size": word_set("big bigger biggest large larger largest small smaller smallest"),
    "rating": word_set("good better best bad worse worst"),
}
"""What a column is called -> the words by which one asks for it."""
PERSON, ANSWER = 3.0, 2.0
"""Strength of a mention by a person or in a call, and by anyone else."""


def value_keys(text: str) -> frozenset[str]:
    """Keys of the identifiers, numbers and proper names in a sentence."""
    return frozenset(_keys(text))


def _keys(text: str) -> Iterator[str]:
    for found in _VALUE.findall(text):
        word = found.removesuffix("'s").removesuffix("\u2019s")
        if word.lower() in OPENERS:
            continue
        value = key(word)
        if len(value) >= 2 or value.isdigit():
            yield value


def _with_bare_amounts(keys: Iterable[str]) -> Iterator[str]:
    """Keys, and amounts of money also without their sign, as records hold them."""
    for value in keys:
        yield value
        if value.startswith("$"):
            yield value[1:]


def base_weight(value: str) -> float:
    """What a value is worth by its form: an identifier most, then a date, a number, a word."""
    if any(c.isdigit() for c in value):
        if any(c.isalpha() for c in value):
            return 3.0
        if _DATE.fullmatch(value):
            return 2.0
        return 1.5 if len(value) > 1 else 1.0
    return 1.0


def recency(position: int, messages: int) -> float:
    """0.5 at the beginning of a transcript, 1 at its end."""
    return 0.5 + 0.5 * (position + 1) / max(messages, 1)


class Mentions:
    """Strength of every value that someone says or a call uses."""

    def __init__(self, said: Iterable[ProseMessage], calls: Iterable[Call], messages: int, query: str = "") -> None:
        self._strength: defaultdict[str, float] = defaultdict(float)
        self._latest: dict[str, int] = {}
        self._messages = messages
        spoken: list[str] = []
        for item in said:
            strength = (PERSON if item.role == "user" else ANSWER) * recency(item.position, messages)
            self._note(_with_bare_amounts(value_keys(item.text)), strength, item.position if item.role == "user" else None)
            spoken.append(item.text)
        for call in calls:
            self._note(call_keys(call), PERSON * recency(call.position, messages), call.position)
            spoken.append(call.text or " ".join(leaves(call.arguments)))
        if query:
            self._note(value_keys(query) | frozenset(key(query).split()), PERSON, messages)
            spoken.append(query)
        self._stemmer = Stemmer()
        self._asked = frozenset(self._stemmer.asked(query))
        self._asking = frozenset(words(query))
        self._spoken = KeyIndex(padded(" \n ".join(spoken)))

    def _note(self, keys: Iterable[str], strength: float, position: int | None) -> None:
        for value in keys:
            self._strength[value] = max(self._strength[value], strength)
            if position is not None:
                self._latest[value] = max(self._latest.get(value, 0), position)

    def of(self, value: str) -> float | None:
        """The strongest mention of a value, None where nobody mentions it."""
        return self._strength.get(value)

    def asked(self, text: str) -> frozenset[str]:
        """The stems of the question's words that stand in a text."""
        return self._asked & frozenset(self._stemmer.terms(text)) if self._asked else frozenset()

    def asked_column(self, name: str) -> frozenset[str]:
        """The stems of the question's words that name a column, or ask for what it measures."""
        if not self._asked:
            return frozenset()
        parts = frozenset(words(_CAMEL.sub(" ", name.replace("_", " "))))
        measured = (word for part in parts for word in _MEASURES.get(part, frozenset()) & self._asking)
        return self.asked(" ".join(parts)) | frozenset(stem for word in measured for stem in self._stemmer.all_terms(word))

    def nearness(self, value: str) -> float:
        """How late a person or a call named a value last: 1 at the end, half of it some messages before, 0 where none did."""
        if value not in self._latest:
            return 0.0
        return 0.5 ** ((self._messages - 1 - self._latest[value]) / _HALF_AFTER)

    def spoken(self, value: str) -> bool:
        """Whether a value occurs in talk or in a call, as a value or as words."""
        return value in self._strength or self._spoken.has(value)


def call_keys(call: Call) -> frozenset[str]:
    """Keys of the values a call uses."""
    if call.text:
        return value_keys(call.text)
    found: set[str] = set()
    for leaf in leaves(call.arguments):
        whole = key(leaf)
        if 1 < len(whole) < 60:
            found.add(whole)
        found |= value_keys(leaf)
    return frozenset(found)


def is_word_list(value: str) -> bool:
    """Whether a key is made of plain words, as the names of states and kinds are."""
    return bool(_ENUM.fullmatch(value))
