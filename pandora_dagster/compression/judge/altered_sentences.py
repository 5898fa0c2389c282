"""Sentences that tell again what a sentence of the source tells, with another force, time or name, or in another's mouth.

Knows sentences by the words they share; what stands in the source as it is is only asked for its speaker. Linear in both.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from pandora_dagster.compression.facts.value_finder import FoundValue
from pandora_dagster.compression.judge.candidate import NO_SENTENCES
from pandora_dagster.compression.judge.name_swaps import name_words
from pandora_dagster.compression.judge.near_identical_sentences import SentenceIndex
from pandora_dagster.compression.read.dialogue_lines import ALSO, Line, is_dialogue, read_lines
from pandora_dagster.compression.read.json_rows import LEFT_OUT
from pandora_dagster.compression.read.transcript_messages import is_transcript
from pandora_dagster.compression.words.hinted_patterns import hinted
from pandora_dagster.compression.words.normalization import KeyIndex, key, words
from pandora_dagster.compression.words.word_classes import content_stems, is_negation, sentences, stem

_LEAST, _FEWEST = 0.75, 3
"""Share of its content with which a sentence retells another, and how many words that must be."""
_BACK = 0.4
"""Share of the other's content that it then has."""
_CLOSELY = 0.5
"""The same, where names are left aside."""
_SAID, _LESS = 0.8, 0.3
_COMMON = 300
"""Sentences with a stem at most, for it to lead to them."""
_FORCES = (
    ("must", re.compile(r"\b(?:must|shall|ha(?:ve|s) to|need(?:s)? to|required to|obliged to)\b")),
    ("should", re.compile(r"\b(?:should|ought to|supposed to)\b")),
    ("may", re.compile(r"\b(?:may|might|can|could|allowed to)\b")),
)
_ORDER = (("before", re.compile(r"\b(?:before|until|till)\b", re.I)), ("after", re.compile(r"\b(?:after|since)\b", re.I)))
_TIME = hinted(
    re.compile(
        r"\b(?:yesterday|today|tonight|tomorrow|(?:last|next|this) (?:night|week|weekend|month|quarter|year|summer|winter|spring|"
        r"(?:mon|tues|wednes|thurs|fri|satur|sun)day))\b",
        re.IGNORECASE,
    ),
    "yesterday|today|tonight|tomorrow|last |next |this ",
)
_YEAR = re.compile(r"(?<![\w.,$€£])(?:1[89]|20)\d\d(?![\w,]\d|\w)")
_SPEAKER_HERSELF = re.compile(r"\b(?:I|my|me|mine)\b")
_WORD = re.compile(r"[^\W\d_][\w\-]*")


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    speaker: str
    stems: frozenset[str]
    turn: int = 0
    """Which of the runs of lines of one speaker it is in."""


class SourceSentences:
    """The sentences of a source, by their words."""

    def __init__(self, text: str, values: Iterable[FoundValue], keys: KeyIndex) -> None:
        lines = read_lines(text)
        self._lines = lines
        self._names = name_words(values)
        self._keys = keys
        self._sentences = tuple(_sentences(lines))
        self._is_transcript = is_transcript(text)
        is_talk = is_dialogue(text) or self._is_transcript
        self._speakers = {line.speaker for line in lines if line.speaker and is_talk}
        self._of_turn = {sentence.turn: sentence.speaker for sentence in self._sentences if sentence.speaker} | {0: ""}
        self._with: defaultdict[str, list[int]] = defaultdict(list)
        for number, sentence in enumerate(self._sentences):
            for word in sentence.stems:
                self._with[word].append(number)

    @cached_property
    def _twins(self) -> SentenceIndex:
        return SentenceIndex(whole for line in self._lines for whole in sentences(line.text))

    @cached_property
    def _said(self) -> frozenset[str]:
        """Keys of the speakers' names and of their parts."""
        return frozenset(part for name in self._speakers for part in (key(name), *key(name).split()))

    def changed(self, text: str, values: Iterable[FoundValue]) -> Iterator[tuple[str, str]]:
        """Sentences of `text` that are retold with a change, each with what it is."""
        names = name_words(values) | self._names
        for sentence in _sentences(line for line in _labelled(text) if not line.text.startswith(NO_SENTENCES)):
            if len(sentence.stems) < _FEWEST or "|" in sentence.text:
                continue
            near = self._near(sentence.stems)
            is_attributed = len(self._speakers) > 1 and bool(sentence.speaker)
            reason = self._in_another_mouth(sentence, near) if is_attributed else ""
            if not reason and not self._keys.has(key(sentence.text)):
                reason = _change(sentence, near, names)
            if reason:
                yield sentence.text, reason
        for sentence in self._own_words(text):
            if reason := self._twins.change(sentence):
                yield sentence, reason

    def _own_words(self, text: str) -> Iterator[str]:
        """Sentences of a text that the source does not have as they are."""
        said = (line.text for line in _labelled(text) if "|" not in line.text and not line.text.startswith(NO_SENTENCES))
        said = (line for line in said if not LEFT_OUT.fullmatch(line))
        return (whole for line in said for whole in sentences(line) if not self._keys.has(key(whole)))

    def _near(self, stems: frozenset[str]) -> list[_Sentence]:
        votes = Counter(number for word in stems if len(places := self._with.get(word, ())) <= _COMMON for number in places)
        return [self._sentences[number] for number, votes in votes.most_common(_COMMON) if votes > 1]

    def _in_another_mouth(self, one: _Sentence, near: list[_Sentence]) -> str:
        if self._is_transcript and not _SPEAKER_HERSELF.search(one.text):
            return ""
        turns: defaultdict[tuple[int, bool], set[str]] = defaultdict(set)
        for other in near:
            turns[other.turn, _is_one(one.speaker, self._of_turn[other.turn])] |= one.stems & other.stems
        share = {True: 0.0, False: 0.0}
        for (_, is_own), stems in turns.items():
            share[is_own] = max(share[is_own], len(stems) / len(one.stems))
        if share[False] < _SAID or share[True] > share[False] - _LESS:
            return ""
        if key(one.speaker) in self._said:
            return "somebody else said it"
        return "a speaker that the source does not have" if _SPEAKER_HERSELF.search(one.text) else ""


@lru_cache(4_096)
def _is_one(one: str, other: str) -> bool:
    """Whether two names of speakers are one: alike, or one a part of the other; who is not named may be anyone."""
    mine, theirs = frozenset(key(one).split()), frozenset(key(other).split())
    return not theirs or mine <= theirs or theirs <= mine


def _labelled(text: str) -> Iterator[Line]:
    """The lines of a text; whoever goes on below a speaker's line is not named."""
    rows = frozenset(row.removeprefix(ALSO).strip() for row in text.split("\n"))
    return (replace(line, speaker="") if line.text in rows else line for line in read_lines(text))


def _sentences(lines: Iterable[Line]) -> Iterator[_Sentence]:
    turn, speaker = 0, ""
    for line in lines:
        if line.speaker not in ("", speaker):
            turn, speaker = turn + 1, line.speaker
        for sentence in (part for whole in sentences(line.text) for part in whole.split("; ")):
            yield _Sentence(sentence, line.speaker, frozenset(content_stems(_TIME.without(sentence))), turn)


def _change(one: _Sentence, near: list[_Sentence], names: frozenset[str]) -> str:
    """What is other than in each of the sentences it retells, "" where one of them has it so."""
    named = frozenset(stem(name.lower()) for name in _named(one.text, names))
    unnamed = one.stems - named
    retold = [
        other for other in near if _is_retold(one.stems, other.stems, _BACK) or (named and _is_retold(unnamed, other.stems, _CLOSELY))
    ]
    if not retold:
        return ""
    said = one.text
    forces = _classes(said, _FORCES)
    if not _denies(said) and _is_other(forces, [_classes(o.text, _FORCES) for o in retold if not _denies(o.text)], len(retold)):
        return "another force"
    if _is_other(_classes(said, _ORDER), [_classes(o.text, _ORDER) for o in retold], len(retold)):
        return "another order in time"
    if _is_other(_times(said), [_times(o.text) for o in retold], len(retold)):
        return "another time"
    years = [frozenset(_YEAR.findall(o.text)) for o in retold]
    if _is_other(frozenset(_YEAR.findall(said)), years, len(retold)):
        return "another year"
    plain = frozenset(word for word in unnamed if word.isalpha())
    closely = all(_is_retold(plain, other.stems, _CLOSELY) for other in retold)
    return "another name" if closely and all(_has_other_name(said, other, names) for other in retold) else ""


def _is_retold(one: frozenset[str], other: frozenset[str], back: float) -> bool:
    shared = len(one & other)
    return shared >= _FEWEST and shared >= _LEAST * len(one) and shared >= back * len(other)


def _has_other_name(said: str, theirs: _Sentence, names: frozenset[str]) -> bool:
    """Whether a name stands instead of another; `Mel` is Melanie, and a capital alone makes no name of a word."""
    new = _named(said, names) - _named(theirs.text, names)
    gone = _named(theirs.text, names) - _named(said, names)
    return any(not _has_like(f"{theirs.speaker} {theirs.text}", name) for name in new) and any(not _has_like(said, name) for name in gone)


def _has_like(text: str, name: str) -> bool:
    return any(word.startswith(name.lower()) or name.lower().startswith(word) for word in words(text))


def _is_other(own: frozenset[str], theirs: list[frozenset[str]], number: int) -> bool:
    return bool(own) and len(theirs) == number and all(other and not own & other for other in theirs)


def _classes(text: str, forms: tuple[tuple[str, re.Pattern[str]], ...]) -> frozenset[str]:
    return frozenset(name for name, form in forms if form.search(text))


def _times(text: str) -> frozenset[str]:
    return frozenset(found.lower() for found in _TIME.form.findall(text))


def _denies(text: str) -> bool:
    return any(is_negation(word) for word in text.split())


def _named(text: str, names: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text) if word in names)
