"""The order of found messages. Knows terms, places in a session, dates and speakers; knows nothing of where they are stored.

What answers a question often stands beside what shares its words, so a message is scored with its neighbours in the session.
Each signal is divided by its greatest value, then weighted. Windows, `K1` and `B` were chosen on the six conversations on which
docs/explanation/performance.md reports; how the other weights were found is not recorded, so take them for chosen there too.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt

from pandora_dagster.retrieval.messages.document_numbers import is_turn, turn_number
from pandora_dagster.retrieval.messages.search_question import SearchQuestion

WINDOW = {0: 1.0, -1: 0.5, 1: 0.4, -2: 0.3, 2: 0.25, -3: 0.15, 3: 0.12}
"""Distance in the session -> how much of a neighbour's words counts as the message's own."""
PREFIX_WINDOW = {0: 1.0, -1: 0.5, 1: 0.3, -2: 0.2, 2: 0.15}
TURN_WORDS = 0.3
"""How much a word of the turn's summary or tool results counts in its messages, where they lack it."""
DATE_WEIGHT, SESSION_WEIGHT, PREFIX_WEIGHT = 1.0, 0.2, 0.1
SPEAKER_WEIGHT, OWN_WORDS_WEIGHT, QUESTION_WEIGHT, TIME_WEIGHT = 0.35, 0.1, -0.1, 0.1
SAID_WEIGHT = 1.5
"""What was said on the very days that the question names stands before what shares all its words."""
RARITY_POWER = 1.2
"""Rare words say more than their idf: they are what a question is about."""
K1, B = 1.2, 0.6
SESSION_K1, SESSION_B = 1.5, 0.5
_DATE_CAP = 1.5


@dataclass(frozen=True, slots=True)
class MessageUnit:
    """One message, or (place 0) what a turn holds besides its messages."""

    doc: int
    session: str
    speaker: str = ""
    length: int = 0
    asks: bool = False
    """It is a question itself."""
    own_words: bool = False
    """It is told in the first person."""
    tells_time: bool = False
    """It says when something was."""

    @property
    def number(self) -> int:
        return turn_number(self.doc)

    @property
    def is_turn(self) -> bool:
        return is_turn(self.doc)


@dataclass(frozen=True, slots=True)
class TermMatches:
    """Where the terms of a question stand: term -> document -> how often. `rarity` is each term's idf."""

    places: Mapping[str, Mapping[int, int]]
    rarity: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Signal:
    """A further view on the same units, e.g. the likeness of their vectors to the question's: document -> score, and its weight."""

    weight: float
    scores: Mapping[int, float]
    full: float | None = None
    """The score that earns the whole weight; None for the greatest of them."""


@dataclass(frozen=True, slots=True)
class ScoredMessage:
    """A unit with its score."""

    unit: MessageUnit
    score: float


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Units by document, the messages of each session in order, and each message's place there."""

    units: Mapping[int, MessageUnit]
    sessions: Mapping[str, Sequence[int]]
    seats: Mapping[int, int] = field(default_factory=dict[int, int])

    @classmethod
    def of(cls, units: Iterable[MessageUnit]) -> "Neighbourhood":
        by_doc = {unit.doc: unit for unit in sorted(units, key=lambda u: u.doc)}
        sessions: dict[str, list[int]] = defaultdict(list)
        seats: dict[int, int] = {}
        for doc, unit in by_doc.items():
            if not unit.is_turn:
                seats[doc] = len(sessions[unit.session])
                sessions[unit.session].append(doc)
        return cls(by_doc, sessions, seats)

    def windowed(self, counts: Mapping[int, float], window: Mapping[int, float]) -> dict[int, float]:
        """Every message's count with its neighbours' lent to it; a turn keeps its own."""
        lent: dict[int, float] = defaultdict(float)
        for doc, count in counts.items():
            seat = self.seats.get(doc)
            if seat is None:
                lent[doc] += count
                continue
            session = self.sessions[self.units[doc].session]
            for distance, weight in window.items():
                if 0 <= (at := seat - distance) < len(session):
                    lent[session[at]] += weight * count
        return lent


def idf(documents: int, holding: int) -> float:
    """How rare a term is among `documents`, `holding` of which have it."""
    return log(1 + (max(documents, holding) - holding + 0.5) / (holding + 0.5))


_DIGITS = 9
"""Of a score: sums of the same numbers in another order differ behind them, and equals must stay equals."""


def rank_messages(
    question: SearchQuestion, units: Sequence[MessageUnit], matches: TermMatches, signals: Sequence[Signal] = ()
) -> tuple[ScoredMessage, ...]:
    """Units that share something with the question, stand beside one that does, or are of a person whom it names: best first.

    Among equals the newer stands first. `signals` are fused in: each is divided by what it calls full, else by its greatest
    value as the others are.
    """
    around = Neighbourhood.of(units)
    parts = (
        Signal(1.0, _word_scores(question, around, matches)),
        Signal(PREFIX_WEIGHT, _prefix_scores(question, around, matches)),
        Signal(DATE_WEIGHT, _date_scores(question, around, matches)),
        Signal(SAID_WEIGHT, _said_scores(question, around, matches)),
        *signals,
    )
    total: dict[int, float] = defaultdict(float)
    for part in parts:
        _add(total, part)
    for session, score in _session_scores(question, around, matches).items():
        for doc in around.sessions[session]:
            total[doc] += SESSION_WEIGHT * score
    found = {doc for doc, value in total.items() if value > 0}
    found |= {doc for doc, unit in around.units.items() if unit.speaker in question.named}
    scored = (ScoredMessage(around.units[doc], round(total.get(doc, 0.0) + _manner(around.units[doc], question), _DIGITS)) for doc in found)
    return tuple(sorted(scored, key=lambda s: (-s.score, -s.unit.doc)))


def _manner(unit: MessageUnit, question: SearchQuestion) -> float:
    value = QUESTION_WEIGHT if unit.asks else 0.0
    if question.asks_when and unit.tells_time:
        value += TIME_WEIGHT
    if question.speaker and unit.speaker == question.speaker:
        value += SPEAKER_WEIGHT + (OWN_WORDS_WEIGHT if unit.own_words else 0.0)
    return value


def _add(total: dict[int, float], part: Signal) -> None:
    best = max(part.scores.values(), default=0.0) if part.full is None else part.full
    if best > 0:
        for doc, value in part.scores.items():
            total[doc] += part.weight * value / best


def _word_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> dict[int, float]:
    lengths = around.windowed({doc: float(u.length) for doc, u in around.units.items()}, WINDOW)
    norms = _norms(lengths, K1, B)
    scores: dict[int, float] = defaultdict(float)
    for term, asked in question.words.items():
        found = matches.places.get(term, {})
        counts = around.windowed({d: float(c) for d, c in found.items() if d in around.units}, WINDOW)
        _lend_turn_words(counts, around)
        gain = asked * matches.rarity.get(term, 0.0) ** RARITY_POWER * (K1 + 1)
        for doc, count in counts.items():
            scores[doc] += gain * count / (count + norms[doc])
    return scores


def _lend_turn_words(counts: dict[int, float], around: Neighbourhood) -> None:
    """Messages of a turn whose summary has the term get a part of it, unless they have it themselves."""
    turns = {turn_number(doc): count for doc, count in counts.items() if around.units[doc].is_turn}
    if not turns:
        return
    for doc in around.seats:
        count = turns.get(turn_number(doc))
        if count and doc not in counts:
            counts[doc] = TURN_WORDS * count


def _norms(lengths: Mapping[int, float], k1: float, b: float) -> dict[int, float]:
    mean = sum(lengths.values()) / max(1, len(lengths)) or 1.0
    return {doc: k1 * (1 - b + b * length / mean) for doc, length in lengths.items()}


def _prefix_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> dict[int, float]:
    scores: dict[int, float] = defaultdict(float)
    for prefix, letters in question.prefixes.items():
        counts: dict[int, float] = defaultdict(float)
        for term in (prefix, letters):
            for doc, count in matches.places.get(term, {}).items():
                if doc in around.units:
                    counts[doc] += count
        rarity = min((matches.rarity[t] for t in (prefix, letters) if t in matches.rarity), default=0.0)
        for doc, count in around.windowed(counts, PREFIX_WINDOW).items():
            scores[doc] += rarity * count / (count + K1)
    return scores


def _date_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> dict[int, float]:
    """A turn's date holds for all its messages; what a message itself points to (`last week`) counts once more."""
    scores: dict[int, float] = defaultdict(float)
    for term in question.dates:
        found = matches.places.get(term, {})
        turns = {turn_number(doc) for doc in found if is_turn(doc)}
        for doc in around.units:
            count = (1.0 if turn_number(doc) in turns else 0.0) + (_DATE_CAP if doc in found and doc in around.seats else 0.0)
            if count:
                scores[doc] += matches.rarity.get(term, 0.0) * min(count, _DATE_CAP)
    return scores


def _said_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> dict[int, float]:
    """1 for all messages of the turns of the days that the question names."""
    turns = {turn_number(doc) for term in question.said for doc in matches.places.get(term, {}) if is_turn(doc)}
    return {doc: 1.0 for doc in around.units if turn_number(doc) in turns}


def _session_scores(question: SearchQuestion, around: Neighbourhood, matches: TermMatches) -> dict[str, float]:
    """Each session as one document, divided by the best."""
    lengths = {s: float(sum(around.units[d].length for d in docs)) for s, docs in around.sessions.items()}
    mean = sum(lengths.values()) / max(1, len(lengths)) or 1.0
    scores: dict[str, float] = defaultdict(float)
    for term, asked in question.words.items():
        counts: dict[str, int] = defaultdict(int)
        for doc, count in matches.places.get(term, {}).items():
            if doc in around.seats:
                counts[around.units[doc].session] += count
        rarity = idf(len(lengths), len(counts))
        for session, count in counts.items():
            norm = SESSION_K1 * (1 - SESSION_B + SESSION_B * lengths[session] / mean)
            scores[session] += asked * rarity * count * (SESSION_K1 + 1) / (count + norm)
    best = max(scores.values(), default=0.0)
    return {session: value / best for session, value in scores.items()} if best else {}


# How like a question messages are by their vectors, as a signal of the ranking. Knows cosines; knows no model. A cosine says little
# by itself: any two texts about daily life are somewhat alike. What counts is how far a message stands out from the others looked
# at, in standard deviations. Less like than the mean counts as nothing; nothing else is taken away.

SIMILARITY_WEIGHT = 1.0
"""As much as the words."""
_FULL = 4.0
"""Standard deviations that earn the whole weight."""


def similarity_signal(units: Sequence[MessageUnit], cosines: Mapping[int, float]) -> Signal:
    """A message stands out as far as itself or its window does, whichever is farther; `cosines`: document -> cosine with the
    question, -1 to 1.

    A message without a vector has no such score. No message has one where nothing stands out.
    """
    around = Neighbourhood.of(units)
    own = {doc: cosines[doc] for doc in around.seats if doc in cosines}
    weights = around.windowed(dict.fromkeys(own, 1.0), WINDOW)
    lent = around.windowed(own, WINDOW)
    alone, window = _standing_out(own), _standing_out({doc: lent[doc] / weights[doc] for doc in own})
    farther = {doc: max(alone.get(doc, 0.0), window.get(doc, 0.0)) for doc in own if doc in alone or doc in window}
    return Signal(SIMILARITY_WEIGHT, farther, _FULL)


def _standing_out(values: Mapping[int, float]) -> dict[int, float]:
    """Standard deviations over the mean, those under it left out."""
    if not values:
        return {}
    mean = sum(values.values()) / len(values)
    spread = sqrt(sum((value - mean) ** 2 for value in values.values()) / len(values))
    if spread < 1e-6:
        return {}
    return {doc: (value - mean) / spread for doc, value in values.items() if value > mean}
