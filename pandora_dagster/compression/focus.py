"""Condenses a text around a question: whole turns or lines, verbatim, in contiguous stretches.

A term's hits are smoothed over five widths at once, so that a stretch counts whose neighbourhood speaks of the matter though
its own words do not. Pure, deterministic; linear in the text times the terms of the question.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.compression.dialogue_lines import SPEAKER_LINE
from pandora_dagster.compression.language import sentences
from pandora_dagster.compression.query_words import Question, Stemmer, read_question
from pandora_dagster.compression.spans import best_spans, smoothed
from pandora_dagster.contracts.ports import CountsTokens

_WIDTHS = (40, 120, 400, 1_200, 3_000)
"""In words: a remark, an exchange, a topic's core, a topic, a part of the meeting. One width alone costs 5 points."""
_BLOCK = 150
_SATURATION = 2.0
_START_PENALTY = 13.5
_THEME_SHARE, _THEME_PENALTY, _THEME_TERMS, _THEME_WEIGHT = 0.05, 3.0, 15, 0.3
_SPEAKER_FLOOR, _SPEAKER_SHARE, _SPEAKER_WIDTH = 0.7, 0.6, 120
_EDGE, _EDGE_SHARE = 0.03, 0.7
_LONGEST_LINE = 4_000


@dataclass(frozen=True, slots=True)
class _Turn:
    speaker: str
    text: str
    line: str


class _Body:
    """A text as turns, with the place of every term."""

    def __init__(self, turns: Sequence[_Turn], stemmer: Stemmer) -> None:
        self.turns = turns
        self.sizes = [max(1, len(turn.text.split())) for turn in turns]
        self.length = len(turns)
        self.terms = [stemmer.terms(turn.text) for turn in turns]
        self.hits: defaultdict[str, dict[int, float]] = defaultdict(dict)
        for i, terms in enumerate(self.terms):
            for term in terms:
                self.hits[term][i] = self.hits[term].get(i, 0.0) + 1.0
        self.places: list[float] = []
        self.words = 0
        for size in self.sizes:
            self.places.append(self.words + size / 2)
            self.words += size
        self.decay = {width: self._decay(width) for width in _WIDTHS}

    def _decay(self, width: int) -> list[float]:
        return [math.exp((a - b) / width) for a, b in zip(self.places, self.places[1:], strict=False)]

    def rarity(self, term: str) -> float:
        """How few blocks of the text hold a term."""
        blocks = self.words // _BLOCK + 1
        holding = len({int(self.places[i] // _BLOCK) for i in self.hits[term]})
        return math.log(1 + (blocks - holding + 0.5) / (holding + 0.5))

    def scores(self, terms: Mapping[str, float]) -> list[float]:
        total = [0.0] * self.length
        for term, weight in terms.items():
            if term not in self.hits:
                continue
            unit = weight * self.rarity(term) * (_SATURATION + 1) / len(_WIDTHS)
            for width in _WIDTHS:
                for i, value in enumerate(smoothed(self.hits[term], self.decay[width], self.length)):
                    total[i] += unit * value / (value + _SATURATION)
        return total


def condense_for(text: str, target: int, counter: CountsTokens, query: str, *, extra: str = "") -> str:
    """The stretches of `text` that bear on `query`, in at most `target` tokens; a blank line stands for what is left out.

    `extra` are words that count a little, such as those of a task."""
    turns = _turns(text)
    if not turns:
        return ""
    stemmer = Stemmer()
    body = _Body(turns, stemmer)
    question = read_question(f"{query} {extra}".strip(), {t.speaker for t in turns}, body.hits, stemmer)
    scores = _ranked(body, question)
    costs = [counter.count(turn.line + "\n") + 1 for turn in turns]
    return _fitted(turns, scores, costs, target, counter)


def _turns(text: str) -> list[_Turn]:
    """Lines of a text; one that is longer than any turn is taken by sentences, and those by their length."""
    found: list[_Turn] = []
    for line in text.split("\n"):
        for piece in [line] if len(line) <= _LONGEST_LINE else _parts(line):
            if piece.strip():
                match = SPEAKER_LINE.match(piece)
                found.append(_Turn(match.group(1) if match else "", piece[match.end() :] if match else piece, piece))
    return found


def _parts(line: str) -> list[str]:
    size = _LONGEST_LINE // 4
    return [s[at : at + size] for s in sentences(line) for at in range(0, len(s), size)]


def _ranked(body: _Body, question: Question) -> list[float]:
    scores = body.scores(question.terms)
    if question.is_broad:
        scores = body.scores(_with_theme(body, question.terms, scores))
    if question.speakers:
        scores = _near_speakers(body, question.speakers, scores)
    edges = (_EDGE * body.words, (1 - _EDGE) * body.words)
    return [s * (1.0 if edges[0] <= place <= edges[1] else _EDGE_SHARE) for s, place in zip(scores, body.places, strict=True)]


def _with_theme(body: _Body, terms: Mapping[str, float], scores: Sequence[float]) -> dict[str, float]:
    """The terms and those that set the best stretches off from the rest: a broad question names its topic only."""
    theme = best_spans(scores, body.sizes, body.words * _THEME_SHARE, _THEME_PENALTY)
    inside: Counter[str] = Counter()
    outside: Counter[str] = Counter()
    for i, found in enumerate(body.terms):
        (inside if i in theme else outside).update(found)
    all_inside, all_outside = inside.total() + 1, outside.total() + 1
    rates = {t: (n / all_inside) / ((outside[t] + 0.5) / all_outside) for t, n in inside.items() if n >= 2 and t not in terms}
    worth = sorted(((inside[t] * math.log(rate), t) for t, rate in rates.items() if rate > 1), reverse=True)[:_THEME_TERMS]
    return {**terms, **{t: _THEME_WEIGHT * value / worth[0][0] for value, t in worth}}


def _near_speakers(body: _Body, speakers: frozenset[str], scores: Sequence[float]) -> list[float]:
    decay = body.decay[_SPEAKER_WIDTH]
    spoken = {i: float(size) for i, size in enumerate(body.sizes) if body.turns[i].speaker in speakers}
    everyone = {i: float(size) for i, size in enumerate(body.sizes)}
    own = smoothed(spoken, decay, body.length)
    all_ = smoothed(everyone, decay, body.length)
    return [s * (_SPEAKER_FLOOR + _SPEAKER_SHARE * a / b) for s, a, b in zip(scores, own, all_, strict=True)]


def _fitted(turns: Sequence[_Turn], scores: Sequence[float], costs: Sequence[int], target: int, counter: CountsTokens) -> str:
    budget = float(target)
    while True:
        text = _composed(turns, best_spans(scores, costs, budget, _START_PENALTY))
        if (tokens := counter.count(text)) <= target:
            return text
        budget -= max(tokens - target, 1)


def _composed(turns: Sequence[_Turn], kept: set[int]) -> str:
    lines: list[str] = []
    last = -1
    for i in sorted(kept):
        if lines and i != last + 1:
            lines.append("")
        lines.append(turns[i].line)
        last = i
    return "\n".join(lines)
