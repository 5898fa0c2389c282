"""What a condensed text says that its source does not: numbers, names, addresses, and negations turned around.

Knows source and candidate; knows nothing of ranks. Linear in both.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from pandora_dagster.compression.facts.canonical_values import Value, canonical, spelling
from pandora_dagster.compression.facts.fact_types import NUMERIC, Fact, FactKind
from pandora_dagster.compression.facts.quantities import Counts
from pandora_dagster.compression.facts.value_finder import FoundValue, directions, find_values, signs
from pandora_dagster.compression.judge.altered_sentences import SourceSentences
from pandora_dagster.compression.judge.candidate import NO_SENTENCES, CandidateText
from pandora_dagster.compression.read.dialogue_lines import unspoken
from pandora_dagster.compression.read.json_rows import LEFT_OUT
from pandora_dagster.compression.read.value_owners import Owners
from pandora_dagster.compression.words.long_words import LEFT_OUT_WORD
from pandora_dagster.compression.words.normalization import KeyIndex, key, padded, words
from pandora_dagster.compression.words.word_classes import FUNCTION_WORDS, clauses, is_negation, sentences, stem
from pandora_dagster.documents.redaction.credentials import redact

_ESCAPED = re.compile(r"(?<!\\)\\+[nrt\"/]")
"""Line ends and quotes inside JSON strings."""
_CODE = re.compile(r"\d|\b[A-Z]{2,}\b")
"""In what is written like a name and is none: `SEA LAS HAT018`."""
_ESCAPED_QUOTE = re.compile(r"\\+(?=\")\"")
_RANGE = re.compile(r"(\d[\d,.]*)(?: ?(?:-|\u2013|\u2014) ?| (?:to|and|or) )$")
_UNIT_BEHIND = re.compile(r':\s*"?(-?\d[\d.,]*)"?\s*,\s*"[^"]{1,60}"\s*:\s*"([^\W\d_]{1,12}|[$€£¥%])"(?=\s*[,}])')
_DAY_AND_TIME = re.compile(r':\s*"(\d{4}-\d\d-\d\d)"\s*,\s*"[^"]{1,60}"\s*:\s*"(\d\d:\d\d(?::\d\d)?)"(?=\s*[,}])')
_UNIT_BEFORE = re.compile(r':\s*"([^\W\d_]{1,12}|[$€£¥%])"\s*,\s*"[^"]{1,60}"\s*:\s*"?(-?\d[\d.,]*)"?(?=\s*[,}])')
"""A number and its unit as two members of an object, one behind the other: `"amount": 66.29, "currency": "EUR"`."""
_FIGURE = re.compile(r"\d[\d,.]*")
_LONGEST_RANGE = 24
_REACH = 8
_LOOKED_AT, _WIDTH = 200, 3
"""Of passages: how many beginnings are tried, and how many words of the source there may be for one that is left."""
_NEAR, _WIDE = 4, 25
_KNOWN = 16_384
"""Words whose content is remembered: few words are most of a text."""
REFERENCE = "whole text: "
"""Begins the line that leads to the stored original (DECISIONS 4); critical facts never rest on it."""


class SourceIndex:
    """An original, indexed once for any number of candidates; its credentials are left out."""

    def __init__(self, text: str, *, is_redacted: bool = False) -> None:
        self.text = text if is_redacted else redact(text)
        self._spelled: dict[tuple[FactKind, str], str] = {}
        self._latest: tuple[str, CandidateText] | None = None

    def candidate(self, text: str) -> CandidateText:
        """A text made ready for questions; the latest one is remembered."""
        if self._latest is None or self._latest[0] != text:
            self._latest = text, CandidateText(text)
        return self._latest[1]

    def spelling(self, fact: Fact) -> str:
        """The canonical spelling of a fact's value, worked out once for any number of candidates."""
        name = (fact.kind, fact.text)
        if name not in self._spelled:
            self._spelled[name] = canonical(*name)
        return self._spelled[name]

    @cached_property
    def padded(self) -> str:
        return padded(_ESCAPED.sub(" ", self.text))

    @cached_property
    def keys(self) -> KeyIndex:
        return KeyIndex(self.padded)

    @cached_property
    def _spellings(self) -> frozenset[tuple[FactKind, str]]:
        return (
            frozenset(named for named, _ in self.spelled) | frozenset(self._ranges()) | frozenset(self._members()) | self.counts.spellings
        )

    @cached_property
    def counts(self) -> Counts:
        return Counts(self.text)

    def _members(self) -> Iterator[Value]:
        """Values of which an object holds number and unit, or day and time, side by side: a table writes them in one cell."""
        plain = _ESCAPED_QUOTE.sub('"', self.text)
        pairs = {found.groups() for form in (_UNIT_BEHIND, _UNIT_BEFORE, _DAY_AND_TIME) for found in form.finditer(plain)}
        for one, other in pairs:
            for written in (f"{one} {other}", f"{other} {one}"):
                yield from (spelling(v.kind, v.text) for v in find_values(written, is_redacted=True) if v.kind in NUMERIC)

    def _ranges(self) -> Iterator[Value]:
        """The first values of ranges, which bear the unit of the second: `3 to 5 weeks`."""
        for _, value in self.spelled:
            before = _RANGE.search(self.text, max(0, value.start - _LONGEST_RANGE), value.start)
            if before and (digits := _FIGURE.search(value.text)):
                yield spelling(value.kind, value.text[: digits.start()] + before.group(1) + value.text[digits.end() :])

    @cached_property
    def spelled(self) -> tuple[tuple[Value, FoundValue], ...]:
        """The numeric values, each with its spelling."""
        return tuple((spelling(v.kind, v.text), v) for v in self.values if v.kind in NUMERIC)

    @cached_property
    def values(self) -> tuple[FoundValue, ...]:
        return tuple(find_values(self.text, is_redacted=True))

    @cached_property
    def signs(self) -> dict[str, set[bool]]:
        return signs(self.values)

    @cached_property
    def directions(self) -> dict[str, set[int]]:
        return directions(self.text, self.values)

    @cached_property
    def owners(self) -> Owners:
        return Owners(self.text)

    @cached_property
    def told(self) -> SourceSentences:
        return SourceSentences(self.text, self.values, self.keys)

    def has(self, found: FoundValue) -> bool:
        """Whether a value of a candidate stands here: literally, equal, or in order with a few words between."""
        value = key(found.text.removesuffix("'s"))
        parts = value.split()
        if not parts:
            return found.text in self.text
        if found.kind in NUMERIC:
            return spelling(found.kind, found.text) in self._spellings or self._has_number(found.text)
        places = self.keys.places
        if any(part not in places for part in parts):
            return self.counts.has_ordinal(found.text)
        if len(parts) == 1 or self.keys.has(value):
            return True
        return not self._is_mixed(parts) if found.kind is FactKind.NAME else self._in_order(parts)

    def has_row(self, record: str, cell: str) -> bool:
        """Whether a table has a row that names a record and has a cell of just this text."""
        rows = (row for row in self.text.split("\n") if "|" in row)
        return any(f" {record} " in padded(row) and cell in row.strip("| ").replace(" ", "").split("|") for row in rows)

    def _is_mixed(self, parts: list[str]) -> bool:
        """Whether two neighbours are the first name of one and the last name of another."""
        followers, leaders = self._full_names
        pairs = ((a, b) for a, b in pairwise(parts) if a in followers and b in leaders)
        return any(b not in followers[a] and not self.keys.has(f"{a} {b}") for a, b in pairs)

    @cached_property
    def _full_names(self) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
        """What follows a first name, and what goes before a last one."""
        followers: defaultdict[str, set[str]] = defaultdict(set)
        leaders: defaultdict[str, set[str]] = defaultdict(set)
        for value in self.values:
            if (
                value.kind is FactKind.NAME
                and not _CODE.search(value.text)
                and len(parts := key(value.text.removesuffix("'s")).split()) > 1
            ):
                followers[parts[-2]].add(parts[-1])
                leaders[parts[-1]].add(parts[-2])
        return followers, leaders

    def _has_number(self, text: str) -> bool:
        """Whether a value stands as written, and is no part of a longer number: `5 %` is not in `4.5 %`."""
        return bool(re.search(rf"(?<!\d)(?<!\d[.,]){re.escape(text)}(?!\d|[.,]\d)", self.text, re.IGNORECASE))

    def _in_order(self, parts: list[str]) -> bool:
        places = self.keys.places
        rare = min(range(len(parts)), key=lambda i: len(places[parts[i]]))
        for place in places[parts[rare]][:200]:
            window = iter(self.keys.words[max(0, place - _REACH * rare) : place + _REACH * (len(parts) - rare)])
            if all(part in window for part in parts):
                return True
        return False

    def passages(self, parts: Sequence[str]) -> Iterator[str]:
        """The passages that have all of `parts` in order, from the first to the last, with no more left out than shortening leaves out."""
        for place in self.keys.places.get(parts[0], ())[:_LOOKED_AT] if parts else ():
            window = enumerate(self.keys.words[place : place + _WIDTH * len(parts)], place + 1)
            ends = [next((end for end, word in window if word == part), 0) for part in parts]
            if all(ends):
                yield " ".join(self.keys.words[place : ends[-1]])

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(stem(word) for word in words(self.text))

    @cached_property
    def denied(self) -> frozenset[frozenset[str]]:
        """Content of the sentences that deny something and are nowhere said without."""
        said: dict[bool, set[frozenset[str]]] = {True: set(), False: set()}
        for sentence in self._sentences:
            said[_denies(sentence)].add(_content(sentence))
        return frozenset(content for content in said[True] - said[False] if content)

    @cached_property
    def polarity(self) -> "Polarity":
        return Polarity.of(self._sentences, _WIDE)

    @cached_property
    def _sentences(self) -> list[str]:
        return sentences(self.text)


@dataclass(frozen=True, slots=True)
class Polarity:
    """Stems near a negation, and word pairs right behind one and elsewhere."""

    near: frozenset[str]
    negated: frozenset[tuple[str, str]]
    plain: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, said: Iterable[str], reach: int) -> "Polarity":
        """`reach` is how many words a negation bears on."""
        near: set[str] = set()
        negated: set[tuple[str, str]] = set()
        plain: set[tuple[str, str]] = set()
        for sentence in said:
            _read(sentence, reach, near, negated, plain)
        return cls(frozenset(near), frozenset(negated), frozenset(plain))


def _read(sentence: str, reach: int, near: set[str], negated: set[tuple[str, str]], plain: set[tuple[str, str]]) -> None:
    since = scope = reach
    before = ""
    for raw in sentence.split():
        if is_negation(raw):
            if not _is_answer(raw):
                since, scope, before = 0, 0, ""
            continue
        since, scope = since + 1, scope + 1
        for stemmed in _content_of(raw):
            if since <= reach:
                near.add(stemmed)
            if before:
                (negated if scope <= _NEAR else plain).add((before, stemmed))
            before = stemmed
        if raw[-1] in ".,;:!?":
            scope = _NEAR
            since = since if raw[-1] == "," and reach > _NEAR else reach


@lru_cache(_KNOWN)
def _content_of(raw: str) -> tuple[str, ...]:
    """Stems of content in what stands between two blanks."""
    return () if is_negation(raw) else tuple(stem(word) for word in words(raw) if word not in FUNCTION_WORDS)


def _denies(sentence: str) -> bool:
    return any(is_negation(word) for word in sentence.split())


def _content(sentence: str) -> frozenset[str]:
    return frozenset(word for raw in unspoken(sentence).split() for word in _content_of(raw))


def _line_around(found: FoundValue, text: str) -> str:
    end = text.find("\n", found.end)
    return text[text.rfind("\n", 0, found.start) + 1 : end if end >= 0 else len(text)]


def _is_label(found: FoundValue, text: str) -> bool:
    """Whether a name is the mark of a speaker: `JA: ...` at a line's beginning, `JA=James` in the legend."""
    begins = found.start == 0 or text[found.start - 1] == "\n" or text[found.start - 2 : found.start] == "; "
    return begins and text[found.end : found.end + 1] in (":", "=")


def _is_answer(word: str) -> bool:
    """Whether a `no` stands for itself (`No,` or `Insurance: No`) and denies nothing behind it."""
    return word.lower().strip("*_\"'") in ("no,", "no.", "no;", "no:", "no!") or word.strip("*_") == "No"


def invented_values(candidate: CandidateText, source: SourceIndex, known: frozenset[str], reference: str = "") -> Iterator[FoundValue]:
    """Values of the candidate that the source does not have. `known` are keys of the ledger, `reference` is the line that
    leads to the stored original, "" where there is none."""
    seen: set[str] = set()
    left_out = {mark.start() + 1 for mark in LEFT_OUT_WORD.finditer(candidate.text)}
    for found in candidate.values:
        value = key(found.text)
        if value in seen or value in known:
            continue
        seen.add(value)
        if found.kind is FactKind.NAME and _is_label(found, candidate.text):
            continue
        if found.start in left_out or LEFT_OUT.fullmatch(_line_around(found, candidate.text)):
            continue
        if reference and key(found.text) in key(reference) and _line_around(found, candidate.text) == reference:
            continue
        if not source.has(found):
            yield found


def flipped(candidate: CandidateText, source: SourceIndex) -> Iterator[str]:
    """Sentences of the candidate that deny what the source says, or say what it denies."""
    theirs, theirs_denied = source.polarity, source.denied
    for line in candidate.lines:
        holds_values = "|" in line or line.startswith(NO_SENTENCES)
        plain = next((line.removeprefix(mark) for mark in (*NO_SENTENCES, REFERENCE) if line.startswith(mark)), line)
        for sentence in clauses(plain, at_bars=holds_values):
            own = Polarity.of(sentences(sentence), _NEAR)
            lost = {pair for pair in own.plain if pair in theirs.negated and pair not in theirs.plain}
            added = own.near and not own.near & theirs.near and not (holds_values and _is_listed(sentence))
            content = _content(sentence)
            turned = len(content) > holds_values and not _denies(sentence) and content in theirs_denied
            if (lost or added or turned or (holds_values and "|" not in line and _unheld(sentence, source))) and not source.keys.has(
                key(sentence)
            ):
                yield sentence.strip()


def _unheld(sentence: str, source: SourceIndex) -> bool:
    """Whether a list of values has a `no` where the source has a `yes`: next to its name, and in no row of the record."""
    parts = (part for part in re.split(r"[;,:]\s", sentence) if _denies(part) and _is_listed(part))
    names = ((key(part), key(part).rpartition(" ")[0]) for part in parts)
    turned = [said for said, name in names if name and not source.keys.has(said) and source.keys.has(f"{name} yes")]
    return bool(turned) and not source.has_row(key(sentence.partition(":")[0]), "no")


def _is_listed(sentence: str) -> bool:
    """Whether the denials among values are values themselves: `insurance no`."""
    return all(word.lower().strip(".,;:!?") in ("no", "none") for word in sentence.split() if is_negation(word))
