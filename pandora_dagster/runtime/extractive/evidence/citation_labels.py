"""Finds the citation label of a piece of a document."""

import re
from collections.abc import Iterable

from pandora_dagster.contracts.model_calls import Source

_INLINE_LABEL = re.compile(r"(?<!\s)\s*\[(\d{1,4})\](?![(\[:])")
_TURN = re.compile(r"\bturn[ _]0*(\d{1,9})\b", re.IGNORECASE)
_PATHS_BY_HEADING = (
    ("research", "research_cache/"),
    ("visit", "webpage_cache/"),
    ("preference", "preferences"),
    ("preference", "facts"),
    ("preference", "memory"),
    ("forever", "notes/"),
)


class Labels:
    """The labels that may be cited, and how a line, a turn number or a heading leads to one."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.sources = tuple({s.label: s for s in sources}.values())
        self._known = {s.label for s in self.sources}
        self._turns: dict[int, str] = {}
        for source in self.sources:
            found = _TURN.search(source.turn_id or source.path)
            if found:
                self._turns.setdefault(int(found.group(1)), source.label)

    def turn(self, number: int) -> str | None:
        """The label of turn `number`."""
        return self._turns.get(number)

    def rank(self, label: str | None) -> int:
        """The place of a turn's label among the labels of turns: these are numbered in the order in which RETRIEVAL chose."""
        return next((place for place, known in enumerate(self._turns.values()) if known == label), 0)

    def of(self, text: str) -> str | None:
        """The label that `text` names itself: `[n]`, a source's path, or a turn."""
        for label in _INLINE_LABEL.findall(text):
            if label in self._known:
                return label
        named = next((s.label for s in self.sources if s.path in text), None)
        if named:
            return named
        return next((label for n in _TURN.findall(text) if (label := self._turns.get(int(n)))), None)

    def near(self, heading: str) -> str | None:
        """The label of the first source whose place a heading such as `Cached Research Intelligence` speaks of."""
        said = heading.lower()
        places = [place for cue, place in _PATHS_BY_HEADING if cue in said]
        return next((s.label for place in places for s in self.sources if s.path.startswith(place)), None)

    def without(self, text: str) -> str:
        """`text` without the inline `[n]` of known sources."""
        return _INLINE_LABEL.sub(lambda m: "" if m.group(1) in self._known else m.group(0), text).strip()

    @staticmethod
    def unmarked(text: str) -> str:
        """`text` without any `[n]`: inside a quoted turn they lead to that turn's sources, not to these."""
        return _INLINE_LABEL.sub("", text).strip()
