"""Whether a text rests on its source: how many of its content words, and of its sentences, the source has.

Knows words, their beginnings and values; knows no phrases and no language but its function words.
"""

import re
from itertools import islice, pairwise

from pandora_dagster.compression.judge.candidate import NO_SENTENCES
from pandora_dagster.compression.judge.grounding import REFERENCE
from pandora_dagster.compression.read.json_rows import LEFT_OUT
from pandora_dagster.compression.words.long_words import LEFT_OUT_WORD
from pandora_dagster.compression.words.normalization import key
from pandora_dagster.compression.words.word_classes import FUNCTION_WORDS, sentences

_LEAST = 0.5
"""Share of the content words that the source has."""
_SENTENCE = 0.34
"""The same of the first and the last sentence."""
_BEGINNING = 5
"""Letters that words of one family share: `acquired`, `acquisition`."""
_FEWEST = 2
_OPENING = re.compile(r"^[^\n:\u2014]{1,120}(?::|\s?\u2014)(?=\s)")
_FIGURE = re.compile(r"\d")
_ADDRESS = re.compile(r"\b(?:you|your|yours|me|my)\b", re.IGNORECASE)
_RUN = re.compile(r"[.,;:!?|()\[\]{}\"\n=\u2013\u2014]")
_LONGEST_RUN, _GLUE = 16, 0.15
_WIDTH, _LOOKED_AT = 3, 200
_SAMPLE = 60_000


class Support:
    """The words of a source, by its key, for any number of questions about one candidate."""

    def __init__(self, candidate: str, source_key: str) -> None:
        self._candidate = candidate
        self._source = f" {source_key} "
        self._ordered = self._source.split()
        self._words = frozenset(self._ordered)
        self._beginnings = frozenset(word[:_BEGINNING] for word in self._words if len(word) >= _BEGINNING)

    def reasons(self) -> tuple[str, ...]:
        """What speaks against the candidate."""
        content = _content(LEFT_OUT_WORD.sub("", self._candidate))
        if not key(self._candidate):
            return ("no words: a text was expected",)
        found: tuple[str, ...] = ()
        if (share := self._share(content)) < _LEAST:
            found += (f"unsupported: the source has {share:.0%} of its content words; at least {_LEAST:.0%} were expected",)
        if said := self._beside():
            found += (f"unsupported: says what the source does not have to say: {said[:80]}",)
        if run := self._run():
            found += (f"bag of words: {len(run.split())} words without a sentence: {run[:80]}",)
        return found

    def _share(self, content: list[str]) -> float:
        return sum(map(self._has, content)) / len(content) if content else 1.0

    def _has(self, word: str) -> bool:
        return word in self._words or (len(word) >= _BEGINNING and word[:_BEGINNING] in self._beginnings)

    def _beside(self) -> str:
        """A first or last sentence that is said to the reader instead of by the source."""
        lines = [line for line in self._candidate.split("\n") if line.strip() and not _is_mark(line)]
        if not lines:
            return ""
        opening = _OPENING.match(lines[0])
        parts = [sentences(lines[0])[0], sentences(lines[-1])[-1], *([opening.group()] if opening else ())]
        return next((part for part in parts if self._is_beside(part, is_opening=bool(opening) and part is parts[-1])), "")

    def _is_beside(self, said: str, *, is_opening: bool) -> bool:
        if "|" in said or said.startswith((*NO_SENTENCES, "{", "[")) or f" {key(said)} " in self._source:
            return False
        content = _content(said)
        if any(_FIGURE.search(word) and word in self._words for word in content):
            return False
        is_spoken = said.endswith(("?", "\uff1f", "\u061f")) or bool(_ADDRESS.search(said))
        if self._share(content) >= (_LEAST if is_spoken else _SENTENCE):
            return is_opening and is_spoken and not content
        return len(content) > (0 if is_spoken else _FEWEST)

    def _run(self) -> str:
        """A run of content words without a sign or a function word between, where the source has such words."""
        sample = self._ordered[:_SAMPLE]
        if sum(word in FUNCTION_WORDS for word in sample) < _GLUE * len(sample):
            return ""
        for part in _RUN.split(self._candidate):
            said = key(part)
            spoken = said.split()
            if len(spoken) > _LONGEST_RUN and f" {said} " not in self._source:
                glue = [-1, *(at for at, word in enumerate(spoken) if word in FUNCTION_WORDS), len(spoken)]
                if any(b - a > _LONGEST_RUN for a, b in pairwise(glue)) and not self._is_shortened(spoken):
                    return part.strip()
        return ""

    def _is_shortened(self, spoken: list[str]) -> bool:
        """Whether words are what is left of one sentence: in its order, with little between."""
        theirs = self._ordered
        places = (at for at, word in enumerate(theirs) if word == spoken[0])
        windows = (iter(theirs[at : at + _WIDTH * len(spoken)]) for at in islice(places, _LOOKED_AT))
        return any(all(word in window for word in spoken) for window in windows)


def _is_mark(line: str) -> bool:
    """Whether a line says where the rest is, or how much was left out."""
    return line.startswith(REFERENCE) or bool(LEFT_OUT.fullmatch(line) or LEFT_OUT_WORD.fullmatch(line))


def _content(text: str) -> list[str]:
    return [word for word in key(text).split() if word not in FUNCTION_WORDS]
