"""A text with what tells whose a place in it is: speakers, headings, sentences, and what takes a sentence back. Pure."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from pandora_dagster.compression.facts.fact_types import LINES, Fact
from pandora_dagster.compression.facts.retractions import SpokenSentence, answers, with_answers
from pandora_dagster.compression.read.dialogue_lines import SPEAKER_LINE, is_dialogue, read_lines
from pandora_dagster.compression.read.transcript_messages import heads, is_transcript
from pandora_dagster.compression.words.normalization import words
from pandora_dagster.compression.words.sentence_compression import telegraph
from pandora_dagster.language.sentences import mask_inner_points

SENTENCE = 240
"""Characters of a sentence that may be put back as a whole for the facts in it."""
_SENTENCE_BORDER = re.compile(r"(?<!\b[A-HJ-Z])[.!?][\"')\]]*\s+|\n")
"""An initial (`J. Smith`) ends nothing."""
HEADING = re.compile(r"(#{1,6}) \S.*")
FENCE = re.compile(r"\s*(?:```|~~~)")


class Origin:
    """A text with what tells whose a place in it is: the speaker, or the headings above it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._speakers: list[tuple[int, str]] = []
        self._labels: list[str] = []
        """Of each speaker's place, what stands before the words: the name, and the time where it is told with it."""
        self._asked: list[tuple[int, int]] = []
        """Where a person's messages stand in a transcript."""
        marks: list[tuple[int, int]] = []
        if is_transcript(text):
            found = heads(text)
            self._speakers = [(h.start, f"{h.role} {h.tool}".strip()) for h in found]
            self._labels = [label for _, label in self._speakers]
            ends = [*(h.start for h in found[1:]), len(text)]
            self._asked = [(h.end, end) for h, end in zip(found, ends, strict=True) if h.role == "user"]
            marks = [(h.start, h.end) for h in found]
        elif is_dialogue(text):
            starts = _line_starts(text)
            lines = read_lines(text)
            self._speakers = [(starts[line.number], line.speaker) for line in lines]
            self._labels = [line.opening.rstrip(" :") if line.is_stamped else line.speaker for line in lines]
            rows = text.split("\n")
            marks = [(starts[n], starts[n] + mark.end()) for n in (line.number for line in lines) if (mark := SPEAKER_LINE.match(rows[n]))]
        self.plain = _blanked(mask_inner_points(text), marks)
        """The text, of the same length, with line breaks for the speakers' names, and points only where a sentence may end."""
        self._headings = list(_headings(text))
        self._above: list[int] = []
        """Of each heading the one that it stands under, -1 for none."""
        for number, (_, line) in enumerate(self._headings):
            above = number - 1
            while above >= 0 and _level(self._headings[above][1]) >= _level(line):
                above = self._above[above]
            self._above.append(above)

    def speaker(self, place: int) -> str:
        at = bisect_right(self._speakers, place, key=lambda found: found[0])
        return self._speakers[at - 1][1] if at else ""

    def label(self, place: int) -> str:
        at = bisect_right(self._speakers, place, key=lambda found: found[0])
        return self._labels[at - 1] if at else ""

    def place(self, fact: Fact) -> int:
        """Where a fact stands; a value that others named first and a person then too, where the person did so last."""
        found = _place(fact, self.text)
        if fact.kind not in LINES and self._asked and not self.speaker(found).startswith("user"):
            for start, end in reversed(self._asked):
                if (at := self.text.rfind(fact.text, start, end)) >= 0:
                    return at
        return found

    @cached_property
    def _said(self) -> list[tuple[int, SpokenSentence]]:
        """Sentences with their places, none of a transcript: it tells by itself what became of what was said."""
        if is_transcript(self.text):
            return []
        ends = [(m.start() + (m.group()[:1] != "\n"), m.end()) for m in _SENTENCE_BORDER.finditer(self.plain)]
        starts = [0, *(after for _, after in ends)]
        found: list[tuple[int, SpokenSentence]] = []
        line = 0
        for start, (end, after) in zip(starts, [*ends, (len(self.text), len(self.text))], strict=True):
            sentence = self.text[start:end]
            if sentence.strip():
                found.append((start, SpokenSentence(sentence.strip(), line, self.speaker(start))))
            line += self.text.count("\n", start, after)
        return found

    @cached_property
    def _answers(self) -> Mapping[int, Sequence[int]]:
        return answers([said for _, said in self._said])

    def answers(self, place: int) -> list[tuple[str, int]]:
        """The sentences, with their places, that the one at a place misleads without, in their order."""
        at = bisect_right(self._said, place, key=lambda found: found[0]) - 1
        if place < 0 or at not in self._answers:
            return []
        return [(self._said[n][1].text, self._said[n][0]) for n in sorted(with_answers([at], self._answers)) if n != at]

    def is_said(self, sentence: str, body: str) -> bool:
        """Whether a line of a body has all words that a sentence needs."""
        needed = set(words(telegraph(sentence, ())))
        return any(needed <= set(words(line)) for line in body.split("\n"))

    def headings(self, place: int) -> list[str]:
        """The headings a place stands under, the nearest first."""
        found: list[str] = []
        at = bisect_right(self._headings, place, key=lambda heading: heading[0]) - 1
        while at >= 0:
            found.append(self._headings[at][1])
            at = self._above[at]
        return found


def bounds(text: str, start: int, end: int) -> tuple[int, int]:
    """The sentence around a place, at most so far as one that is put back."""
    before = list(_SENTENCE_BORDER.finditer(text, max(0, start - SENTENCE), start))
    after = _SENTENCE_BORDER.search(text, end, min(len(text), end + SENTENCE))
    first = before[-1].end() if before else max(0, start - SENTENCE)
    return first, (after.start() + (after.group()[:1] != "\n") if after else min(len(text), end + SENTENCE))


def _level(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _headings(text: str) -> Iterable[tuple[int, str]]:
    at, is_code = 0, False
    for line in text.split("\n"):
        is_code ^= bool(FENCE.match(line))
        if not is_code and HEADING.fullmatch(line):
            yield at, line
        at += len(line) + 1


def _blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """A text with a line break for each sign of some spans in order."""
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += (text[at:start], "\n" * (end - start))
        at = end
    return "".join((*parts, text[at:]))


def _place(fact: Fact, source: str) -> int:
    """Where a fact stands: in its span, else (in a later generation of its original) where its text stands first; -1 for nowhere."""
    at = source[fact.start : fact.end].find(fact.text)
    return fact.start + at if at >= 0 else source.find(fact.text)
