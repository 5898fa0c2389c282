"""Which passages an answer may quote, and which of them it quotes: the best one and others close behind it."""

import re
from collections.abc import Sequence

from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.language.quantities import quantities
from pandora_dagster.runtime.extractive.evidence.passage_ranking import Vocabulary, rank_passages
from pandora_dagster.runtime.extractive.evidence.questions import Question
from pandora_dagster.runtime.extractive.evidence.quotes import OUTDATED_MARK
from pandora_dagster.runtime.extractive.evidence.source_passages import Passage
from pandora_dagster.runtime.extractive.queries.content_words import STOP_WORDS, content_keys
from pandora_dagster.runtime.extractive.queries.empty_texts import is_fixed_sentence, is_question_or_request, repeats_question
from pandora_dagster.runtime.extractive.queries.query_intent import asks_about_questions, is_thanks
from pandora_dagster.runtime.extractive.queries.query_pronouns import find_pointer

_MAX_GAP = 6.0
"""Log odds behind the best passage up to which another is shown; the answer has no more than its number of words anyway."""
_MIN_HELD_SHARE = 0.15
"""Share of what is asked that the best source must hold, in the measure of how rare its words are."""
_REPEATED_SHARE = 0.8
_WORD = re.compile(r"\w+")
_LAST_WORD = re.compile(r"(?<![^\W\d_])([^\W\d_]{2,}) $")
_FIGURES = re.compile(r"\d+(?:[.,:]\d+)*")
_MAX_NAME_CHARACTERS = 40
_FRAME_WORDS = 4
"""A list mark, a date, a name, a citation."""


def rank_evidence(passages: Sequence[Passage], asked: Question) -> list[tuple[float, Passage]]:
    """The passages that may answer, best first with their log odds; [] where no source holds what is asked."""
    kept = informative_passages(passages, asked)
    if not asked.days and not is_subject_held(kept, asked):
        return []
    if find_pointer(asked.text):
        kept = [p for p in kept if _is_about_question(p, asked)]
    return rank_passages(kept, asked)


def informative_passages(passages: Sequence[Passage], asked: Question) -> list[Passage]:
    """Those that tell something: what repeats the question, thanks or greets does not. Questions answer only who asks for questions."""
    asked_numbers = _numbers_by_name(asked.text)
    kept = [p for p in passages if not (repeats_question(p.text, asked.text) or is_fixed_sentence(p.text) or is_thanks(p.text))]
    kept = [p for p in kept if not asked_numbers or not _has_other_number(_numbers_by_name(p.text), asked_numbers)]
    return kept if asks_about_questions(asked.text) else [p for p in kept if not is_question_or_request(p.text)]


def _numbers_by_name(text: str) -> dict[str, set[str]]:
    """Name -> the numbers that follow it as part of it: `LOQ 15`, `room 7`. A number with a unit is none."""
    found: dict[str, set[str]] = {}
    for value in quantities(text):
        name = _LAST_WORD.search(text[max(0, value.start - _MAX_NAME_CHARACTERS) : value.start])
        if name and not value.unit and name[1].lower() not in STOP_WORDS:
            found.setdefault(name[1].lower(), set()).add(value.number)
    return found


def _has_other_number(said: dict[str, set[str]], asked: dict[str, set[str]]) -> bool:
    """Whether a passage says another number of a name that the question numbers, and not that one: LOQ 15 is no LOQ 17."""
    return any(name in said and said[name].isdisjoint(numbers) for name, numbers in asked.items())


def _is_about_question(passage: Passage, asked: Question) -> bool:
    """Whether a passage has to do with what is asked of a thing, not only with that thing."""
    own = content_keys(asked.text, passage.language or asked.language, asking=True)
    return not own or not set(own).isdisjoint(passage.keys) or asked.is_value(passage.text)


def is_subject_held(passages: Sequence[Passage], asked: Question) -> bool:
    """Whether any source holds enough of what is asked."""
    vocabulary = Vocabulary(passages, asked.keys())
    keys_by_source: dict[str, set[str]] = {}
    for p in passages:
        keys_by_source.setdefault(p.source, set()).update(p.keys, p.above)
    return any(vocabulary.held(frozenset(keys)) >= _MIN_HELD_SHARE for keys in keys_by_source.values())


def choose_closest(ranked: Sequence[tuple[float, Passage]], asked: Question, *, most: int) -> list[tuple[float, Passage]]:
    """The best passage and at most `most` - 1 others: those close behind it, and those that hold something asked that no better one
    holds. None repeats another."""
    chosen: list[tuple[float, Passage]] = []
    shown_keys: set[str] = set()
    for score, passage in ranked:
        added_keys = asked.keys((passage.language,)).intersection(passage.keys) - shown_keys
        if len(chosen) == most:
            break
        if (score >= ranked[0][0] - _MAX_GAP or added_keys) and not any(_repeats(passage, known) for _, known in chosen):
            chosen.append((score, passage))
            shown_keys |= added_keys
    return chosen


def limit_words(passages: Sequence[Passage], words: int) -> list[Passage]:
    """The first passages of at most `words` words, at least one; what no longer holds comes last."""
    chosen: list[Passage] = []
    used_words = 0
    for passage in sorted(passages, key=lambda p: p.date.endswith(OUTDATED_MARK)):
        passage_words = len(passage.text.split()) + _FRAME_WORDS
        if chosen and used_words + passage_words > words:
            continue
        chosen.append(passage)
        used_words += passage_words
    return chosen


def _repeats(one: Passage, known: Passage) -> bool:
    """Whether a passage says in nearly the same words what a known one says: each of its figures is in that one."""
    if one.kind is UnitKind.CODE:
        return one.text == known.text
    words, known_words = set(_WORD.findall(one.text.lower())), set(_WORD.findall(known.text.lower()))
    has_same_figures = set(_FIGURES.findall(one.text)) <= set(_FIGURES.findall(known.text))
    return has_same_figures and len(words & known_words) >= _REPEATED_SHARE * len(words)
