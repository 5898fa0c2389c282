"""Claims that say the same with another confidence: of two the surer one is kept (001 section 3). Linear in the text.

Knows three forms in which a claim states its confidence: a JSON object, a row of a table with that column, a line of prose. Equal are
claims of the same words and values in the same order, whatever their source; claims that are as sure as each other both stay.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from pandora_dagster.compression.facts.canonical_values import canonical
from pandora_dagster.compression.facts.fact_types import NUMERIC
from pandora_dagster.compression.facts.value_finder import find_values
from pandora_dagster.compression.read.json_parts import is_object
from pandora_dagster.compression.read.page_zones import dropped_spans
from pandora_dagster.compression.read.transcript_messages import is_transcript
from pandora_dagster.compression.words.normalization import key, words
from pandora_dagster.compression.words.word_classes import ARTICLES, word_set
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.documents.sections import ContextDocument

# What the extraction of a web page left of its HTML: tags, comments, scripts. Knows markup; knows no facts. Linear in the text.
# Code that a page shows (fences, backticks) is content. An address in a tag is content too (000 section 23: URLs are always
# preserved).

_ELEMENTS = word_set(
    "a abbr address article aside audio b base bdi bdo blockquote body br button canvas caption center cite code col colgroup data dd del "
    "details dfn dialog div dl dt em embed fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i iframe img "
    "input ins kbd label legend li link main map mark menu meta nav noscript object ol optgroup option output p param picture pre progress "
    "q s samp script section select small source span strong style sub summary sup svg table tbody td template textarea tfoot th thead "
    "time title tr track u ul var video wbr"
)
_QUOTED = r"\\?\"[^\"<>\\]*+\\?\"|\\?'[^'<>\\]*+\\?'|[^\s\"'<>\\]++"
_SWITCHES = (
    "allowfullscreen|async|autofocus|autoplay|checked|controls|default|defer|disabled|formnovalidate|hidden|inert|ismap|itemscope|loop|"
    "multiple|muted|nomodule|novalidate|open|playsinline|readonly|required|reversed|selected"
)
_TAG = re.compile(
    rf"(?<!`)<(?:!--|!doctype\b[^<>]*+>|/?(?P<name>[a-z][a-z0-9]{{0,10}})"
    rf"(?:\s++(?:(?:{_SWITCHES})(?=[\s/>])|[\w:@.\-]++\s*+=\s*+(?:{_QUOTED})))*+\s*+/?>)",
    re.IGNORECASE,
)
"""A word without a value is an attribute only where HTML has it: `a <b and c> d` compares."""
_URL = re.compile(r"https?://[^\s\"'<>\\]+")
_FENCE = re.compile(r"^(`{3,})[^\n]*\n.*?(?:^\1|\Z)", re.MULTILINE | re.DOTALL)
_HIDDEN = {"script": "</script>", "style": "</style>"}


def leftovers(text: str) -> Iterator[tuple[int, int]]:
    """Where left-overs stand, as (start, end), in order and without overlap; addresses in tags are no part of them."""
    if "<" not in text:
        return
    fences = [found.span() for found in _FENCE.finditer(text)] if "```" in text else []
    unclosed: set[str] = set()
    at = fence = 0
    while found := _TAG.search(text, at):
        start, at = found.span()
        while fence < len(fences) and fences[fence][1] <= start:
            fence += 1
        if fence < len(fences) and fences[fence][0] <= start:
            at = fences[fence][1]
            continue
        name = (found["name"] or "").lower()
        if name and name not in _ELEMENTS:
            continue
        close = "-->" if found.group() == "<!--" else _HIDDEN.get(name, "") if text[start + 1] != "/" else ""
        if close and (end := _closed(text, at, close, unclosed)) >= 0:
            at = end
            yield start, at
        elif found.group() != "<!--":
            yield from _around_addresses(found)


def _closed(text: str, at: int, close: str, unclosed: set[str]) -> int:
    """One past the next `close`; -1 where there is none, which is looked for once."""
    if close in unclosed:
        return -1
    end = text.find(close, at)
    if end < 0:
        unclosed.add(close)
        return -1
    return end + len(close)


def _around_addresses(tag: re.Match[str]) -> Iterator[tuple[int, int]]:
    at = tag.start()
    for url in _URL.finditer(tag.string, tag.start(), tag.end()):
        yield at, url.start()
        at = url.end()
    yield at, tag.end()


_TEXTS = ("claim", "fact", "finding", "statement")
_OBJECT = re.compile(r"\{[^{}]{1,4000}\}")
_NEXT = re.compile(r"\s*,\s*")
_SHARE = r"(?:0?\.\d{1,4}|[01](?:\.\d{1,4})?|\d{1,3} ?%)"
_STATED = re.compile(
    rf"[,;]?\s{{0,3}}[(\[]?\bconfidence(?: of)?\s{{0,3}}[:=]?\s{{0,3}}({_SHARE})(?![\w.]*\d)[)\]]?"
    rf"|[,;]?\s{{0,3}}[(\[]?\b({_SHARE}) confidence\b[)\]]?",
    re.IGNORECASE,
)
_SOURCE = re.compile(
    r"[,;]?\s{0,3}(?:\(source: [^()\n]*\)|\(?(?:https?://[^\s()]+|(?:\b[\w\-]{1,63}\.)+[a-z]{2,6}(?=\)))\)?|\[\d{1,4}\](?![(\[:]))",
    re.IGNORECASE,
)
_MARK = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_RULER = re.compile(r"^\|[\s:|\-]+\|\s*$")
_BESIDE = frozenset(("confidence", "source", "sources", "url", "link", "site"))
_LONGEST = 1_000
_SHORTEST = 3
"""Words under which a text claims nothing."""


@dataclass(frozen=True, slots=True)
class WeakerClaim:
    """A claim at characters `start` to `end`; `instead` is what the surer one says, `cut` what is taken out with it."""

    start: int
    end: int
    instead: str
    rule: str
    cut: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Claim:
    start: int
    end: int
    said: str
    confidence: float


def weaker_claims(text: str) -> tuple[WeakerClaim, ...]:
    """The claims of a text of which an equal one with more confidence stands in it, in order."""
    if "confidence" not in text.lower():
        return ()
    groups: defaultdict[tuple[str, ...], list[_Claim]] = defaultdict(list)
    for claim in _claims(text):
        if len(said := _said(claim.said)) >= _SHORTEST:
            groups[said].append(claim)
    weaker = {c.start: w for group in groups.values() for c, w in _weaker(group)}
    return tuple(_with_cuts([weaker[start] for start in sorted(weaker)], text))


def _weaker(group: list[_Claim]) -> Iterator[tuple[_Claim, WeakerClaim]]:
    surest = max(group, key=lambda c: c.confidence)
    rule = f"claims: an equal one of confidence {surest.confidence:g} stands"
    for claim in group:
        if claim.confidence < surest.confidence:
            yield claim, WeakerClaim(claim.start, claim.end, surest.said, rule, (claim.start, claim.end))


def _said(text: str) -> tuple[str, ...]:
    """The words of a claim without articles, its numbers in their canonical spelling."""
    said: list[str] = []
    at = 0
    for value in find_values(text, is_redacted=True):
        said += words(text[at : value.start])
        said += [canonical(value.kind, value.text) or value.text] if value.kind in NUMERIC else words(value.text)
        at = value.end
    said += words(text[at:])
    return tuple(word for word in said if word not in ARTICLES)


def _claims(text: str) -> Iterator[_Claim]:
    yield from _of_json(text)
    at, columns, before = 0, [], ""
    for line in text.splitlines(keepends=True):
        end = at + len(line)
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if _RULER.match(line):
                names = [key(cell) for cell in before.strip().strip("|").split("|")]
                columns = names if "confidence" in names else []
            elif columns and len(cells) == len(columns):
                yield from _of_row(cells, columns, at, end)
        else:
            columns = []
            if "{" not in line:
                yield from _of_line(line, at, end)
        at, before = end, line


def _of_json(text: str) -> Iterator[_Claim]:
    for found in _OBJECT.finditer(text):
        if '"confidence"' not in found.group():
            continue
        try:
            value: object = json.loads(found.group())
        except (ValueError, RecursionError):
            continue
        said = next((value[name] for name in _TEXTS if isinstance(value.get(name), str)), "") if is_object(value) else ""
        confidence = _share(str(value.get("confidence"))) if is_object(value) else None
        if said and confidence is not None:
            yield _Claim(found.start(), found.end(), said, confidence)


def _of_row(cells: list[str], columns: list[str], start: int, end: int) -> Iterator[_Claim]:
    confidence = _share(cells[columns.index("confidence")])
    if confidence is not None:
        said = " ".join(cell for cell, name in zip(cells, columns, strict=True) if name not in _BESIDE)
        yield _Claim(start, end, said, confidence)


def _of_line(line: str, start: int, end: int) -> Iterator[_Claim]:
    stated = list(_STATED.finditer(line)) if len(line) <= _LONGEST and "confidence" in line.lower() else []
    if len(stated) == 1 and (confidence := _share(stated[0].group(1) or stated[0].group(2))) is not None:
        said = _SOURCE.sub(" ", line[: stated[0].start()] + " " + line[stated[0].end() :])
        yield _Claim(start, end, _MARK.sub("", said).strip(" .\n"), confidence)


def _share(text: str) -> float | None:
    try:
        value = float(text.removesuffix("%").strip()) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _with_cuts(weaker: list[WeakerClaim], text: str) -> Iterator[WeakerClaim]:
    """What is taken out with each claim, so that a list of JSON stays one: a member goes with the comma behind it, those at the end of
    a list with the comma before the first of them."""
    run = done = -1
    for claim in weaker:
        start, end = claim.start, claim.end
        if text[start] == "{":
            run = run if done == start else _comma_before(text, start)
            following = _NEXT.match(text, end)
            start, end = (start, following.end()) if following else (run, end)
            done = end
        yield replace(claim, cut=(start, end))


def _comma_before(text: str, start: int) -> int:
    """Where the comma before a member stands; the member's own start where it is the first."""
    at = start
    while at and text[at - 1].isspace():
        at -= 1
    return at - 1 if at and text[at - 1] == "," else start


# What of a text may be left out by rule (DECISIONS 5): doubtful zones, left-overs of HTML, the less sure of equal claims. Knows the
# rules and where they hold; what was dropped is told as a verdict that names its rule. Pure, linear in the text.

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
