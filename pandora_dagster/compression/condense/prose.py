"""Condenses Markdown and plain text: whole sentences, items and table rows, verbatim, under their headings.

Gain = the values a block adds (amounts, links, errors first) and its new words, per token. Tables stay tables, fences stay
whole. Pure, deterministic, linear in the text.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pandora_dagster.compression.condense.budget_selection import Selection, Unit
from pandora_dagster.compression.facts.fact_statements import statements
from pandora_dagster.compression.facts.fact_types import FactKind
from pandora_dagster.compression.facts.repeated_phrases import shortened
from pandora_dagster.compression.facts.retractions import SpokenSentence, answers
from pandora_dagster.compression.facts.value_finder import FoundValue, find_values
from pandora_dagster.compression.read.json_rows import LEFT_OUT, left_out
from pandora_dagster.compression.read.text_blocks import HEADS, SPOKEN, Block, BlockKind, blocks
from pandora_dagster.compression.words.courtesy import is_boilerplate, is_courtesy
from pandora_dagster.compression.words.normalization import key, words
from pandora_dagster.compression.words.word_classes import FUNCTION_WORDS, stem
from pandora_dagster.contracts.ports.measurement import TokenMeasure

_WORTH = {
    FactKind.MONEY: 5.0, FactKind.URL: 4.0, FactKind.IDENTIFIER: 4.0, FactKind.DATE: 3.0, FactKind.PERCENTAGE: 3.0, FactKind.QUANTITY: 3.0,
    FactKind.EVIDENCE: 2.0, FactKind.TIME: 2.0, FactKind.NUMBER: 2.0, FactKind.QUOTE: 2.0, FactKind.NAME: 2.0,
}  # fmt: skip
_STATEMENT = {FactKind.ERROR: 60.0, FactKind.CONSTRAINT: 10.0, FactKind.DECISION: 8.0, FactKind.CLAIM: 8.0}
_SIGNATURE = 20.0
"""Of a line of code that names what others belong to."""
_META, _FENCE = 40.0, 8.0
"""Of a fence that code reads, and of one that is small enough to stand as a whole: what a person is to run or to look at."""
_REPEATED, _MUST = 0.4, 1_000.0
_POLITE = 0.15
"""Of its worth, what a set phrase of politeness counts, and what stands on every page."""
_LEAST = 0.02
_SHORTENED = frozenset((BlockKind.SENTENCE, BlockKind.ITEM))
"""What may stand without the words that it repeats; what is a statement or holds one stands whole."""
_SHORTEST_PIECE, _LONGEST_PIECE = 160, 1_200
"""Characters of a stretch where sentences do not end: so many that several fit in the target."""
_FENCE_SHARE = 1
"""Characters of a fence, per token of the target, over which its lines stand or fall one by one."""
_NEAR_TOP = 6
"""Blocks that may stand before a title: a bar of links, a logo."""
_ROUNDS, _SMALLEST = 4, 4


class Prose:
    """A text without credentials taken apart, to be condensed to any number of targets. `must` are keys of values that come first.

    Where sentences do not end, and of a fence too large for its target, the pieces depend on the target: only then is the text
    taken apart anew. `of`: the target of the whole text of which this is a part: its sentences are not cut smaller than for that."""

    def __init__(self, text: str, counter: TokenMeasure, *, must: frozenset[str] = frozenset(), of: int = 0) -> None:
        self._text = text
        self._counter = counter
        self._must = must
        self._of = of
        self._apart: _Apart | None = None

    def condensed(self, target: int) -> str:
        """The text in at most `target` tokens."""
        counter, apart = self._counter, self._taken_apart(target)
        place = _title(apart.blocks)
        title = apart.openings.get(place, 0.0)
        openings = {**apart.openings, place: 0.0} if place > 0 else apart.openings
        selection = Selection(apart.units, apart.weights, openings, least=_LEAST)
        result, left = "", target - title - 2
        for _ in range(_ROUNDS):
            result = _fitted(apart, selection.extend(left), target, counter)
            left = target - counter.count(result) - 1
            if left < _SMALLEST:
                break
        return result

    def _taken_apart(self, target: int) -> "_Apart":
        found = blocks(self._text, max(_SHORTEST_PIECE, min(_LONGEST_PIECE, 3 * max(target, self._of))), _FENCE_SHARE * target)
        if self._apart is None or self._apart.blocks != found:
            self._apart = _apart(found, self._must, self._counter)
        return self._apart


def condense_prose(text: str, target: int, counter: TokenMeasure, *, must: frozenset[str] = frozenset()) -> str:
    """`text` in at most `target` tokens, for once."""
    return Prose(text, counter, must=must).condensed(target)


@dataclass(frozen=True, slots=True)
class _Apart:
    """Blocks with the units that stand for them, each by its block's number; `heads` stand only above others."""

    blocks: tuple[Block, ...]
    heads: Mapping[int, Block]
    units: Sequence[Unit]
    weights: Mapping[Hashable, float]
    openings: Mapping[Hashable, float]


def _apart(found: tuple[Block, ...], must: frozenset[str], counter: TokenMeasure) -> _Apart:
    above = {b.under for b in found}
    heads = {n: b for n, b in enumerate(found) if b.kind in HEADS or n in above}
    units, weights = _units(found, heads, must, counter)
    openings: dict[Hashable, float] = {n: counter.count(b.text + b.closing) + 1.0 for n, b in heads.items()}
    return _Apart(found, heads, units, weights, openings)


def _units(
    found: Sequence[Block], heads: Mapping[int, Block], must: frozenset[str], counter: TokenMeasure
) -> tuple[list[Unit], dict[Hashable, float]]:
    """A unit for each block, and one for what it does not repeat. Heads stand by themselves only where nothing needs them, and then
    they are worth little; a line above indented ones (of code, of a list) is a head that has worth of its own."""
    units: list[Unit] = []
    weights: dict[Hashable, float] = {}
    blocks_with: Counter[str] = Counter()
    for number, (block, shorter) in enumerate(zip(found, shortened([b.text for b in found]), strict=True)):
        standing = list(find_values(block.text, is_redacted=True))
        values = {("value", key(v.text)): _WORTH.get(v.kind, 1.0) for v in standing}
        for fact, worth in values.items():
            weights[fact] = max(weights.get(fact, 0.0), worth + (_MUST if fact[1] in must else 0.0))
        spoken = list(dict.fromkeys(_stems(block.text)))
        blocks_with.update(dict.fromkeys(spoken, 0))
        blocks_with.update(set(_stems(shorter)) if shorter else spoken)
        is_title = block.kind in HEADS
        bonus = 0.0 if is_title else _bonus(block, must)
        group = number if number in heads else block.under if block.under >= 0 else None
        tokens = 0 if number in heads else counter.count(block.text) + 1
        names_others = number + 1 < len(found) and found[number + 1].label == block.text.strip()
        facts = () if is_title or names_others or LEFT_OUT.fullmatch(block.text) else (*values, *spoken)
        if shorter and tokens and not bonus and not _is_ordinal(shorter, standing) and block.kind in _SHORTENED and not _is_code(block):
            left = (*values, *dict.fromkeys(_stems(shorter)))
            units.append(Unit(shorter, counter.count(shorter) + 1, left, number, group, slot=number))
        factor = _POLITE if is_courtesy(block.text.lstrip(" >")) or is_boilerplate(block.text) else 1.0
        units.append(Unit(block.text, tokens, facts, number, group, slot=number, level=1, bonus=bonus, factor=factor))
    weights.update((w, 1.0 + _REPEATED * math.log(max(n, 1))) for w, n in blocks_with.items())
    return _with_needs(units, found), weights


def _with_needs(units: Sequence[Unit], found: Sequence[Block]) -> list[Unit]:
    """Units with those that they need: what a sentence takes up, and what takes a sentence back or moves what it says."""
    whole = {unit.position: n for n, unit in enumerate(units) if unit.level == 1}
    needed: dict[int, list[int]] = {}
    for number, block in enumerate(found):
        if block.needs >= 0:
            needed.setdefault(number, []).append(whole[block.needs])
            if found[block.needs].is_turned and block.needs == number - 1:
                needed.setdefault(block.needs, []).append(whole[number])
    spoken = [number for number, block in enumerate(found) if block.kind in SPOKEN]
    for one, others in answers([SpokenSentence(found[number].text, found[number].line) for number in spoken]).items():
        needed.setdefault(spoken[one], []).extend(whole[spoken[other]] for other in others)
    return [replace(unit, needs=tuple(needed[unit.position])) if unit.position in needed else unit for unit in units]


def _is_ordinal(text: str, values: Iterable[FoundValue]) -> bool:
    """Whether what is left of a repeated sentence ends before it says anything: `Disclaimer line 7: …`."""
    return text.endswith("\u2026") and all(v.kind in (FactKind.NUMBER, FactKind.NAME) for v in values if v.text in text)


def _is_code(block: Block) -> bool:
    """Whether a line is indented as code and tracebacks are: it stands as it is."""
    return block.kind is BlockKind.SENTENCE and block.text[:1].isspace()


def _stems(text: str) -> Iterable[str]:
    return (stem(w) for w in words(text) if w not in FUNCTION_WORDS)


def _bonus(block: Block, must: frozenset[str]) -> float:
    if block.is_signature:
        return _SIGNATURE
    if block.kind is BlockKind.FENCE:
        return _META if "\n_meta:" in block.text[:200] else _FENCE
    found = list(statements(block.text))
    return sum(_STATEMENT[s.kind] for s in found) + (_MUST if any(key(s.text) in must for s in found) else 0.0)


def _fitted(apart: _Apart, picked: list[int], target: int, counter: TokenMeasure) -> str:
    text = _composed(apart, picked)
    while picked and (over := counter.count(text) - target) > 0:
        del picked[-max(1, over // 30) :]
        text = _composed(apart, picked)
    return text


def _composed(apart: _Apart, picked: Iterable[int]) -> str:
    """Picks in their order, each under its heading and its table's head; sentences of one line stay on one line. A table of which
    rows stand says how many do not."""
    found = apart.blocks
    chosen = {apart.units[n].position: apart.units[n].text for n in picked}
    absent = _absent_rows(found, chosen)
    standing = {n for n in chosen if found[n].kind not in HEADS}
    if standing and (title := _title(found)) >= 0:
        standing.add(title)
    heads: set[int] = set()
    for number in standing:
        above = found[number].under
        while above >= 0 and above not in heads:
            heads.add(above)
            above = found[above].under
    standing |= heads
    lines: list[str] = []
    last, open_fence, in_table, table = -1, -1, False, -1
    for number in _in_order(found, standing):
        block, text = found[number], chosen.get(number, found[number].text)
        if in_table and block.kind is not BlockKind.TABLE_ROW:
            lines += left_out(absent[table])
        if open_fence >= 0 and block.kind is not BlockKind.FENCE_LINE:
            lines.append(found[open_fence].closing)
            open_fence = -1
        if block.kind is BlockKind.FENCE_HEAD:
            open_fence = number
        if block.line == last and block.kind is BlockKind.SENTENCE:
            lines[-1] += " " + text
        else:
            if lines and (block.kind is BlockKind.HEADING or (in_table and block.kind is not BlockKind.TABLE_ROW)):
                lines.append("")
            lines.append(f"{block.label} {text}" if block.label else text)
        in_table = block.kind in (BlockKind.TABLE_HEAD, BlockKind.TABLE_ROW)
        table = block.under if block.kind is BlockKind.TABLE_ROW else number
        last = block.line
    if in_table:
        lines += left_out(absent[table])
    if open_fence >= 0:
        lines.append(found[open_fence].closing)
    return "\n".join(lines)


def _in_order(found: Sequence[Block], standing: Iterable[int]) -> list[int]:
    """Blocks in their order, but who wrote a quotation right above the first line of it that stands: what the answering person says
    in between is not theirs."""
    ordered: list[int] = []
    for number in sorted(standing):
        if found[number].kind is BlockKind.WRITER:
            continue
        above = found[number].under
        writers: list[int] = []
        while above >= 0 and found[above].kind is BlockKind.WRITER and above not in ordered:
            writers.insert(0, above)
            above = found[above].under
        ordered += [*writers, number]
    return ordered


def _title(found: Sequence[Block]) -> int:
    """The number of the heading that says what the whole text is about: its first block, or a heading of the first level near its
    beginning; -1 for none."""
    if found and found[0].kind is BlockKind.HEADING:
        return 0
    return next((n for n, block in enumerate(found[:_NEAR_TOP]) if block.kind is BlockKind.HEADING and block.text.startswith("# ")), -1)


def _absent_rows(found: Sequence[Block], chosen: Mapping[int, str]) -> Counter[int]:
    """Number of a table's head -> its rows that do not stand, with those that an earlier compression left out."""
    absent: Counter[int] = Counter()
    for number, block in enumerate(found):
        if block.kind is BlockKind.TABLE_ROW and number not in chosen:
            more = LEFT_OUT.fullmatch(block.text)
            absent[block.under] += int(more.group(1)) if more else 1
    return absent
