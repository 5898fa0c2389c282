"""The order of found messages, by terms, places in a session, dates and speakers.

The message that answers a question is often near one that shares its words, so a message is scored with its neighbours in the session. Each
signal is divided by its greatest value and weighted; the sum is the score. `benchmarks.fit_search` shows how little the weights matter on
conversations that were not used to fit them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from types import MappingProxyType

from pandora_dagster.language.bm25 import idf
from pandora_dagster.retrieval.messages.document_numbers import is_turn, turn_number
from pandora_dagster.retrieval.messages.search_question import SearchQuestion

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "words": 1.0,
        "date": 1.0,
        "turn_on_named_day": 1.5,
        "session": 0.2,
        "prefix": 0.1,
        "speaker": 0.35,
        "first_person": 0.1,
        "asks": -0.1,
        "similarity": 1.0,
    }
)
"""Signal -> its weight. `turn_on_named_day` exceeds `words`: messages of a day that the question names come first."""
K1, B = 0.9, 0.75
"""BM25 parameters; K1 is low because a word that a message repeats says little more."""
WINDOW = MappingProxyType({distance: 0.5 ** abs(distance) for distance in range(-3, 4)})
"""Distance in the session -> the factor with which a neighbour's words count as the message's own."""
_TURN_TERM_WEIGHT = 0.3
"""Factor on a word of the turn's summary or tool results in its messages, where they lack it."""
_REFERRED_DATE_WEIGHT = 1.5
"""A date that a message itself points to (`last week`), beside 1 for the date of its turn."""
_FULL_DEVIATIONS = 4.0
"""Standard deviations above the mean cosine at which `similarity` is 1."""
_MIN_SPREAD = 1e-6
"""A smaller standard deviation is rounding error."""
_SCORE_DIGITS = 9
"""Decimals of a score: sums of the same numbers in another order differ beyond them, and equal scores must stay equal."""


@dataclass(frozen=True, slots=True)
class MessageUnit:
    """One message, or one turn for what it holds besides its messages (summary, tool results)."""

    doc: int
    session: str
    speaker: str = ""
    length: int = 0
    asks: bool = False
    """It is a question itself."""
    first_person: bool = False
    """It is in the first person."""

    @property
    def number(self) -> int:
        return turn_number(self.doc)

    @property
    def is_turn(self) -> bool:
        return is_turn(self.doc)


@dataclass(frozen=True, slots=True)
class TermMatches:
    """Where the terms of a question are: term -> document number -> its count there. `rarity` is each term's idf."""

    counts: Mapping[str, Mapping[int, int]]
    rarity: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ScoredMessage:
    """A unit with its score."""

    unit: MessageUnit
    score: float


class Neighbourhood:
    """Units by document, the messages of each session in order, and each message's place there."""

    def __init__(self, units: Iterable[MessageUnit], window: Mapping[int, float]) -> None:
        self.window = window
        self.units = {unit.doc: unit for unit in sorted(units, key=lambda u: u.doc)}
        self.sessions: dict[str, list[int]] = defaultdict(list)
        self.position_in_session: dict[int, int] = {}
        for doc, unit in self.units.items():
            if not unit.is_turn:
                self.position_in_session[doc] = len(self.sessions[unit.session])
                self.sessions[unit.session].append(doc)

    def window_sums(self, counts: Mapping[int, float]) -> dict[int, float]:
        """The count of every message plus the weighted counts of its neighbours; a turn has its own count only."""
        sums: dict[int, float] = defaultdict(float)
        for doc, count in counts.items():
            position = self.position_in_session.get(doc)
            if position is None:
                sums[doc] += count
                continue
            session = self.sessions[self.units[doc].session]
            for distance, weight in self.window.items():
                if 0 <= (at := position + distance) < len(session):
                    sums[session[at]] += weight * count
        return sums


def rank_messages(
    question: SearchQuestion, units: Sequence[MessageUnit], matches: TermMatches, cosines: Mapping[int, float] = MappingProxyType({})
) -> tuple[ScoredMessage, ...]:
    """Units that share something with the question, are beside one that does, or are of a speaker whom it names: best first.

    Among equals the longer precedes, then the newer. `cosines`: document -> cosine of its vector with the question's.
    """
    return fuse_signals(units, message_signals(question, units, matches, cosines), question.named_speakers)


def fuse_signals(
    units: Iterable[MessageUnit],
    signals: Mapping[str, Mapping[int, float]],
    named_speakers: Sequence[str] = (),
    weights: Mapping[str, float] = WEIGHTS,
) -> tuple[ScoredMessage, ...]:
    """The units that a signal finds or a named speaker wrote, by the weighted sum of their signals."""
    total: dict[int, float] = defaultdict(float)
    for name, scores in signals.items():
        for doc, value in scores.items():
            total[doc] += weights[name] * value
    rank_only_signals = {"speaker", "first_person", "asks"}
    matching = {doc for name, scores in signals.items() if name not in rank_only_signals for doc, value in scores.items() if value > 0}
    scored = (
        ScoredMessage(unit, round(total[unit.doc], _SCORE_DIGITS))
        for unit in units
        if unit.doc in matching or unit.speaker in named_speakers
    )
    return tuple(sorted(scored, key=lambda s: (-s.score, -s.unit.length, -s.unit.doc)))


def message_signals(
    question: SearchQuestion,
    units: Sequence[MessageUnit],
    matches: TermMatches,
    cosines: Mapping[int, float] = MappingProxyType({}),
    window: Mapping[int, float] = WINDOW,
) -> dict[str, dict[int, float]]:
    """The signals of `WEIGHTS`: name -> document -> score, the greatest of each 1; `similarity` is 1 at `_FULL_DEVIATIONS` deviations."""
    around = Neighbourhood(units, window)
    signals = {
        "words": _word_scores(question, around, matches),
        "prefix": _prefix_scores(question, around, matches),
        "date": _date_scores(question, around, matches),
        "turn_on_named_day": _named_day_scores(question, around, matches),
        "session": _session_scores(question, around, matches),
        "asks": {u.doc: 1.0 for u in units if u.asks},
        "speaker": {u.doc: 1.0 for u in units if question.speaker and u.speaker == question.speaker},
        "first_person": {u.doc: 1.0 for u in units if question.speaker and u.speaker == question.speaker and u.first_person},
    }
    return {name: _normalize(scores, max(scores.values(), default=0.0)) for name, scores in signals.items()} | {
        "similarity": _similarity_scores(around, cosines)
    }


def _normalize(scores: Mapping[int, float], best: float) -> dict[int, float]:
    return {doc: value / best for doc, value in scores.items()} if best > 0 else {}


def _word_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> dict[int, float]:
    norms = _length_norms(around.window_sums({doc: float(u.length) for doc, u in around.units.items()}))
    scores: dict[int, float] = defaultdict(float)
    for term, weight in question.words.items():
        term_counts = matches.counts.get(term, {})
        counts = around.window_sums({doc: float(count) for doc, count in term_counts.items() if doc in around.units})
        _propagate_turn_terms(counts, around)
        gain = weight * matches.rarity.get(term, 0.0) * (K1 + 1)
        for doc, count in counts.items():
            scores[doc] += gain * count / (count + norms[doc])
    return scores


def _propagate_turn_terms(counts: dict[int, float], around: Neighbourhood) -> None:
    """Messages of a turn whose summary has the term get a part of it, unless they have it themselves."""
    turns = {turn_number(doc): count for doc, count in counts.items() if around.units[doc].is_turn}
    for doc in around.position_in_session if turns else ():
        count = turns.get(turn_number(doc))
        if count and doc not in counts:
            counts[doc] = _TURN_TERM_WEIGHT * count


def _length_norms(lengths: Mapping[int, float]) -> dict[int, float]:
    mean = sum(lengths.values()) / max(1, len(lengths)) or 1.0
    return {doc: K1 * (1 - B + B * length / mean) for doc, length in lengths.items()}


def _prefix_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> dict[int, float]:
    scores: dict[int, float] = defaultdict(float)
    for terms in question.prefixes.items():  # the prefix and the letters themselves, which a short word is stored as
        counts: dict[int, float] = defaultdict(float)
        for term in terms:
            for doc, count in matches.counts.get(term, {}).items():
                if doc in around.units:
                    counts[doc] += count
        rarity = min((matches.rarity[t] for t in terms if t in matches.rarity), default=0.0)
        for doc, count in around.window_sums(counts).items():
            scores[doc] += rarity * count / (count + K1)
    return scores


def _date_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> dict[int, float]:
    """A turn's date holds for all its messages."""
    scores: dict[int, float] = defaultdict(float)
    for term in question.dates:
        docs = matches.counts.get(term, {}).keys()
        turns = {turn_number(doc) for doc in docs if is_turn(doc)}
        for doc in around.units:
            if count := _REFERRED_DATE_WEIGHT if doc in docs and doc in around.position_in_session else float(turn_number(doc) in turns):
                scores[doc] += matches.rarity.get(term, 0.0) * count
    return scores


def _named_day_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> dict[int, float]:
    """1 for all messages of the turns of the days that the question names."""
    turns = {turn_number(doc) for term in question.message_days for doc in matches.counts.get(term, {}) if is_turn(doc)}
    return {doc: 1.0 for doc in around.units if turn_number(doc) in turns}


def _session_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> dict[int, float]:
    """Each session as one document; its score holds for its messages."""
    sessions = list(around.sessions)
    session_of = {doc: number for number, session in enumerate(sessions) for doc in around.sessions[session]}
    norms = _length_norms({number: float(sum(around.units[d].length for d in around.sessions[s])) for number, s in enumerate(sessions)})
    scores: dict[int, float] = defaultdict(float)
    for term, weight in question.words.items():
        counts: dict[int, int] = defaultdict(int)
        for doc, count in matches.counts.get(term, {}).items():
            if doc in session_of:
                counts[session_of[doc]] += count
        rarity = idf(len(sessions), len(counts))
        for number, count in counts.items():
            scores[number] += weight * rarity * count * (K1 + 1) / (count + norms[number])
    return {doc: scores[number] for doc, number in session_of.items() if number in scores}


def _similarity_scores(around: Neighbourhood, cosines: Mapping[int, float]) -> dict[int, float]:
    """How far the cosine of a message, or the mean cosine of its window if that is farther, is above the average of all: any two texts
    about daily life are somewhat alike, so a cosine by itself says little. A message without a vector, or with both below their average,
    has no score."""
    message_cosines = {doc: cosines[doc] for doc in around.position_in_session if doc in cosines}
    weights, sums = around.window_sums(dict.fromkeys(message_cosines, 1.0)), around.window_sums(message_cosines)
    message_scores = _standard_scores(message_cosines)
    window_scores = _standard_scores({doc: sums[doc] / weights[doc] for doc in message_cosines})
    scored = [doc for doc in message_cosines if doc in message_scores or doc in window_scores]
    return {doc: max(message_scores.get(doc, 0.0), window_scores.get(doc, 0.0)) / _FULL_DEVIATIONS for doc in scored}


def _standard_scores(values: Mapping[int, float]) -> dict[int, float]:
    """The values above the mean as standard deviations over it; none where all values are nearly equal."""
    mean = sum(values.values()) / max(1, len(values))
    spread = sqrt(sum((value - mean) ** 2 for value in values.values()) / max(1, len(values)))
    return {doc: (value - mean) / spread for doc, value in values.items() if value > mean} if spread >= _MIN_SPREAD else {}
