"""The order of found messages, by terms, places in a session, dates and speakers.

The message that answers a question is often near one that shares its words, so a message is scored with its neighbours in the session. Each
signal is divided by its greatest value and weighted; the sum is the score. `benchmarks.fit_search` shows how little the weights matter on
conversations that were not used to fit them.

A search ranks several thousand units, so all values are arrays with one column for each unit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pandora_dagster.language.bm25 import idf
from pandora_dagster.retrieval.messages.document_numbers import PLACE_BITS, is_turn, turn_number
from pandora_dagster.retrieval.messages.search_question import SearchQuestion

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
TextArray = npt.NDArray[np.object_]

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
SCORE_DIGITS = 9
"""Decimals of a score: sums of the same numbers in another order differ beyond them, and equal scores must stay equal."""


@dataclass(frozen=True, slots=True, eq=False)
class MessageUnits:
    """Messages, and turns for what they hold besides their messages (summary, tool results), by rising document number."""

    docs: IntArray
    sessions: IntArray
    """A number for each session."""
    speakers: TextArray
    lengths: IntArray
    asks: BoolArray
    """It is a question itself."""
    first_person: BoolArray
    """It is in the first person."""

    def of_speakers(self, speakers: Iterable[str]) -> BoolArray:
        """Which units one of the speakers wrote."""
        found = np.zeros(len(self.docs), dtype=np.bool_)
        for speaker in speakers:
            found |= self.speakers == speaker
        return found


@dataclass(frozen=True, slots=True, eq=False)
class TermMatches:
    """How often each term of a question is in each unit, and each term's idf (`rarity`), where a document of the user has it."""

    terms: Sequence[str]
    counts: FloatArray
    """One row for each term, one column for each unit."""
    rarity: Mapping[str, float]

    def of(self, terms: Iterable[str]) -> FloatArray:
        """The rows of some of the terms."""
        rows = {term: row for row, term in enumerate(self.terms)}
        return self.counts[np.array([rows[term] for term in terms], dtype=np.intp)]


class ScoredMessage(NamedTuple):
    """A document with its score."""

    doc: int
    score: float

    @property
    def number(self) -> int:
        return turn_number(self.doc)

    @property
    def is_turn(self) -> bool:
        return is_turn(self.doc)


class Neighbourhood:
    """Units with the turn of each, and the messages of each session in order."""

    def __init__(self, units: MessageUnits, window: Mapping[int, float]) -> None:
        self.units = units
        self._window = window
        turn_docs = units.docs >> PLACE_BITS << PLACE_BITS
        self._turns = np.searchsorted(units.docs, turn_docs)
        self._has_turn: BoolArray = units.docs[self._turns] == turn_docs
        self.is_message: BoolArray = units.docs != turn_docs
        messages = np.flatnonzero(self.is_message)
        numbers, sessions = np.unique(units.sessions[messages], return_inverse=True)
        order = np.argsort(sessions, kind="stable")
        self.messages, self.sessions, self.session_count = messages[order], sessions[order], len(numbers)
        """The messages' columns by session and number, the session of each, and the number of sessions."""

    def window_sums(self, counts: FloatArray) -> FloatArray:
        """The count of every message plus the weighted counts of its neighbours; a turn has its own count only."""
        own, size = counts[..., self.messages], len(self.messages)
        sums = np.zeros_like(own)
        for distance, weight in self._window.items():
            if abs(distance) < size:
                to = slice(max(0, distance), size + min(0, distance))
                of = slice(max(0, -distance), size - max(0, distance))
                sums[..., to] += weight * own[..., of] * (self.sessions[to] == self.sessions[of])
        totals = counts.copy()
        totals[..., self.messages] = sums
        return totals

    def of_turns(self, values: FloatArray) -> FloatArray:
        """For each unit the value of its turn; 0 where that is no unit."""
        return values[..., self._turns] * self._has_turn


def rank_messages(
    question: SearchQuestion, units: MessageUnits, matches: TermMatches, cosines: Mapping[int, float] = MappingProxyType({})
) -> Iterator[ScoredMessage]:
    """Units that share something with the question, are beside one that does, or are of a speaker whom it names: best first.

    Among equals the longer precedes, then the newer. `cosines`: document -> cosine of its vector with the question's.
    """
    return fuse_signals(units, message_signals(question, units, matches, cosines), question.named_speakers)


def fuse_signals(
    units: MessageUnits,
    signals: Mapping[str, FloatArray],
    named_speakers: Sequence[str] = (),
    weights: Mapping[str, float] = WEIGHTS,
) -> Iterator[ScoredMessage]:
    """The units that a signal finds or a named speaker wrote, by the weighted sum of their signals."""
    totals, matching = np.zeros(len(units.docs)), units.of_speakers(named_speakers)
    for name, scores in signals.items():
        totals += weights[name] * scores
        if name not in ("speaker", "first_person", "asks"):  # these change the order of what matches otherwise
            matching |= scores > 0
    docs, scores = units.docs[matching], np.round(totals[matching], SCORE_DIGITS)
    order = np.lexsort((-docs, -units.lengths[matching], -scores))
    return map(ScoredMessage, docs[order].tolist(), scores[order].tolist())


def message_signals(
    question: SearchQuestion,
    units: MessageUnits,
    matches: TermMatches,
    cosines: Mapping[int, float] = MappingProxyType({}),
    window: Mapping[int, float] = WINDOW,
) -> dict[str, FloatArray]:
    """The signals of `WEIGHTS`: name -> score of each unit, the greatest 1; `similarity` is 1 at `_FULL_DEVIATIONS` deviations."""
    around = Neighbourhood(units, window)
    of_speaker = units.of_speakers((question.speaker,) if question.speaker else ())
    signals = {
        "words": _word_scores(question, around, matches),
        "prefix": _prefix_scores(question, around, matches),
        "date": _date_scores(question, around, matches),
        "turn_on_named_day": np.logical_or.reduce(_turns_of_days(around, matches.of(question.message_days))),
        "session": _session_scores(question, around, matches),
        "asks": units.asks,
        "speaker": of_speaker,
        "first_person": of_speaker & units.first_person,
    }
    return {name: _normalize(scores.astype(np.float64)) for name, scores in signals.items()} | {
        "similarity": _similarity_scores(around, cosines)
    }


def _normalize(scores: FloatArray) -> FloatArray:
    return scores / (scores.max(initial=0.0) or 1.0)


def _word_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> FloatArray:
    """BM25 over windows. A message that lacks a word of its turn's summary gets a part of it."""
    norms = _length_norms(around.window_sums(around.units.lengths.astype(np.float64)))
    counts = around.window_sums(matches.of(question.words))
    counts = np.where(counts > 0, counts, _TURN_TERM_WEIGHT * around.of_turns(counts))
    gains = [weight * matches.rarity.get(term, 0.0) * (K1 + 1) for term, weight in question.words.items()]
    return _weighted_sum(gains, counts / (counts + norms))


def _weighted_sum(weights: Sequence[float], rows: FloatArray) -> FloatArray:
    """Row by row, so that equal columns have equal sums."""
    return (np.array(weights, dtype=np.float64)[:, np.newaxis] * rows).sum(axis=0)


def _length_norms(lengths: FloatArray) -> FloatArray:
    mean = (lengths.mean() if len(lengths) else 0.0) or 1.0
    return K1 * (1 - B + B * lengths / mean)


def _prefix_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> FloatArray:
    scores = np.zeros(len(around.units.docs))
    for terms in question.prefixes.items():  # the prefix and the letters themselves, which a short word is stored as
        counts = around.window_sums(matches.of(terms).sum(axis=0))
        rarity = min((matches.rarity[t] for t in terms if t in matches.rarity), default=0.0)
        scores += rarity * counts / (counts + K1)
    return scores


def _date_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> FloatArray:
    """A turn's date holds for all its messages."""
    found = matches.of(question.dates)
    counts = np.where((found > 0) & around.is_message, _REFERRED_DATE_WEIGHT, _turns_of_days(around, found))
    return _weighted_sum([matches.rarity.get(term, 0.0) for term in question.dates], counts)


def _turns_of_days(around: Neighbourhood, counts: FloatArray) -> BoolArray:
    """Which units are, or belong to, turns of these dates, of which each is a row."""
    return around.of_turns(counts) > 0


def _session_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> FloatArray:
    """Each session as one document; its score holds for its messages."""
    messages, sessions, session_count = around.messages, around.sessions, around.session_count
    norms = _length_norms(np.bincount(sessions, around.units.lengths[messages], session_count).astype(np.float64))
    session_scores = np.zeros(session_count)
    for weight, row in zip(question.words.values(), matches.of(question.words), strict=True):
        counts = np.bincount(sessions, row[messages], session_count)
        rarity = idf(session_count, int(np.count_nonzero(counts)))
        session_scores += weight * rarity * counts * (K1 + 1) / (counts + norms)
    scores = np.zeros(len(around.units.docs))
    scores[messages] = session_scores[sessions]
    return scores


def _similarity_scores(around: Neighbourhood, cosines: Mapping[int, float]) -> FloatArray:
    """How far the cosine of a message, or the mean cosine of its window if that is farther, is above the average of all: any two texts
    about daily life are somewhat alike, so a cosine by itself says little. A message without a vector, or with both below their average,
    has no score."""
    if not cosines:
        return np.zeros(len(around.units.docs))
    docs = around.units.docs.tolist()
    known = np.array([doc in cosines for doc in docs], dtype=np.bool_) & around.is_message
    values = np.array([cosines.get(doc, 0.0) for doc in docs]) * known
    weights, sums = around.window_sums(known.astype(np.float64)), around.window_sums(values)
    means = np.divide(sums, weights, out=np.zeros_like(sums), where=known)
    return np.maximum(_standard_scores(values, known), _standard_scores(means, known)) / _FULL_DEVIATIONS


def _standard_scores(values: FloatArray, known: BoolArray) -> FloatArray:
    """The known values above their mean as standard deviations over it; 0 for others, and where all values are nearly equal."""
    spread = float(values[known].std()) if known.any() else 0.0
    if spread < _MIN_SPREAD:
        return np.zeros_like(values)
    return np.maximum(values - values[known].mean(), 0.0) / spread * known
