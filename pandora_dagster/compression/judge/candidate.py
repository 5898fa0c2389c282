"""A condensed text made ready for questions: where a key stands, with which words on its line, which equal values there are.

Knows lines, table headers and speakers; knows nothing of ledgers.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from math import ceil

from pandora_dagster.compression.facts.canonical_values import Value, canonical, spelling
from pandora_dagster.compression.facts.fact_types import NUMERIC, FactKind
from pandora_dagster.compression.facts.value_finder import FoundValue, directions, find_values, signs
from pandora_dagster.compression.words.normalization import key, padded, ungrouped, words
from pandora_dagster.compression.words.word_classes import clauses, content_stems, stem
from pandora_dagster.documents.redaction.credentials import redact

NO_SENTENCES = ("#", "also seen: ", "also in ", "call ", "earlier ", "options: ")
"""Beginnings of lines that hold values; a `no` among them is a value."""
_LOOKED_AT = 200
_MANY = 200
"""So many sentences of a line are worth an index."""


class CandidateText:
    """A text whose lines are indexed by their words, credentials left out. A table row is read with its header."""

    def __init__(self, text: str) -> None:
        self.text = redact(text)
        self.lines = self.text.split("\n")
        self.padded = padded(self.text)
        self._places: dict[int, Mapping[str, list[int]]] = {}
        self._split: dict[int, tuple[tuple[str, frozenset[str]], ...]] = {}
        self._keys = [padded(line) for line in self.lines]
        self._lines_with: defaultdict[str, list[int]] = defaultdict(list)
        for number, line in enumerate(self._keys):
            for word in dict.fromkeys(line.split()):
                self._lines_with[word].append(number)

    def lines_of(self, value: str) -> Iterator[int]:
        """Numbers of the lines on which a key stands."""
        parts = value.split(" ")
        rarest = min((self._lines_with.get(part, ()) for part in parts), key=len)
        for number in rarest:
            if len(parts) == 1 or f" {value} " in self._keys[number]:
                yield number

    @cached_property
    def stems(self) -> list[frozenset[str]]:
        """Content stems of each line, those of its table's header among them."""
        found: list[frozenset[str]] = []
        header: frozenset[str] = frozenset()
        for line in self.lines:
            own = frozenset(content_stems(ungrouped(line.replace("_", " "))))
            if line.startswith("#") or (line.startswith("|") and not header):
                header = own
            elif "|" not in line:
                header = frozenset()
            found.append(own | header)
        return found

    @cached_property
    def _lines_with_stem(self) -> dict[str, list[int]]:
        found: defaultdict[str, list[int]] = defaultdict(list)
        for number, stems in enumerate(self.stems):
            for word in stems:
                found[word].append(number)
        return found

    def statements_with(self, wanted: frozenset[str], content: frozenset[str], least: float) -> Iterator[tuple[str, frozenset[str]]]:
        """Sentences on lines with one of the two rarest of the wanted stems, each with its stems; table rows are none. Of a line of
        many sentences those that have all the wanted stems or at least `least` of `content`, and perhaps others."""
        by_rarity = sorted(wanted, key=lambda word: (len(self._lines_with_stem.get(word, ())), word))
        for number in sorted({line for word in by_rarity[:2] for line in self._lines_with_stem.get(word, ())[:_LOOKED_AT]}):
            spoken = self._statements(number)
            yield from spoken if len(spoken) <= _MANY or not content else self._related(number, wanted, content, least)

    def _related(self, number: int, wanted: frozenset[str], content: frozenset[str], least: float) -> Iterator[tuple[str, frozenset[str]]]:
        """What has a share of `content` has one of its rarest stems: the others are too few for the share."""
        if number not in self._places:
            places: defaultdict[str, list[int]] = defaultdict(list)
            for place, (_, stems) in enumerate(self._statements(number)):
                for word in stems:
                    places[word].append(place)
            self._places[number] = places
        with_stem = self._places[number]
        rarest = sorted(content, key=lambda word: (len(with_stem.get(word, ())), word))[: len(content) - ceil(least * len(content)) + 1]
        one = min(wanted, key=lambda word: (len(with_stem.get(word, ())), word))
        for place in sorted({place for word in (*rarest, one) for place in with_stem.get(word, ())}):
            yield self._statements(number)[place]

    def _statements(self, number: int) -> tuple[tuple[str, frozenset[str]], ...]:
        if number not in self._split:
            line = "" if "|" in self.lines[number] else self.lines[number]
            spoken = (sentence for sentence in clauses(line) if sentence)
            self._split[number] = tuple((s, frozenset(stem(word) for word in words(ungrouped(s.replace("_", " "))))) for s in spoken)
        return self._split[number]

    @cached_property
    def values(self) -> tuple[FoundValue, ...]:
        return tuple(find_values(self.text, is_redacted=True))

    @cached_property
    def spelled(self) -> tuple[tuple[Value, FoundValue], ...]:
        """The numeric values, each with its spelling."""
        return tuple((spelling(v.kind, v.text), v) for v in self.values if v.kind in NUMERIC)

    @cached_property
    def equals(self) -> dict[tuple[FactKind, str], FoundValue]:
        """Canonical spelling of every numeric value -> where it stands first."""
        found: dict[tuple[FactKind, str], FoundValue] = {}
        for value in self.values:
            if value.kind in NUMERIC and (spelling := canonical(value.kind, value.text)):
                found.setdefault((value.kind, spelling), value)
        return found

    @cached_property
    def directions(self) -> dict[str, set[int]]:
        return directions(self.text, self.values)

    @cached_property
    def signs(self) -> dict[str, set[bool]]:
        """Key of every numeric value -> whether it stands negative, and whether not."""
        return signs(self.values)

    @cached_property
    def line_starts(self) -> list[int]:
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line) + 1)
        return starts

    def has(self, text: str) -> bool:
        """Whether a text stands as a key, on word borders."""
        return f" {key(text)} " in self.padded
