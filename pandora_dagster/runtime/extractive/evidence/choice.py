"""Which passages an answer may quote, and which of them it quotes: the best one and others close behind it."""

import re
from collections.abc import Sequence

from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.language.cues import Cue, cues
from pandora_dagster.runtime.extractive.evidence.passage_ranking import Vocabulary, rank
from pandora_dagster.runtime.extractive.evidence.questions import Question
from pandora_dagster.runtime.extractive.evidence.quotes import OVER
from pandora_dagster.runtime.extractive.evidence.source_passages import Passage
from pandora_dagster.runtime.extractive.words.empty_texts import asks, repeats, says_nothing
from pandora_dagster.runtime.extractive.words.query_intent import asks_of_asking

CLOSE = 2.0
"""Log odds behind the best passage up to which another is shown."""
_CORRECTING = 1.5
"""The same for a later passage that corrects the best one."""
_SHARED = 0.6
_LEAST_HELD = 0.15
"""Share of what is asked that the best source must hold, in the measure of how rare its words are."""
_SAME = 0.8
_WORD = re.compile(r"\w+")
_FIGURES = re.compile(r"\d+(?:[.,:]\d+)*")
_FRAME_WORDS = 4
"""A list mark, a date, a name, a citation."""


def evidence(passages: Sequence[Passage], asked: Question) -> list[tuple[float, Passage]]:
    """The passages that may answer, best first with their log odds; () where no source holds what is asked.

    Questions answer only who asks for questions; what repeats the question or says nothing is no answer. Equal texts are kept once,
    as the oldest turn says them.
    """
    kept = [p for p in passages if not (repeats(p.text, asked.text) or says_nothing(p.text))]
    if not asks_of_asking(asked.text):
        kept = [p for p in kept if not asks(p.text)]
    if not asked.days and not holds(kept, asked):
        return []
    first: dict[str, tuple[float, Passage]] = {}
    for score, passage in rank(kept, asked):
        top, known = first.setdefault(passage.text, (score, passage))
        first[passage.text] = (top, _older(known, passage))
    return _corrected(list(first.values()), asked)


def holds(passages: Sequence[Passage], asked: Question) -> bool:
    """Whether any source holds enough of what is asked."""
    vocabulary = Vocabulary(passages, asked.keys())
    held: dict[str, set[str]] = {}
    for p in passages:
        held.setdefault(p.source, set()).update(p.keys, p.above)
    return any(vocabulary.held(frozenset(keys)) >= _LEAST_HELD for keys in held.values())


def _older(one: Passage, other: Passage) -> Passage:
    return other if other.turn is not None and one.turn is not None and other.turn < one.turn else one


def _corrected(ranked: list[tuple[float, Passage]], asked: Question) -> list[tuple[float, Passage]]:
    """The ranking with a close later passage of the same matter that corrects the best one before it."""
    if not ranked:
        return ranked
    top, best = ranked[0]
    wanted = asked.keys((best.language,)).intersection(best.keys)
    later = [
        (score, p)
        for score, p in ranked[1:]
        if top - score <= _CORRECTING
        and (p.turn or 0, p.place) > (best.turn or 0, best.place)
        and len(wanted.intersection(p.keys)) >= _SHARED * max(1, len(wanted))
        and Cue.CORRECTION in cues(p.text, p.language)
    ]
    if not later:
        return ranked
    newest = max(later, key=lambda pair: (pair[1].turn or 0, pair[1].place))
    return [(top, newest[1]), *(pair for pair in ranked if pair[1] is not newest[1])]


def closest(ranked: Sequence[tuple[float, Passage]], asked: Question, *, most: int) -> list[tuple[float, Passage]]:
    """The best passage and at most `most` - 1 others: those close behind it, and those that hold something asked that no better one
    holds. None repeats another."""
    chosen: list[tuple[float, Passage]] = []
    held: set[str] = set()
    for score, passage in ranked:
        adds = asked.keys((passage.language,)).intersection(passage.keys) - held
        if len(chosen) == most:
            break
        if (score >= ranked[0][0] - CLOSE or adds) and not any(_repeats(passage, known) for _, known in chosen):
            chosen.append((score, passage))
            held |= adds
    return chosen


def within(passages: Sequence[Passage], words: int) -> list[Passage]:
    """The first passages of at most `words` words, at least one; what no longer holds comes last."""
    chosen: list[Passage] = []
    used = 0
    for passage in sorted(passages, key=lambda p: p.date.endswith(OVER)):
        size = len(passage.text.split()) + _FRAME_WORDS
        if chosen and used + size > words:
            continue
        chosen.append(passage)
        used += size
    return chosen


def _repeats(one: Passage, known: Passage) -> bool:
    """Whether a passage says in nearly the same words what a known one says: each of its figures is in that one."""
    if one.kind is UnitKind.CODE:
        return False
    own, other = set(_WORD.findall(one.text.lower())), set(_WORD.findall(known.text.lower()))
    same = set(_FIGURES.findall(one.text)) <= set(_FIGURES.findall(known.text))
    return same and len(own & other) >= _SAME * len(own)
