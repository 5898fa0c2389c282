"""Puts back what a condensed text lost: each fact with the words it stood among, in its own section, behind who said it.

Knows facts and their spans; adds nothing that the original does not say.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product

from pandora_dagster.compression.answering import Said, answers, with_answers
from pandora_dagster.compression.dialogue_lines import ALSO, SPEAKER_LINE, is_dialogue, read_lines
from pandora_dagster.compression.facts import LINES, Fact, FactKind, Rank
from pandora_dagster.compression.finding import find_values
from pandora_dagster.compression.language import is_negation
from pandora_dagster.compression.messages import heads, is_transcript
from pandora_dagster.compression.normal import words
from pandora_dagster.compression.telegraph import telegraph
from pandora_dagster.contracts.ports import CountsTokens
from pandora_dagster.text.credentials import redacted

_BEFORE, _AFTER = 60, 30
_SHORTEST_LINE = 4
_SENTENCE = 240
"""Characters of a sentence that may be put back as a whole for the facts in it."""
_OWN_TOKENS = 3
"""What a fact of its own costs beside its words."""
_SIGNS = re.compile(r"[{}\[\]\"\\]+")
_SENTENCE_BORDER = re.compile(r"(?<!\b[A-HJ-Z])[.!?][\"')\]]*\s+|\n")
"""An initial (`J. Smith`) ends nothing."""
_BETWEEN = re.compile(r"(?:,? (?:(?:and|or|to|until|till|from|at|by|per|of) (?:the )?)?| ?[-\u2013/] ?)")
"""What may stand between values that are one: `Friday 6 March, 14:00 to 17:00`."""
_CHAIN = 80
_HEADING = re.compile(r"(#{1,6}) \S.*")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_WORDS_BEFORE, _WORDS_AFTER = 2, 1
_SET_OFF = "\0\n\0"


def restored(body: str, facts: Iterable[Fact], source: str, target: int, counter: CountsTokens) -> str:
    """`body` with what it lacks, as many facts as fit in `target` tokens, in the given order: each below its own heading where that
    stands, and behind its speaker's name; what one speaker said stands on one line. What was taken back or
    moved comes with that, or (unless it is critical) not at all. The query of context.md stands before all else, as it was. Of a body
    without a word they are all there is."""
    origin = _Origin(redacted(source))
    facts = list(facts)
    asked = [fact.text.strip("\n") for fact in facts if fact.kind is FactKind.QUERY]
    made = _Restored(body, origin)
    best = body
    for question in asked:
        if counter.count(whole := f"{question}\n\n{best}".strip("\n")) <= target:
            best = whole
    opening = best.removesuffix(body)
    used = counter.count(best)
    for group in _by_sentence([f for f in facts if f.kind is not FactKind.QUERY], origin):
        if used + _SHORTEST_LINE > target:
            break
        answering = _answering(group[0], body, origin)
        with_less = [answering] if group[0].rank is not Rank.CRITICAL or not answering else [answering, []]
        for text, others in product(_choices(group, origin, counter), with_less):
            if made.add([(text, _place(group[0], origin.text)), *others]):
                tried = f"{opening}{made}"
                if (tokens := counter.count(tried)) <= target:
                    best, used = tried, tokens
                    break
                made.undo()
    return best


def _answering(fact: Fact, body: str, origin: "_Origin") -> list[tuple[str, int]]:
    """What the sentence of a fact misleads without, where it does not stand yet."""
    return [(text, place) for text, place in origin.answers(_place(fact, origin.text)) if not origin.is_said(text, body)]


class _Origin:
    """A text with what tells whose a place in it is: the speaker, or the headings above it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._speakers: list[tuple[int, str]] = []
        if is_transcript(text):
            self._speakers = [(h.start, f"{h.role} {h.tool}".strip()) for h in heads(text)]
        elif is_dialogue(text):
            starts = _line_starts(text)
            shift = text.count("\n") - len(text.split("\n")) + 1
            self._speakers = [(starts[line.number + shift], line.speaker) for line in read_lines(text)]
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

    @cached_property
    def _said(self) -> list[tuple[int, Said]]:
        """Sentences with their places, none of a transcript: it tells by itself what became of what was said."""
        if is_transcript(self.text):
            return []
        ends = [(m.start() + (m.group()[:1] != "\n"), m.end()) for m in _SENTENCE_BORDER.finditer(self.text)]
        starts = [0, *(after for _, after in ends)]
        found: list[tuple[int, Said]] = []
        line = 0
        for start, (end, after) in zip(starts, [*ends, (len(self.text), len(self.text))], strict=True):
            sentence = self.text[start:end]
            opening = SPEAKER_LINE.match(sentence) if self._speakers else None
            spoken = sentence[opening.end() :] if opening else sentence
            if spoken.strip():
                found.append((end - len(spoken), Said(spoken.strip(), line, self.speaker(start))))
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


class _Restored:
    """A body with lines put in; `undo` takes back what was added last."""

    def __init__(self, body: str, origin: _Origin) -> None:
        self._lines = body.split("\n") if body.strip() else []
        self._mark = ALSO if self._lines else ""
        self._origin = origin
        self._known = frozenset(self._lines)
        self._added: list[tuple[str, str, list[str]]] = []
        """Heading, speaker, texts."""
        self._said = ""
        """All the texts, set off."""
        self._last: list[tuple[list[str], str]] = []
        self._laid = self._before = 0, self._lines
        """How many of `_added` are in the lines beside, and the same before the last were added."""

    def add(self, texts: Sequence[tuple[str, int]]) -> bool:
        """Whether the first of some texts, each with its place, was put in, and the others with it; not where it is said already."""
        self._before, self._last = self._laid, []
        for text, place in texts:
            if text and text not in self._said:
                self._add(text, place)
            elif not self._last:
                return False
        return True

    def _add(self, text: str, place: int) -> None:
        heading = next((h for h in self._origin.headings(place) if h in self._known), "") if place >= 0 else ""
        speaker = self._origin.speaker(place) if place >= 0 else ""
        at_hand = next((texts for h, s, texts in self._added if (h, s) == (heading, speaker)), None) if speaker else None
        if at_hand is None:
            at_hand = list[str]()
            self._added.append((heading, speaker, at_hand))
        else:
            self._laid = 0, self._lines
        at_hand.append(text)
        self._said += _SET_OFF + text
        self._last.append((at_hand, text))

    def undo(self) -> None:
        for at_hand, text in reversed(self._last):
            self._said = self._said[: -len(_SET_OFF) - len(text)]
            at_hand.pop()
            if not at_hand:
                self._added.pop()
        self._laid = self._before

    def __str__(self) -> str:
        laid, lines = self._laid[0], list(self._laid[1])
        for heading, speaker, texts in self._added[laid:]:
            line = self._mark + (f"{speaker}: " if speaker else "") + _joined(texts)
            lines.insert(_end_of(heading, lines), line)
        self._laid = len(self._added), lines
        return "\n".join(lines)


def _joined(texts: Sequence[str]) -> str:
    """What one speaker said: whole sentences behind one another, anything else set off."""
    made = ""
    for text in texts:
        made += (" " if made[-1] in ".!?" else "; ") + text if made else text
    return made


def _end_of(heading: str, lines: Sequence[str]) -> int:
    """Where a line goes in: at the end of what stands right below its heading."""
    if not heading:
        return _opening_end(lines)
    at, is_code = lines.index(heading) + 1, False
    while at < len(lines) and (is_code or not _HEADING.fullmatch(lines[at])):
        is_code ^= bool(_FENCE.match(lines[at]))
        at += 1
    while not lines[at - 1].strip():
        at -= 1
    return at


def _opening_end(lines: Sequence[str]) -> int:
    """Where a line goes in that belongs to no heading that stands: below the title, before the next heading; without a title, last."""
    if not lines or not lines[0].startswith("# "):
        return len(lines)
    at = next((n for n, line in enumerate(lines) if n and _HEADING.fullmatch(line)), len(lines))
    while at > 1 and not lines[at - 1].strip():
        at -= 1
    return at


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
        is_code ^= bool(_FENCE.match(line))
        if not is_code and _HEADING.fullmatch(line):
            yield at, line
        at += len(line) + 1


def _by_sentence(facts: Sequence[Fact], origin: _Origin) -> list[list[Fact]]:
    """Facts in their order, those of one sentence together; a value inside a statement that is put back stands with it."""
    groups: dict[tuple[int, int], list[Fact]] = {}
    whole: list[tuple[int, int]] = []
    for fact in facts:
        place = _place(fact, origin.text)
        end = place + len(fact.text)
        if place < 0 or fact.kind in LINES:
            whole += [(place, end)] if place >= 0 else []
            groups[(place, -len(groups) - 1)] = [fact]
        elif not any(start <= place and end <= stop for start, stop in whole):
            groups.setdefault(_bounds(origin.text, place, end), []).append(fact)
    return list(groups.values())


def _bounds(text: str, start: int, end: int) -> tuple[int, int]:
    """The sentence around a place, at most so far as one that is put back."""
    before = list(_SENTENCE_BORDER.finditer(text, max(0, start - _SENTENCE), start))
    after = _SENTENCE_BORDER.search(text, end, min(len(text), end + _SENTENCE))
    first = before[-1].end() if before else max(0, start - _SENTENCE)
    return first, (after.start() + (after.group()[:1] != "\n") if after else min(len(text), end + _SENTENCE))


def _choices(group: Sequence[Fact], origin: _Origin, counter: CountsTokens) -> Iterable[str]:
    """How a sentence's facts can be put back, the best first: the sentence without what it can spare where that costs no more than
    its facts, else these with the words around them."""
    source = origin.text
    snippets = list(dict.fromkeys(snippet(fact, source) for fact in group))
    snippets = [text for text in snippets if not any(text != other and text in other for other in snippets)]
    place = _place(group[0], source)
    if group[0].kind not in LINES and place >= 0:
        start, end = _bounds(source, place, place + len(group[0].text))
        if end - start < _SENTENCE:
            found = [(at - start, at - start + len(f.text)) for f in group if start <= (at := _place(f, source)) < end]
            short = telegraph(_SIGNS.sub(" ", source[start:end]), found)
            most = sum(counter.count(text) + _OWN_TOKENS for text in snippets)
            if all(f.text in short for f in group) and counter.count(short) <= most:
                yield short
    yield "; ".join(snippets)


def snippet(fact: Fact, source: str) -> str:
    """A fact with the words around it, on one line; a sentence as it is."""
    start = _place(fact, source)
    if fact.kind in LINES or start < 0:
        return " ".join(fact.text.split())
    start, end = _chained(source, start, start + len(fact.text))
    before = _SENTENCE_BORDER.split(source[max(0, start - _BEFORE) : start])[-1]
    after = _SENTENCE_BORDER.split(source[end : end + _AFTER])[0]
    ahead = _from_denial(_words(before, cut_first=start > _BEFORE))
    return " ".join((*ahead, source[start:end], *_words(after, cut_first=False)[:_WORDS_AFTER])).strip()


def _chained(source: str, start: int, end: int) -> tuple[int, int]:
    """A value with those that stand in one with it: none is cut from its month, or from the end of its time."""
    first, last = _bounds(source, start, end)
    first, last = max(first, start - _CHAIN), min(last, end + _CHAIN)
    spans = [(first + f.start, first + f.end) for f in find_values(source[first:last], is_redacted=True)]
    for one, other in spans:
        if start <= one < end < other or (one >= end and _BETWEEN.fullmatch(source, end, one)):
            end = other
    for one, other in reversed(spans):
        if one < start < other <= end or (other <= start and _BETWEEN.fullmatch(source, other, start)):
            start = one
    return start, end


def _from_denial(ahead: list[str]) -> list[str]:
    """The last words before a fact; where something is denied in them, all from there on."""
    denied = next((n for n in range(len(ahead) - 1, -1, -1) if is_negation(ahead[n])), len(ahead))
    return ahead[min(denied, max(len(ahead) - _WORDS_BEFORE, 0)) :]


def _place(fact: Fact, source: str) -> int:
    """Where a fact stands: in its span, else (in a later generation of its original) where its text stands first; -1 for nowhere."""
    at = source[fact.start : fact.end].find(fact.text)
    return fact.start + at if at >= 0 else source.find(fact.text)


def _words(text: str, *, cut_first: bool) -> list[str]:
    """Content words of a stretch; a word cut in two at its beginning is left out."""
    plain = _SIGNS.sub(" ", text)
    if cut_first and len(text) == _BEFORE:
        plain = plain.partition(" ")[2]
    return telegraph(plain, ()).split()
