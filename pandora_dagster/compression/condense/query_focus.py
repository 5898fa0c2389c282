"""Condenses a text around a question: whole turns or lines (of a short text, sentences), verbatim, in contiguous stretches.

A term's hits are smoothed over five widths at once, so that a stretch counts whose neighbourhood speaks of the matter though
its own words do not. Pure, deterministic; linear in the text times the terms of the question.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.compression.condense.budget_selection import best_spans, smoothed
from pandora_dagster.compression.facts.retractions import SpokenSentence, answers, with_answers
from pandora_dagster.compression.read.dialogue_lines import SPEAKER_LINE, is_dialogue, read_lines
from pandora_dagster.compression.read.json_rows import left_out
from pandora_dagster.compression.read.text_blocks import is_table_head
from pandora_dagster.compression.words.normalization import padded
from pandora_dagster.compression.words.query_words import Question, Stemmer, read_question
from pandora_dagster.compression.words.word_classes import sentences
from pandora_dagster.contracts.ports.measurement import TokenMeasure

_WIDTHS = (40, 120, 400, 1_200, 3_000)
"""In words: a remark, an exchange, a topic's core, a topic, a part of the meeting. One width alone costs 5 points."""
_BLOCK = 150
_SATURATION = 2.0
_START_PENALTY = 13.5
_SHORT, _LONG = 1_500, 3_000
"""In words: up to the first a text is read sentence by sentence, and each stands for itself; from the second on whole turns stand,
and where a stretch begins and how near it is to the ends count in full. Between them both count in part."""
_OWN, _SHORTEST_BLOCK, _BLOCKS = 0.8, 10, 20
"""Of a sentence's score in a short text: the share of its own words; and the blocks by which a word's rarity is told."""
_SMALL_WORD = 0.3
_MUST = 0.5
"""What a unit that holds a fact that must stay has over others of a short text, as a share of the best score."""
_THEME_SHARE, _THEME_PENALTY, _THEME_TERMS, _THEME_WEIGHT = 0.05, 3.0, 15, 0.3
_SPEAKER_FLOOR, _SPEAKER_SHARE, _SPEAKER_WIDTH = 0.7, 0.6, 120
_EDGE, _EDGE_SHARE = 0.03, 0.7
_LONGEST_LINE = 4_000
_CHARACTERS = 12
"""Of a word at most: a text that is written without blanks is long by its characters."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """A line or a sentence of one; `number` is the line's, `opening` what the line begins with (`Ann: `), `head` the two lines of the
    table above a row. `goes_on` where a line of talk lacks its speaker, who speaks already: it stands behind the name all the same.
    `text` is what is compared with the question: outside of talk an opening is no name, but a part of the line."""

    speaker: str
    text: str
    line: str
    number: int
    opening: str = ""
    head: str = ""
    goes_on: bool = False


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
        self.block = min(_BLOCK, max(_SHORTEST_BLOCK, sum(self.sizes) // _BLOCKS))
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
        blocks = self.words // self.block + 1
        holding = len({int(self.places[i] // self.block) for i in self.hits[term]})
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


def _own_scores(turns: Sequence[_Turn], query: str, question: Question, stemmer: Stemmer) -> list[float]:
    """What each unit's own words share with the question, the rare ones most. Small words (`take`, `without`) count a little: in a
    short text one of them may be all that sets the answer off."""
    weights = {stem: _SMALL_WORD for stem in stemmer.all_terms(query)} | question.terms
    found = [weights.keys() & set(stemmer.all_terms(turn.text)) for turn in turns]
    holding = Counter(stem for stems in found for stem in stems)
    worth = {stem: weights[stem] * math.log(1 + (len(turns) - n + 0.5) / (n + 0.5)) for stem, n in holding.items()}
    return [sum(worth[stem] for stem in sorted(stems)) for stems in found]


def condense_for(text: str, target: int, counter: TokenMeasure, query: str, *, extra: str = "", must: frozenset[str] = frozenset()) -> str:
    """The stretches of `text` that bear on `query`, in at most `target` tokens; a blank line stands for what is left out.

    `extra` are words that count a little, such as those of a task; `must` are keys of facts that have to stay."""
    words = max(len(text.split()), len(text) // _CHARACTERS)
    length = min(1.0, max(0.0, (words - _SHORT) / (_LONG - _SHORT)))
    turns = _turns(text, by_sentence=length < 1)
    if not turns:
        return ""
    stemmer = Stemmer()
    body = _Body(turns, stemmer)
    question = read_question(f"{query} {extra}".strip(), {t.speaker for t in turns}, body.hits, stemmer)
    scores = _ranked(body, question, length)
    if length < 1:
        own = _leveled(_own_scores(turns, query, question, stemmer))
        share = _OWN * (1 - length)
        scores = [(1 - share) * a + share * b for a, b in zip(_leveled(scores), own, strict=True)]
    if must and length < 1:
        scores = _with_must(turns, scores, must, 1 - length)
    costs = [counter.count(turn.opening + turn.line + "\n") + 1 for turn in turns]
    answered = answers([SpokenSentence(turn.text, turn.number, turn.speaker) for turn in turns]) if length < 1 else {}
    return _fitted(turns, _with_later(scores, answered), costs, target, counter, _START_PENALTY * length, answered)


def _with_later(scores: Sequence[float], answered: Mapping[int, Sequence[int]]) -> list[float]:
    """Scores in which what takes a sentence back, or moves what it says, is worth as much as that."""
    raised = list(scores)
    for number in sorted(answered):
        for other in with_answers([number], answered):
            raised[other] = max(raised[other], scores[number])
    return raised


def _turns(text: str, *, by_sentence: bool) -> list[_Turn]:
    """Lines of a text, or the sentences of its lines; a line that is longer than any turn is taken by sentences, and those by their
    length."""
    found: list[_Turn] = []
    lines = text.split("\n")
    is_talk = is_dialogue(text)
    owners = {line.number: line.speaker for line in read_lines(text)} if is_talk else {}
    head = ""
    for number, line in enumerate(lines):
        if not line.strip():
            head = ""
            continue
        if is_table_head(lines, number):
            head = f"{line}\n{lines[number + 1]}"
        is_row = bool(head) and "|" in line
        head = head if is_row else ""
        match = SPEAKER_LINE.match(line)
        opening = match.group() if match else ""
        owner = match.group(1) if match and is_talk else owners.get(number, "")
        pieces = _parts(line[len(opening) :]) if len(line) > _LONGEST_LINE or (by_sentence and not is_row) else [line[len(opening) :]]
        indent = line[: len(line) - len(line.lstrip())] if len(pieces) > 1 or by_sentence else ""
        for place, piece in enumerate(pieces):
            if is_row and line in head.split("\n"):
                continue
            begins = f"{owner}: " if owner and not match else opening or ("" if is_row else indent)
            said = piece if is_talk or place else opening + piece
            found.append(_Turn(owner, said, piece, number, begins, head, goes_on=bool(owner and not match)))
    return found


def _parts(line: str) -> list[str]:
    size = _LONGEST_LINE // 4
    return [s[at : at + size] for s in sentences(line) for at in range(0, len(s), size)]


def _ranked(body: _Body, question: Question, length: float) -> list[float]:
    """Scores of the units; `length` is 0 for a short text, 1 for a long one."""
    scores = body.scores(question.terms)
    if question.is_broad:
        scores = body.scores(_with_theme(body, question.terms, scores))
    if question.speakers:
        scores = _near_speakers(body, question.speakers, scores)
    edges = (_EDGE * body.words, (1 - _EDGE) * body.words)
    at_edge = 1 - (1 - _EDGE_SHARE) * length
    return [s * (1.0 if edges[0] <= place <= edges[1] else at_edge) for s, place in zip(scores, body.places, strict=True)]


def _leveled(scores: Sequence[float]) -> list[float]:
    """Scores as shares of the best."""
    most = max(scores, default=0.0) or 1.0
    return [s / most for s in scores]


def _with_must(turns: Sequence[_Turn], scores: Sequence[float], must: frozenset[str], share: float) -> list[float]:
    """Scores in which the first unit that holds a fact that must stay is raised."""
    bonus = _MUST * share * (max(scores, default=0.0) or 1.0)
    left = {f" {fact} " for fact in must if fact}
    raised: list[float] = []
    for turn, score in zip(turns, scores, strict=True):
        text = padded(turn.line)
        there = {fact for fact in left if fact in text}
        left -= there
        raised.append(score + (bonus if there else 0.0))
    return raised


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


def _fitted(
    turns: Sequence[_Turn],
    scores: Sequence[float],
    costs: Sequence[int],
    target: int,
    counter: TokenMeasure,
    penalty: float,
    answered: Mapping[int, Sequence[int]],
) -> str:
    budget = float(target)
    while True:
        kept = _sound(best_spans(scores, costs, budget, penalty), scores, costs, budget, answered)
        text = _composed(turns, kept)
        if not text or (tokens := counter.count(text)) <= target:
            return text
        budget -= max(tokens - target, 1)


def _sound(kept: set[int], scores: Sequence[float], costs: Sequence[int], budget: float, answered: Mapping[int, Sequence[int]]) -> set[int]:
    """Units of which none misleads: with what answers it where there is room, else without it."""
    if not answered.keys() & kept:
        return kept
    sound: set[int] = set()
    spent = 0
    for number in sorted(kept, key=lambda n: (-scores[n], n)):
        more = with_answers([number], answered) - sound
        cost = sum(costs[n] for n in more)
        if spent + cost <= budget:
            sound |= more
            spent += cost
    return sound


def _composed(turns: Sequence[_Turn], kept: set[int]) -> str:
    """Units in their order: sentences of one line on one line, a table's rows under its head and above the count of those left out."""
    rows = Counter(turn.head for turn in turns if turn.head)
    lines: list[str] = []
    last, head, standing = -1, "", 0
    for i in sorted(kept):
        turn = turns[i]
        if head and turn.head != head:
            lines += left_out(rows[head] - standing)
        if turn.head != head:
            lines += [*([""] if lines else []), turn.head] if turn.head else [""]
            head, standing = turn.head, 0
        elif lines and i != last + 1 and turn.number != turns[last].number and not head:
            lines.append("")
        standing += 1
        if lines and last >= 0 and turn.number == turns[last].number:
            lines[-1] += " " + turn.line
        else:
            is_named = turn.goes_on and lines and i == last + 1 and turns[last].speaker == turn.speaker
            lines.append(turn.line if is_named else turn.opening + turn.line)
        last = i
    if head:
        lines += left_out(rows[head] - standing)
    return "\n".join(lines).strip("\n")
