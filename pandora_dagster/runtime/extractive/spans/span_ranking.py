"""Which spans answer a question, best first. Knows overlap, rarity, neighbourhood and the kind of thing asked for."""

import re
from collections.abc import Sequence

from pandora_dagster.language.relative_days import is_in_ranges
from pandora_dagster.runtime.extractive.spans.document_spans import Span
from pandora_dagster.runtime.extractive.words.empty_texts import asks, repeats, says_nothing
from pandora_dagster.runtime.extractive.words.entities import has_kind, identifiers
from pandora_dagster.runtime.extractive.words.query_intent import FIELD_WORDS, Question
from pandora_dagster.runtime.extractive.words.word_matching import FILLERS, akin, coverage, terms
from pandora_dagster.runtime.extractive.words.word_matching import words as words_of

_IN_BRACKETS = re.compile(r" \([^()]*\)$")
_NO_WORDS: frozenset[str] = frozenset()
BLOCK_SHARE = 0.7
"""What a matching neighbour in the same block is worth beside an own match."""
BESIDE_SHARE = 0.15
REPLY_SHARE = 0.35
"""The same for a matching question just before, to which it may be the answer."""
KIND_BONUS = 0.3
ASKING_PENALTY = 0.2
"""A span that itself asks for something seldom answers."""
NAMING_BONUS = 0.2
"""For the record of the very thing that the question names."""
DEED_BONUS = 0.4
"""For the telling of the very deed: `Ordered: ...` where the question is what was ordered."""
DAY_BONUS = 0.5
"""For what was said on a day that the question names: it answers `what did I do then` whatever its words."""
NAME_SHARE = 0.4
"""A name tells who is meant; where half of the lines bear it, it must not outweigh the matter."""
LEAST_STEMS = 2
"""A span without a word of the question is worth its neighbour's match only where it says something itself."""
SAME_SHARE = 0.8
TELLING_SHARE = 0.6
RECENT_SHARE = 0.03
_FRAME_WORDS = 4
"""A list mark, a date, a name, a citation."""


def rank(spans: Sequence[Span], asked: Question) -> list[tuple[float, Span]]:
    """Spans that have to do with `asked`, best first with their scores; ties keep the later one first.

    Equal texts stand once, as the oldest turn said them. What only repeats the question is no answer.
    """
    if on_days := [s for s in spans if is_in_ranges(s.date, asked.days)]:
        spans = [s for s in spans if not s.date or is_in_ranges(s.date, asked.days)]
    if not asked.stems and not on_days:
        return []
    spans = [s for s in spans if s.kind == "code" or not (repeats(s.text, asked.text) or says_nothing(s.text))]
    read, weighted = akin(asked.stems, _by_speaker(spans))
    if not asked.names.issuperset(asked.stems):
        weighted = {t: w * NAME_SHARE if t in asked.names else w for t, w in weighted.items()}
    blocks: dict[int, set[str]] = {}
    for span, stems in zip(spans, read, strict=True):
        blocks.setdefault(span.block, set()).update(stems | span.about)
    around = {b: coverage(weighted, stems) for b, stems in blocks.items()}
    asked_before = {s.block + 1: around[s.block] for s in spans if s.speaker and s.text.endswith("?")}
    scored = [
        (_score(s, stems, asked, weighted, around, asked_before.get(s.block, 0.0)) + RECENT_SHARE * i / len(spans), i, s)
        for i, (s, stems) in enumerate(zip(spans, read, strict=True))
    ]
    best = sorted((entry for entry in scored if entry[0] > RECENT_SHARE), key=lambda entry: (-entry[0], -entry[1]))
    first: dict[str, tuple[float, Span]] = {}
    for score, _, span in best:
        top, known = first.setdefault(span.text, (score, span))
        first[span.text] = (top, _older(known, span))
    return list(first.values())


def _by_speaker(spans: Sequence[Span]) -> list[frozenset[str]]:
    """Each span's stems. The name of somebody who speaks himself stands for what he says, not for his being spoken to."""
    speaking = {s.speaker: frozenset(terms(s.speaker)) for s in spans if s.speaker}
    every = frozenset[str]().union(*speaking.values())
    return [s.stems - (every - speaking[s.speaker]) if s.speaker else s.stems for s in spans]


def _older(one: Span, other: Span) -> Span:
    """The one that an earlier turn said: a later turn may only repeat it."""
    return other if other.turn is not None and one.turn is not None and other.turn < one.turn else one


def _score(
    span: Span, stems: frozenset[str], asked: Question, weighted: dict[str, float], around: dict[int, float], asked_before: float
) -> float:
    own = coverage(weighted, stems)
    beside = max(around.get(span.block - 1, 0.0), around.get(span.block + 1, 0.0))
    near = BLOCK_SHARE * (around[span.block] - own) + max(BESIDE_SHARE * beside, REPLY_SHARE * asked_before)
    matter = stems.intersection(asked.stems) - asked.names
    on_day = is_in_ranges(span.date, asked.days)
    if (own + near <= 0 and not (on_day and asked.all_of_days)) or (not matter and len(stems - asked.names - FILLERS) < LEAST_STEMS):
        return 0.0
    kinds = sum(has_kind(kind, span.text) or _has_field(kind, span) for kind in asked.wants)
    bonus = KIND_BONUS * kinds / max(1, len(asked.wants)) * min(1.0, 0.3 + own + near)
    bonus += DEED_BONUS * (not asked.done.isdisjoint(words_of(span.text)))
    bonus += DAY_BONUS * on_day
    bonus += NAMING_BONUS * bool(span.named.intersection(asked.stems))
    return own + near + bonus - (ASKING_PENALTY if asks(span.text) else 0.0)


def _has_field(kind: str, span: Span) -> bool:
    return span.kind in ("record", "row") and bool(FIELD_WORDS.get(kind, _NO_WORDS) & span.stems) and any(c.isdigit() for c in span.text)


def telling(ranked: Sequence[tuple[float, Span]], asked: Question) -> list[tuple[float, Span]]:
    """Where the best span holds every word of the question that any span holds, those that hold little of them are left out.
    What stands in the best one's document stays, and what people say to each other: there an answer often stands beside the words that
    it answers."""
    if not ranked:
        return []
    held = frozenset[str]().union(*(s.stems for _, s in ranked)).intersection(asked.stems)
    if not held or not held <= ranked[0][1].stems:
        return list(ranked)
    best = ranked[0][1].label
    return [(score, s) for score, s in ranked if s.speaker or s.label == best or len(held & s.stems) >= TELLING_SHARE * len(held)]


def once(ranked: Sequence[tuple[float, Span]]) -> list[tuple[float, Span]]:
    """Without the stored entries (`key: value`) whose value stands in what the person said in that turn."""
    said = [s for _, s in ranked if s.kind == "sentence"]
    return [(n, s) for n, s in ranked if s.kind == "sentence" or not any(c.label == s.label and _value(s.text) in c.text for c in said)]


def _value(text: str) -> str:
    key, _, value = text.partition(": ")
    return _IN_BRACKETS.sub("", value) if value and " " not in key.removesuffix(" (earlier)") else text


def choose(ranked: Sequence[tuple[float, Span]], *, words: int, share: float = 0.3) -> list[Span]:
    """The best spans within `words` words, their marks and names included: at least one, none far below the best, none that
    repeats what is chosen."""
    chosen: list[Span] = []
    used = 0
    for score, span in ranked:
        size = len(span.text.split()) + (0 if span.speaker and any(_together(span, c) for c in chosen) else _FRAME_WORDS)
        chosen = [_older(c, span) if _same(c, span) else c for c in chosen]
        if chosen and (used + size > words or score < share * ranked[0][0] or _repeats(span, chosen)):
            continue
        chosen.append(span)
        used += size
    return chosen


def passages(spans: Sequence[Span]) -> list[list[Span]]:
    """Spans, best first, as they are told: what one speaker said in one turn stands together."""
    found: list[list[Span]] = []
    for span in spans:
        own = next((p for p in found if _together(span, p[0])), None) if span.speaker else None
        if own is None:
            found.append([span])
        else:
            own.append(span)
    return found


def _together(one: Span, other: Span) -> bool:
    return (one.speaker, one.label, one.date) == (other.speaker, other.label, other.date)


def _same(one: Span, other: Span) -> bool:
    """Whether two spans say the same in nearly the same words: every number and id of one stands in the other."""
    a, b = set(words_of(one.text)), set(words_of(other.text))
    alike = len(a & b) >= SAME_SHARE * max(len(a), len(b))
    return alike and one.kind != "code" and set(identifiers(one.text)) == set(identifiers(other.text))


def _repeats(span: Span, chosen: Sequence[Span]) -> bool:
    own, named = set(words_of(span.text)), set(identifiers(span.text))
    return any(len(own & set(words_of(c.text))) >= SAME_SHARE * len(own) and named <= set(identifiers(c.text)) for c in chosen)
