"""Puts back what a condensed text lost: each fact with the words it stood among, in its own section, behind who said it.

Knows facts and their spans; adds nothing that the original does not say.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import product

from pandora_dagster.compression.condense.attribution import FENCE, HEADING, SENTENCE, Origin, bounds
from pandora_dagster.compression.facts.fact_types import LINES, Fact, FactKind, Rank
from pandora_dagster.compression.facts.value_finder import find_values
from pandora_dagster.compression.read.dialogue_lines import ALSO
from pandora_dagster.compression.words.sentence_compression import telegraph
from pandora_dagster.compression.words.word_classes import is_negation
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.redaction.credentials import redact

_BEFORE, _AFTER = 60, 30
_SHORTEST_LINE = 4
_OWN_TOKENS = 3
"""What a fact of its own costs beside its words."""
_SIGNS = re.compile(r"[{}\[\]\"\\]+")
_BETWEEN = re.compile(r"(?:,? (?:(?:and|or|to|until|till|from|at|by|per|of) (?:the )?)?| ?[-\u2013/] ?)")
"""What may stand between values that are one: `Friday 6 March, 14:00 to 17:00`."""
_CHAIN = 80
_WORDS_BEFORE, _WORDS_AFTER = 2, 1
_DENIED = 4
"""Words behind a negation that belong to it."""
_SET_OFF = "\0\n\0"


def restore_facts(body: str, facts: Iterable[Fact], source: str, target: int, counter: TokenMeasure) -> str:
    """`body` with what it lacks, as many facts as fit in `target` tokens, in the given order: each below its own heading where that
    stands, and behind its speaker's name; what one speaker said stands on one line. What was taken back or
    moved comes with that, or (unless it is critical) not at all. The query of context.md stands before all else, as it was. Of a body
    without a word they are all there is."""
    origin = Origin(redact(source))
    facts = list(facts)
    asked = [fact.text.strip("\n") for fact in facts if fact.kind is FactKind.QUERY]
    made = _Restoration(body, origin)
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
            if made.add([(text, origin.place(group[0])), *others]):
                tried = f"{opening}{made}"
                if (tokens := counter.count(tried)) <= target:
                    best, used = tried, tokens
                    break
                made.undo()
    return best


def _answering(fact: Fact, body: str, origin: "Origin") -> list[tuple[str, int]]:
    """What the sentence of a fact misleads without, where it does not stand yet."""
    return [(text, place) for text, place in origin.answers(origin.place(fact)) if not origin.is_said(text, body)]


class _Restoration:
    """A body with lines put in; `undo` takes back what was added last."""

    def __init__(self, body: str, origin: Origin) -> None:
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
        speaker = self._origin.label(place) if place >= 0 else ""
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
    while at < len(lines) and (is_code or not HEADING.fullmatch(lines[at])):
        is_code ^= bool(FENCE.match(lines[at]))
        at += 1
    while not lines[at - 1].strip():
        at -= 1
    return at


def _opening_end(lines: Sequence[str]) -> int:
    """Where a line goes in that belongs to no heading that stands: below the title, before the next heading; without a title, last."""
    if not lines or not lines[0].startswith("# "):
        return len(lines)
    at = next((n for n, line in enumerate(lines) if n and HEADING.fullmatch(line)), len(lines))
    while at > 1 and not lines[at - 1].strip():
        at -= 1
    return at


def _by_sentence(facts: Sequence[Fact], origin: Origin) -> list[list[Fact]]:
    """Facts in their order, those of one sentence together; a value inside a statement that is put back stands with it."""
    groups: dict[tuple[int, int], list[Fact]] = {}
    whole: list[tuple[int, int]] = []
    for fact in facts:
        place = origin.place(fact)
        end = place + len(fact.text)
        if place < 0 or fact.kind in LINES:
            whole += [(place, end)] if place >= 0 else []
            groups[(place, -len(groups) - 1)] = [fact]
        elif not any(start <= place and end <= stop for start, stop in whole):
            groups.setdefault(bounds(origin.plain, place, end), []).append(fact)
    return list(groups.values())


def _choices(group: Sequence[Fact], origin: Origin, counter: TokenMeasure) -> Iterable[str]:
    """How a sentence's facts can be put back, the best first: the sentence without what it can spare where that costs no more than
    its facts, else these with the words around them."""
    source = origin.text
    snippets = list(dict.fromkeys(snippet(fact, origin) for fact in group))
    snippets = [text for text in snippets if not any(text != other and text in other for other in snippets)]
    place = origin.place(group[0])
    if group[0].kind not in LINES and place >= 0:
        start, end = bounds(origin.plain, place, place + len(group[0].text))
        if end - start < SENTENCE:
            found = [(at - start, at - start + len(f.text)) for f in group if start <= (at := origin.place(f)) < end]
            short = telegraph(_SIGNS.sub(" ", source[start:end]), found)
            most = sum(counter.count(text) + _OWN_TOKENS for text in snippets)
            if all(f.text in short for f in group) and counter.count(short) <= most:
                yield short
    yield "; ".join(snippets)


def snippet(fact: Fact, origin: Origin) -> str:
    """A fact with the words around it, on one line; a sentence as it is."""
    start, source = origin.place(fact), origin.text
    if fact.kind in LINES or start < 0:
        return " ".join(fact.text.split())
    start, end = _chained(origin, start, start + len(fact.text))
    first, last = bounds(origin.plain, start, end)
    before, after = source[max(first, start - _BEFORE) : start], source[end : min(last, end + _AFTER)]
    ahead = _from_denial(_words(before, cut_first=first < start - _BEFORE))
    return " ".join((*ahead, source[start:end], *_to_denied(_words(after, cut_first=False)))).strip()


def _chained(origin: Origin, start: int, end: int) -> tuple[int, int]:
    """A value with those that stand in one with it: none is cut from its month, or from the end of its time."""
    source = origin.text
    first, last = bounds(origin.plain, start, end)
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


def _to_denied(behind: list[str]) -> list[str]:
    """The first words behind a fact; where something is denied in them, with what is."""
    denied = next((n for n, word in enumerate(behind[:_WORDS_AFTER]) if is_negation(word)), -1)
    return behind[: max(_WORDS_AFTER, denied + 1 + _DENIED if denied >= 0 else 0)]


def _words(text: str, *, cut_first: bool) -> list[str]:
    """Content words of a stretch; a word cut in two at its beginning is left out."""
    plain = _SIGNS.sub(" ", text)
    if cut_first and len(text) == _BEFORE:
        plain = plain.partition(" ")[2]
    return telegraph(plain, ()).split()
