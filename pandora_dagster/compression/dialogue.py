"""Condenses talk between named people: each sentence stands verbatim, or without its function words, or not at all.

Knows `Name: text` lines and plain lines (dates, headings). Gain of a sentence = new words + new pairs of words + new hard
facts, per token. Pure, deterministic, linear in the text. Reads its own legend of speakers back.
"""

import re
from collections.abc import Hashable
from dataclasses import dataclass

from pandora_dagster.compression.coverage import Selection
from pandora_dagster.compression.dialogue_lines import Line, read_lines
from pandora_dagster.compression.language import FUNCTION_WORDS, stem
from pandora_dagster.compression.normal import key
from pandora_dagster.contracts.ports import CountsTokens

_SENTENCE = re.compile(r"(?<=[.!?。！？؟])[\"')\]]*\s+|(?<=[。！？؟])")
_CLAUSE = re.compile(
    r"(?<=[,;:])\s+|\s+(?=(?:and|but|so|because|when|where|which|who|while|since|though|after|before|to|with|for|from|at|about)\b)"
    r"|\s+-+\s+|(?<=\])\s+|\s+(?=\[)"
)
_HARD, _PAIR, _REPEATED, _MUST = 12.0, 0.2, 0.4, 1_000.0
"""A word that is new is worth 1 and grows with the logarithm of its pieces; a hard fact, a pair of words near each other."""
_LINE_TOKENS = 4.0
"""What opening a line costs: its speaker, and the reader's change of subject."""
_LEAST = 0.02
_ROUNDS, _SMALLEST = 5, 4
"""Joining pieces saves tokens: what was saved is spent in further rounds, while more than this is left."""
_LONGEST_SENTENCE = 1_200
_STEMMED_FUNCTION_WORDS = frozenset(stem(w) for w in FUNCTION_WORDS)


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence or clause of a line, in one of its two forms."""

    line: Line
    order: int
    text: str
    hard: frozenset[str]
    is_whole: bool


class Dialogue:
    """Talk taken apart once, to be condensed to any number of targets. `must` are keys of values that come first;
    `by_clause` chooses smaller pieces."""

    def __init__(self, text: str, counter: CountsTokens, *, must: frozenset[str] = frozenset(), by_clause: bool = False) -> None:
        lines = read_lines(text)
        self._counter = counter
        self._names = _short_names(line.speaker for line in lines)
        self._legend = "; ".join(f"{short}={name}" for name, short in self._names.items())
        self._pieces = [piece for line in lines for piece in _pieces(line, by_clause=by_clause)]
        own = frozenset(k for name in self._names for k in (key(name), *key(name).split()))
        self._units, self._weights = _units(self._pieces, own, must, counter)
        self._openings: dict[Hashable, float] = {line.number: _LINE_TOKENS for line in lines}

    def condensed(self, target: int) -> str:
        """The talk in at most `target` tokens."""
        selection = Selection(self._units, self._weights, self._openings, least=_LEAST)
        text, left = "", target - self._counter.count(self._legend) - 2
        for _ in range(_ROUNDS):
            text = self._fitted(selection.extend(left), target)
            left = target - self._counter.count(text) - 1
            if left < _SMALLEST:
                break
        return text
