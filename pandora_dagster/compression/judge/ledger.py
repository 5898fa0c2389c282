"""Takes the ledger of a text: every fact with its span, subject and rank, before anything is compressed.

Knows the policy of ranks per zone; credentials never enter. Pure, linear in the text.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property

from pandora_dagster.compression.facts.fact_statements import Statement, statements
from pandora_dagster.compression.facts.fact_types import NUMERIC, Fact, FactKind, Ledger, Rank
from pandora_dagster.compression.facts.value_finder import FoundValue, bare, find_values
from pandora_dagster.compression.judge.grounding import SourceIndex
from pandora_dagster.compression.read.dialogue_lines import is_dialogue, speakers_of
from pandora_dagster.compression.read.json_rows import LEFT_OUT
from pandora_dagster.compression.read.mail_threads import head_spans
from pandora_dagster.compression.read.omission_rules import RuleOmission, Rules
from pandora_dagster.compression.read.text_zones import Zone, ZoneKind, zones
from pandora_dagster.compression.read.transcript_messages import is_transcript
from pandora_dagster.compression.words.normalization import key, ungrouped
from pandora_dagster.compression.words.word_classes import OPENERS, content_stems
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.language.sentences import mask_inner_points

_PAIR = re.compile(
    r'"((?:[^"\\\n]|\\.){1,80})"\s*:\s*(?:"((?:[^"\\]|\\.)*+)"|(-?\d[\d.eE+\-]*))|"((?:[^"\\]|\\.)*+)"|(?<=[\[, ])(-?\d[\d.]*)(?=[,\]])'
)
_META_BEGINS, _META_ENDS = re.compile(r"^```yaml\n_meta:\n", re.MULTILINE), re.compile(r"^```[ \t]*$", re.MULTILINE)
_TABLE_ROW = re.compile(r"^\|.+\|[ \t]*$", re.MULTILINE)
_RULER = re.compile(r"^\|[\s:|\-]+\|$")
_AROUND = 60
_SUBJECT_WORDS = 16
_LONGEST_VALUE = 80
_RANKS = {Rank.DETAIL: 0, Rank.IMPORTANT: 1, Rank.CRITICAL: 2}

_VALUE_RANKS = {
    ZoneKind.PERSON: Rank.CRITICAL,
    ZoneKind.CALL: Rank.CRITICAL,
    ZoneKind.ASSISTANT: Rank.IMPORTANT,
    ZoneKind.TEXT: Rank.IMPORTANT,
    ZoneKind.LATEST: Rank.IMPORTANT,
    ZoneKind.TOOL: Rank.DETAIL,
}
"""What a person stated and what a call used is critical; of a tool result only what somebody takes up is important."""
_EVERYWHERE = (ZoneKind.PERSON, ZoneKind.ASSISTANT, ZoneKind.TEXT, ZoneKind.LATEST)
_STRICT_ZONES = {
    ContentType.CONTEXT_DOC: _EVERYWHERE,
    ContentType.PRIOR_TURN: _EVERYWHERE,
    ContentType.RESEARCH_DOC: _EVERYWHERE,
    ContentType.GENERIC: _EVERYWHERE,
}
"""Where strict constraints, and decisions in so many words, are critical: wherever no tool and no page speaks. What a person says
binds in any words of force; in talk between named people, and in the types not named here, only that does."""
_IDLE = re.compile(r"^\W*(?:what|who|why|how|when|where|which|did|do|does|is|are|was|were|has|have)\b[^\n]*\?\W*$", re.IGNORECASE)
_SENTENCE_BORDER, _QUESTION = re.compile(r"[.!?] |[\n\u3002\uff1f]"), re.compile(r"\?")
_LONGEST_QUESTION = 2_000
_OWN = re.compile(r"\b(?:I|me|my|mine|we|us|our|please|you|your|this|that|it|there)\b", re.IGNORECASE)
_FAILED = re.compile(r'"(?:status|state|result|outcome|level|type)"\s*:\s*"(?:error|failed|failure|fatal)"', re.IGNORECASE)
_MESSAGE = re.compile(r'"(?:message|msg|detail|reason|description)"\s*:\s*"((?:[^"\\]|\\.){3,400})"', re.IGNORECASE)
_ERROR_NAMES = frozenset(("error", "errors", "error_message", "exception"))
_NO_ERROR = frozenset(("none", "null", "false", "no", "0", "ok", "n/a"))
_ADDITIONAL = frozenset((FactKind.NAME, FactKind.QUOTE))


def build_ledger(text: str | SourceIndex, content_type: ContentType = ContentType.GENERIC) -> Ledger:
    """The facts of `text`, each value once with its highest rank and all its subjects, in order of first appearance.

    Credentials are taken out first: spans are those of the redacted text, the same as `text` where it has none."""
    source = text if isinstance(text, SourceIndex) else SourceIndex(text)
    rules = Rules(source.text, content_type)
    text = rules.plain
    speakers = speakers_of(text) if is_dialogue(text) else frozenset[str]()
    merged: dict[tuple[FactKind, str], Fact] = {}
    strict = () if speakers and not is_transcript(text) else _STRICT_ZONES.get(content_type, ())
    heads = head_spans(text)
    for fact in (*_ruled(_facts(text, content_type, strict, source), rules.zones), *_in_markup(rules)):
        if not fact.key or fact.key in speakers:
            continue
        at = bisect_right(heads, (fact.start, len(text))) - 1
        fact = replace(fact, rank=Rank.DETAIL) if at >= 0 and fact.end <= heads[at][1] else fact
        known = merged.get((fact.kind, fact.key))
        merged[fact.kind, fact.key] = _merged(known, fact) if known else fact
    return Ledger(_promoted(tuple(merged.values())), speakers)


def _ruled(facts: Iterable[Fact], zones: tuple[RuleOmission, ...]) -> Iterator[Fact]:
    """`facts`, those that a rule lets go as details with the rule."""
    starts = [zone.start for zone in zones]
    for fact in facts:
        zone = zones[at - 1] if zones and (at := bisect_right(starts, fact.start)) else None
        let_go = zone and fact.start < zone.end and fact.end <= zone.end
        yield replace(fact, rule=zone.rule, instead=zone.instead, rank=Rank.DETAIL) if zone and let_go else fact


def _in_markup(rules: Rules) -> Iterator[Fact]:
    """The values in left-overs of HTML."""
    for cut in rules.markup:
        for found in find_values(rules.text[cut.start : cut.end], is_redacted=True):
            start = cut.start + found.start
            text = found.text[1:-1] if found.kind is FactKind.QUOTE else found.text
            yield Fact(found.kind, text, start, start + len(found.text), key(text), rank=Rank.DETAIL, rule=cut.rule)


def _merged(known: Fact, again: Fact) -> Fact:
    subject = tuple(dict.fromkeys((*known.subject, *again.subject)))[: 3 * _SUBJECT_WORDS]
    rank = max(known.rank, again.rank, key=_RANKS.__getitem__)
    return replace(known, subject=subject, rank=rank, rule=known.rule and again.rule, instead=known.instead or again.instead)


def _promoted(facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """A detail of a result that also stands as something somebody said has the rank of what was said."""
    said = {f.key: f.rank for f in facts if f.rank is not Rank.DETAIL}
    return tuple(replace(f, rank=said[f.key]) if f.rank is Rank.DETAIL and not f.rule and f.key in said else f for f in facts)


def _facts(text: str, content_type: ContentType, strict: tuple[ZoneKind, ...], source: SourceIndex) -> Iterator[Fact]:
    for zone in zones(text, content_type):
        body = text[zone.start : zone.end]
        if zone.kind is ZoneKind.QUERY:
            yield Fact(FactKind.QUERY, body, zone.start, zone.end, key(body), rank=Rank.CRITICAL)
        elif zone.is_json:
            yield from _of_json(body, zone)
        else:
            values = source.values if body == source.text else find_values(body, is_redacted=True)
            yield from _of_prose(body, zone, values, is_strict=zone.kind in strict)


def _of_json(body: str, zone: Zone) -> Iterator[Fact]:
    """Leaves of a JSON value; the subject of each is its name and the values before it in the same object."""
    around: list[str] = []
    yield from _failures(body, zone)
    for found in _PAIR.finditer(body):
        name, value = found.group(1) or "", found.group(2) or found.group(3) or found.group(4) or found.group(5) or ""
        end = found.end() - (1 if body[found.end() - 1] == '"' else 0)
        start = end - len(value)
        if "\\" in value or len(value) > _LONGEST_VALUE:
            for fact in _of_text(value.replace('\\"', '"').replace("\\n", "\n"), zone):
                yield replace(fact, start=zone.start + start, end=zone.start + end)
            continue
        if not value.strip():
            continue
        if name.lower() in _ERROR_NAMES and value.lower() not in _NO_ERROR:
            yield _error(value, zone.start + start)
        yield from (_statement_fact(s, replace(zone, start=zone.start + start)) for s in statements(value) if " " in value)
        subject = (*content_stems(name.replace("_", " ")), *around[-4:])
        yield from _leaf(value, zone, start, subject, name)
        around += content_stems(value)[:3]


def _failures(body: str, zone: Zone) -> Iterator[Fact]:
    """What a result says of its own failure: the message beside a status of failure."""
    for found in _FAILED.finditer(body):
        begin, end = body.rfind("{", 0, found.start()) + 1, body.find("}", found.end())
        if told := _MESSAGE.search(body, begin, end if end >= 0 else len(body)):
            yield _error(told.group(1), zone.start + told.start(1))


def _error(text: str, start: int) -> Fact:
    return Fact(FactKind.ERROR, text, start, start + len(text), key(text), rank=Rank.CRITICAL)


def _of_text(value: str, zone: Zone) -> Iterator[Fact]:
    """A string inside JSON that holds JSON itself, or prose."""
    yield from _of_json(value, zone) if value.startswith(("{", "[")) else _of_prose(value, zone, find_values(value))


def _leaf(value: str, zone: Zone, start: int, subject: tuple[str, ...], name: str) -> Iterator[Fact]:
    whole = next(iter(find_values(value, is_redacted=True)), None)
    kind = whole.kind if whole and whole.text == value else FactKind.NAME if value[:1].isupper() else None
    if kind is None and not name:
        return
    rank = _VALUE_RANKS[zone.kind] if kind else Rank.DETAIL
    at = zone.start + start
    if rank is Rank.CRITICAL and (kind in _ADDITIONAL or name == "name" or (kind is FactKind.NUMBER and len(value) < 2)):
        rank = Rank.IMPORTANT
    yield Fact(kind or FactKind.NAME, value, at, at + len(value), key(value), subject, rank)


def _of_prose(body: str, zone: Zone, values: Iterable[FoundValue], *, is_strict: bool = False) -> Iterator[Fact]:
    for start, end in _metas(body):
        yield Fact(FactKind.META, body[start:end], zone.start + start, zone.start + end, key(body[start:end]))
    for row in _TABLE_ROW.finditer(body):
        if not _RULER.match(row.group()):
            yield Fact(
                FactKind.ROW, row.group().strip(), zone.start + row.start(), zone.start + row.end(), key(row.group()), rank=Rank.DETAIL
            )
    for statement in statements(body):
        yield _statement_fact(statement, zone, is_strict=is_strict)
    borders = _Borders(body)
    counted = frozenset(m.start(1) for m in LEFT_OUT.finditer(body))
    for found in values:
        if found.start not in counted and (found.kind is not FactKind.NAME or bare(found.text) not in OPENERS):
            yield _value_fact(found, body, zone, borders)


def _metas(body: str) -> Iterator[tuple[int, int]]:
    """Where `_meta` blocks stand; one that is never closed is none."""
    at = 0
    while (begin := _META_BEGINS.search(body, at)) and (end := _META_ENDS.search(body, begin.end())):
        yield begin.start(), end.end()
        at = end.end()


def _statement_fact(statement: Statement, zone: Zone, *, is_strict: bool = False) -> Fact:
    is_limit = statement.kind is FactKind.CONSTRAINT and zone.kind is ZoneKind.PERSON and statement.is_binding
    is_critical = statement.kind is FactKind.ERROR or is_limit or (is_strict and statement.is_strict)
    rank = Rank.CRITICAL if is_critical else Rank.IMPORTANT
    start, end = zone.start + statement.start, zone.start + statement.end
    return Fact(statement.kind, statement.text, start, end, key(statement.text), rank=rank)


def _value_fact(found: FoundValue, body: str, zone: Zone, borders: "_Borders") -> Fact:
    text = found.text.removesuffix("'s").removesuffix("\u2019s") if found.kind is FactKind.NAME else found.text
    if found.kind is FactKind.QUOTE:
        text = text[1:-1]
    rank = _VALUE_RANKS[zone.kind]
    if rank is Rank.CRITICAL and (found.kind in _ADDITIONAL or (found.kind in NUMERIC and borders.is_idle(found))):
        rank = Rank.IMPORTANT
    start = zone.start + found.start
    return Fact(found.kind, text, start, start + len(found.text), key(text), _subject(found, body), rank)


class _Borders:
    """Where the sentences and the questions of a text end: looked for once, for all of its values."""

    def __init__(self, body: str) -> None:
        self._body = body

    @cached_property
    def _ends(self) -> list[int]:
        return [0, *(mark.end() for mark in _SENTENCE_BORDER.finditer(mask_inner_points(self._body)))]

    @cached_property
    def _questions(self) -> list[int]:
        return [mark.start() for mark in _QUESTION.finditer(self._body)]

    def is_idle(self, found: FoundValue) -> bool:
        """Whether a value stands in a question that asks for nothing but a piece of knowledge."""
        begin = self._ends[bisect_right(self._ends, found.start) - 1]
        at = bisect_left(self._questions, found.end)
        end = self._questions[at] if at < len(self._questions) else -1
        if not 0 <= end < begin + _LONGEST_QUESTION:
            return False
        sentence = self._body[begin : end + 1].strip()
        return bool(_IDLE.match(sentence)) and not _OWN.search(sentence)


def _subject(found: FoundValue, body: str) -> tuple[str, ...]:
    """Content words around a value on its own line, nearest first."""
    begin = max(body.rfind("\n", max(0, found.start - _AROUND), found.start) + 1, found.start - _AROUND)
    end = body.find("\n", found.end, found.end + _AROUND)
    before = content_stems(ungrouped(body[begin : found.start]))[::-1]
    after = content_stems(ungrouped(body[found.end : end if end >= 0 else found.end + _AROUND]))
    return tuple(dict.fromkeys((*before[: _SUBJECT_WORDS // 2], *after[: _SUBJECT_WORDS // 2])))
