"""Claims that say the same with another confidence: of two the surer one is kept (001 section 3). Linear in the text.

Knows three forms in which a claim states its confidence: a JSON object, a row of a table with that column, a line of prose. Equal are
claims of the same words and values in the same order, whatever their source; claims that are as sure as each other both stay.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pandora_dagster.compression.facts import NUMERIC
from pandora_dagster.compression.finding import find_values
from pandora_dagster.compression.json_parts import is_object
from pandora_dagster.compression.language import ARTICLES
from pandora_dagster.compression.normal import key, words
from pandora_dagster.compression.values import canonical

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
