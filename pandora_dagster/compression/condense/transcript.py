"""Condenses a transcript of talk and tool results: results become tables, repeats merge, talk stays in its words.

Knows text in and text out; pure and deterministic, linear in the text. It reads its own output, so that a compaction of
a compaction merges instead of decaying. Weights: who mentions a value, how late, and its form (no word lists of a domain).
"""

import math
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pandora_dagster.compression.condense.budget_selection import Selection, Unit
from pandora_dagster.compression.condense.transcript_lines import item_head, item_lines, loose_line, talk_lines
from pandora_dagster.compression.condense.transcript_units import (
    Draft,
    call_draft,
    earlier_draft,
    item_draft,
    loose_draft,
    options_draft,
    sentence_drafts,
    table_drafts,
)
from pandora_dagster.compression.facts.fact_statements import DECISION
from pandora_dagster.compression.read.json_parts import shown
from pandora_dagster.compression.read.json_rows import CUT, Options, Row, cell, left_out, options, rows
from pandora_dagster.compression.read.packed_text import PackedText, reread
from pandora_dagster.compression.read.row_tables import Table, tables
from pandora_dagster.compression.read.transcript_messages import Call, ProseMessage, Result, contents, rendered, split_messages
from pandora_dagster.compression.read.value_mentions import Mentions, base_weight, is_word_list, recency
from pandora_dagster.compression.words.normalization import KeyIndex, padded
from pandora_dagster.contracts.ports.measurement import TokenMeasure

_NAMED_ROW, _NEAR_ROW, _OTHER_ROW, _SHORT_TABLE, _SHORT = 0.8, 1.2, 0.35, 1.6, 6
_WIDE = 3
"""Columns of a table whose rows tell nothing by their first cell alone, where nobody talks about them."""
"""Weight of a value nobody mentions: in a row whose identity is mentioned, more the later it was (the record that is talked about
stays whole), in any other row; and of tables up to six rows."""
_STATE_WEIGHT, _STATE_OF_ROW = 1.5, 1.0
"""Of a state by itself, and of the fact that it is the state of a row somebody mentions."""
_BOND, _SHARED = 0.5, 0.5
"""Of two values that stand together though nobody mentions them; and the power by which a part that many share counts less."""
_SPOKEN_VALUE, _UNMENTIONED_VALUE, _UNMENTIONED_ANYWHERE = 0.7, 0.5, 0.1
"""Worth of a single value beside its row: where somebody mentions it, where nobody does, and where nobody talks at all."""
_PERSON_BONUS = 0.2
_ASKED = 10.0
"""Of a word of the question: so much that what answers it stands before what is merely mentioned."""
_LONE = 0.16
"""Characters, per token of the target, for single values that have neither date nor subject: about 8 % of it."""
_FEW = 60
"""Characters that such values have in any case."""
_MUST = 1_000.0
_BOOKED = re.compile(r"\b(?:booked|confirmation|changed|cancelled|refunded|paid|ordered|reference|total)\b", re.IGNORECASE)
"""What came of a request, beside the words of deciding."""
_OUTCOME = 0.6
"""Characters of the newest answer, per token of the target, up to which what it names stands before all else."""
_MARGIN = 12
_ROUNDS = 3
"""Headers end with their longest row, and values already said are not said again: what that saves is spent in further rounds."""


@dataclass(frozen=True)
class _Material:
    """A transcript taken apart."""

    tables: tuple[Table, ...]
    drafts: tuple[Draft, ...]
    mentions: Mentions
    messages: int
    target: int
    left_out: Mapping[str, int]
    """First column -> rows of such tables that earlier compressions left out."""

    def bond(self, fact: str) -> float:
        """What it is worth that the parts of a fact stand together: as much as their mentions, shared among all that have the part."""
        return sum((self.mentions.of(part) or 0.0) / self._bonds[part] ** _SHARED for part in fact.split("@"))

    @cached_property
    def _bonds(self) -> Counter[str]:
        return Counter(part for fact in {f for d in self.drafts for f in d.facts if "@" in f} for part in set(fact.split("@")))

    def answer(self, draft: Draft) -> float:
        """What a draft is worth for the words of the question in it, the rare ones most."""
        return _ASKED * sum(math.log((self._pieces + 1) / self._asked[stem]) for stem in sorted(draft.asked))

    @cached_property
    def _asked(self) -> Counter[str]:
        return Counter(stem for draft in self.drafts for stem in draft.asked)

    @cached_property
    def _pieces(self) -> int:
        """Rows and sentences."""
        return len({(d.table, d.entry) for d in self.drafts if d.kind == "row"}) + sum(d.kind == "sentence" for d in self.drafts)

    @cached_property
    def _leads(self) -> dict[tuple[int, int], int]:
        return {(d.position, d.line): n for n, d in enumerate(self.drafts) if d.is_lead}

    def with_leads(self, talk: set[int]) -> set[int]:
        """Sentences, and the lines that announce them; a title or a label that announces nothing is left out."""
        found: set[int] = set()
        for number in talk:
            if self.drafts[number].is_lead and not self.drafts[number].facts:
                continue
            while number >= 0 and number not in found:
                found.add(number)
                draft = self.drafts[number]
                number = self._leads.get((draft.position, draft.lead), -1)
        return found

    @cached_property
    def loose_factor(self) -> float:
        """Worth of a single value that nobody mentions."""
        has_talk = any(d.kind in ("sentence", "call") for d in self.drafts)
        return _UNMENTIONED_VALUE if has_talk else _UNMENTIONED_ANYWHERE


def condense_transcript(text: str, target: int, counter: TokenMeasure, *, must: frozenset[str] = frozenset(), query: str = "") -> str:
    """`text` in at most `target` tokens, where that is possible; `must` are keys of values that come first."""
    material = _material(rendered(text), query, must, target)
    weights = _weights(material, must)
    units = [_unit(draft, material, counter) for draft in material.drafts]
    selection = Selection(units, weights, _openings(material, counter))
    left, picked, filled = float(target - _MARGIN), list[int](), list[int]()
    for _ in range(_ROUNDS):
        picked = list(dict.fromkeys((*selection.extend(left), *filled)))
        filled = [n for n in _fill(material, units, picked, target, counter) if n not in picked]
        left = target - _MARGIN - counter.count(_composed(material, [*picked, *filled]))
        if left < _MARGIN:
            break
    return _trimmed(material, [*picked, *filled], target, counter)


def _openings(material: _Material, counter: TokenMeasure) -> dict[Hashable, float]:
    """What the first unit under a table's header, or under a line that announces it, pays for that."""
    openings: dict[Hashable, float] = {n: counter.count(t.header()) + 1.0 for n, t in enumerate(material.tables)}
    for d in material.drafts:
        if d.kind == "item" and d.holds_others:
            openings.setdefault(("item", d.label, d.subject), counter.count(item_head(d.label, d.layout, d.subject)) + 1.0)
    return openings | {("lead", d.position, d.line): counter.count(d.text) + 1.0 for d in material.drafts if d.is_lead}


def _material(text: str, query: str, must: frozenset[str], target: int) -> _Material:
    earlier = reread(text)
    messages = split_messages(earlier.text)
    found = tuple(contents(messages))
    said = [item for item in found if isinstance(item, ProseMessage)]
    calls = [item for item in found if isinstance(item, Call)]
    results = [item for item in found if isinstance(item, Result)]
    row_list: list[Row] = list(earlier.rows)
    groups: list[Options] = []
    for result in results:
        if (objects := rows(result)) is None:
            said.append(ProseMessage(result.position, "tool", shown(str(result.value))))
            continue
        row_list += objects
        if group := options(result):
            groups.append(group)
    mentions = Mentions(said, calls, len(messages), query)
    made = tables(row_list, mentions, earlier.layouts)
    drafts = _drafts(made, mentions, earlier, groups, calls)
    drafts += [draft for item in said for draft in sentence_drafts(item, must, mentions)]
    drafts = _without_repeats(drafts)
    if not any(d.kind in ("sentence", "call") for d in drafts):
        drafts = [d for d in drafts if d.kind != "row" or d.level > 1 or len(made[d.table].columns) < _WIDE]
    return _Material(made, tuple(drafts), mentions, len(messages), target, earlier.left_out)


def _drafts(
    made: Sequence[Table], mentions: Mentions, earlier: PackedText, groups: Sequence[Options], calls: Sequence[Call]
) -> list[Draft]:
    drafts = [draft for number, table in enumerate(made) for draft in table_drafts(number, table, mentions)]
    drafts += [loose_draft(loose) for loose in earlier.loose]
    drafts += [item_draft(loose) for loose in earlier.items]
    drafts += [earlier_draft(line) for line in earlier.earlier]
    drafts += [options_draft(group) for group in groups]
    return drafts + [call_draft(call) for call in calls]


def _without_repeats(drafts: Sequence[Draft]) -> list[Draft]:
    """Of equal sentences and calls only the newest stays."""
    newest = {(d.kind, d.label, d.text): n for n, d in enumerate(drafts) if d.kind in ("sentence", "call")}
    return [d for n, d in enumerate(drafts) if newest.get((d.kind, d.label, d.text), n) == n]


def _weights(material: _Material, must: frozenset[str]) -> dict[Hashable, float]:
    weights: dict[Hashable, float] = {}
    last, new = _outcome(material)
    for draft in material.drafts:
        late = recency(draft.position, material.messages)
        for fact in draft.facts:
            weight = _weight(fact, draft, late, material)
            if fact in must or (draft.kind == "sentence" and draft.position == last and fact in new):
                weight += _MUST
            if weight > weights.get(fact, 0.0):
                weights[fact] = weight
    return weights


def _outcome(material: _Material) -> tuple[int, frozenset[str]]:
    """The number of the newest message, and the identifiers and amounts that the assistant names where it says what came of
    it all. None where it is long: then it is a report."""
    talk = [d for d in material.drafts if d.kind == "sentence" and d.label in ("user", "assistant")]
    last = max((d.position for d in talk), default=-1)
    newest = [d for d in talk if d.position == last and d.label == "assistant"]
    if sum(len(d.text) for d in newest) > _OUTCOME * material.target:
        return last, frozenset()
    settled = [d for d in newest if DECISION.search(d.text) or _BOOKED.search(d.text)]
    return last, frozenset(f for d in settled for f in d.facts if "@" not in f and any(c.isdigit() for c in f))


def _weight(fact: str, draft: Draft, late: float, material: _Material) -> float:
    if "~" in fact:
        return _STATE_OF_ROW * late
    if "@" in fact:
        return max(_BOND * late, material.bond(fact))
    mentioned = material.mentions.of(fact)
    base = base_weight(fact)
    if mentioned is not None:
        weight = base * mentioned
    elif draft.kind in ("row", "earlier", "value", "item"):
        weight = base * late * (_NAMED_ROW + _NEAR_ROW * draft.nearness if draft.is_mentioned else _OTHER_ROW)
        if draft.kind == "row" and len(material.tables[draft.table].entries) <= _SHORT:
            weight *= _SHORT_TABLE
    else:
        weight = base * late
    return max(weight, _STATE_WEIGHT) if draft.kind in ("row", "value") and is_word_list(fact) else weight


def _unit(draft: Draft, material: _Material, counter: TokenMeasure) -> Unit:
    facts = tuple(sorted(draft.facts))
    tokens = counter.count(draft.text) + (2 if draft.kind == "sentence" else 1)
    bonus = material.answer(draft) + (_PERSON_BONUS * tokens if draft.kind == "sentence" and draft.label == "user" else 0.0)
    factor = 1.0
    if draft.kind == "value":
        factor = _SPOKEN_VALUE if any(material.mentions.spoken(f) for f in draft.facts) else material.loose_factor
    if draft.kind == "row":
        return Unit(draft.text, tokens, facts, draft.position, draft.table, (draft.table, draft.entry), draft.level, bonus)
    if draft.is_lead or draft.lead >= 0:
        group = ("lead", draft.position, draft.line if draft.is_lead else draft.lead)
        return Unit(draft.text, 0 if draft.is_lead else tokens, facts, draft.position, group, bonus=bonus)
    group = ("item", draft.label, draft.subject) if draft.holds_others else None
    return Unit(draft.text, tokens, facts, draft.position, group, bonus=bonus, factor=factor)


def _fill(material: _Material, units: Sequence[Unit], picked: list[int], target: int, counter: TokenMeasure) -> list[int]:
    """What is left of the budget goes to sentences and calls, people's first, the newest first."""
    drafts = material.drafts
    used = counter.count(_composed(material, picked))
    taken = set(picked)
    left = [n for n, draft in enumerate(drafts) if n not in taken and draft.kind not in ("row", "value", "item")]
    left.sort(key=lambda n: (drafts[n].label != "user", -drafts[n].position))
    for number in left:
        if used + units[number].tokens + 1 <= target - 3:
            picked = [*picked, number]
            used += units[number].tokens + 1
        elif used >= target - 5:
            break
    return picked


def _trimmed(material: _Material, picked: list[int], target: int, counter: TokenMeasure) -> str:
    """The composed text; the last picks go until it fits."""
    text = _composed(material, picked)
    while picked and (over := counter.count(text) - target) > 0:
        del picked[-max(1, over // 20) :]
        text = _composed(material, picked)
    return text


def _composed(material: _Material, picked: Sequence[int]) -> str:
    """Tables first, then older versions and loose values, then talk in its order."""
    chosen = [material.drafts[n] for n in picked]
    lines: list[str] = []
    kept: dict[int, list[Draft]] = {}
    for draft in chosen:
        if draft.kind == "row":
            kept.setdefault(draft.table, []).append(draft)
    for number in sorted(kept):
        table, level = material.tables[number], max(d.level for d in kept[number])
        rows_here = sorted(kept[number], key=lambda d: (d.position, d.entry))
        lines += [table.header(level), *(d.text + (CUT if _is_cut(d, table, level) else "") for d in rows_here)]
        lines += left_out(len(table.entries) - len(rows_here) + material.left_out.get(table.columns[0], 0))
    lines += [d.text for d in chosen if d.kind == "earlier"]
    lines += item_lines([d for d in chosen if d.kind == "item"], "\n".join(lines))
    in_rows = frozenset[str]().union(*(d.facts for d in chosen if d.kind == "row"))
    if loose := loose_line(
        [d for d in chosen if d.kind == "value" and not d.facts <= in_rows],
        KeyIndex(padded("\n".join(lines))),
        max(int(_LONE * material.target), _FEW),
    ):
        lines.append(loose)
    talk = {n for n in picked if material.drafts[n].kind in ("options", "call", "sentence")}
    return "\n".join(lines + talk_lines([material.drafts[n] for n in sorted(material.with_leads(talk))]))


def _is_cut(draft: Draft, table: Table, level: int) -> bool:
    """Whether a row ends before a cell that the header names."""
    values = table.entries[draft.entry].row.values
    return any(cell(values.get(name, "")) for name in table.columns[draft.level : level])
