"""What of a text may be left out by rule (DECISIONS 5): doubtful zones, left-overs of HTML, the less sure of equal claims.

Knows the rules and where they hold; what was dropped is told as a verdict that names its rule. Pure, linear in the text.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pandora_dagster.compression.equal_claims import weaker_claims
from pandora_dagster.compression.markup import leftovers
from pandora_dagster.compression.messages import is_transcript
from pandora_dagster.compression.page_zones import dropped_spans
from pandora_dagster.contracts.words import ContentType
from pandora_dagster.text.sections import ContextDocument

HTML_RULE = "html: left-over of an extracted page"
_EXTRACTED = frozenset((ContentType.PAGE_DOC, ContentType.RESEARCH_DOC))
_SECTIONED = frozenset((ContentType.CONTEXT_DOC, ContentType.PRIOR_TURN))


@dataclass(frozen=True, slots=True)
class RuleOmission:
    """Characters `start` to `end` that a rule lets go; `instead` is what has to stand for them, "" where nothing has to."""

    start: int
    end: int
    rule: str
    instead: str = ""


@dataclass(frozen=True)
class Rules:
    """The rules as they bear on one text without credentials."""

    text: str
    content_type: ContentType

    @cached_property
    def markup(self) -> tuple[RuleOmission, ...]:
        found = leftovers(self.text) if self.content_type in _EXTRACTED else ()
        return tuple(RuleOmission(start, end, HTML_RULE) for start, end in found)

    @cached_property
    def plain(self) -> str:
        """The text with its left-overs blanked out: all else stands where it stood."""
        return _replaced(self.text, ((r.start, r.end, " " * (r.end - r.start)) for r in self.markup))

    @cached_property
    def zones(self) -> tuple[RuleOmission, ...]:
        """Zones of a page, and claims, in order of their beginning."""
        zones = dropped_spans(self.plain) if self.content_type is ContentType.PAGE_DOC else ()
        return tuple(sorted((*(RuleOmission(*zone) for zone in zones), *(c for c, _ in self._claims)), key=lambda r: (r.start, -r.end)))

    @cached_property
    def shorter(self) -> str:
        """The text without left-overs and weaker claims; zones of a page are dropped by its own method."""
        cuts = [(r.start, r.end, " ") for r in self.markup] + [(start, end, "") for _, (start, end) in self._claims]
        return _replaced(self.text, sorted(cuts)) if cuts else self.text

    @cached_property
    def _claims(self) -> tuple[tuple[RuleOmission, tuple[int, int]], ...]:
        """Claims that are no words of the query, and of no conversation, in which nobody's words are dropped."""
        if is_transcript(self.plain):
            return ()
        asked = _asked(self.plain) if self.content_type in _SECTIONED else 0
        found = (w for w in weaker_claims(self.plain) if w.start >= asked)
        return tuple((RuleOmission(w.start, w.end, w.rule, w.instead), w.cut) for w in found)


def _asked(text: str) -> int:
    """Where section 0 of context.md ends; 0 where there is none."""
    document = ContextDocument.parse(text)
    at = len(document.preamble)
    for section in document.sections:
        at += len(section.text)
        if section.number == 0:
            return at
    return 0


def _replaced(text: str, cuts: Iterable[tuple[int, int, str]]) -> str:
    """`text` with other characters at the cuts, which come in order; what lies in an earlier one is gone already."""
    parts: list[str] = []
    at = 0
    for start, end, instead in cuts:
        if end > at:
            parts += (text[at : max(start, at)], instead)
            at = end
    return "".join((*parts, text[at:])) if parts else text
