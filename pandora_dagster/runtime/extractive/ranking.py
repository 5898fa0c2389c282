"""Which spans answer a question, best first. Knows overlap, rarity, neighbourhood and the kind of thing asked for."""

from collections.abc import Sequence

from pandora_dagster.runtime.extractive.entities import has_kind
from pandora_dagster.runtime.extractive.matching import FILLERS, coverage, weights
from pandora_dagster.runtime.extractive.matching import words as words_of
from pandora_dagster.runtime.extractive.questions import FIELD_WORDS, Question
from pandora_dagster.runtime.extractive.spans import Span

_NO_WORDS: frozenset[str] = frozenset()
BLOCK_SHARE = 0.7
"""What a matching neighbour in the same block is worth beside an own match."""
BESIDE_SHARE = 0.15
KIND_BONUS = 0.3
ASKING_PENALTY = 0.2
"""A span that itself asks seldom answers."""
NAMING_BONUS = 0.2
"""For the record of the very thing that the question names."""
DEED_BONUS = 0.4
"""For the telling of the very deed: `Ordered: ...` where the question is what was ordered."""
NAME_SHARE = 0.4
"""A name tells who is meant; where half of the lines bear it, it must not outweigh the matter."""
LEAST_STEMS = 4
"""A span without a word of the question is worth its neighbour's match only where it says something itself."""
SAME_SHARE = 0.8
RECENT_SHARE = 0.03


def rank(spans: Sequence[Span], asked: Question) -> list[tuple[float, Span]]:
    """Spans that have to do with `asked`, best first with their scores; ties keep the later one first. Equal texts stand once."""
    if not asked.stems:
        return []
    weighted = weights(asked.stems, [s.stems for s in spans])
    if not asked.names.issuperset(asked.stems):
        weighted = {t: w * NAME_SHARE if t in asked.names else w for t, w in weighted.items()}
    blocks: dict[int, set[str]] = {}
    for span in spans:
        blocks.setdefault(span.block, set()).update(span.stems)
    around = {b: coverage(weighted, stems) for b, stems in blocks.items()}
    scored = [(_score(s, asked, weighted, around) + RECENT_SHARE * i / len(spans), i, s) for i, s in enumerate(spans)]
    best = sorted((entry for entry in scored if entry[0] > RECENT_SHARE), key=lambda entry: (-entry[0], -entry[1]))
    seen: set[str] = set()
    return [(score, s) for score, _, s in best if not (s.text in seen or seen.add(s.text))]


def _score(span: Span, asked: Question, weighted: dict[str, float], around: dict[int, float]) -> float:
    own = coverage(weighted, span.stems)
    beside = max(around.get(span.block - 1, 0.0), around.get(span.block + 1, 0.0))
    near = BLOCK_SHARE * (around[span.block] - own) + BESIDE_SHARE * beside
    if own + near <= 0 or (not own and len(span.stems - FILLERS) < LEAST_STEMS):
        return 0.0
    kinds = sum(has_kind(kind, span.text) or _has_field(kind, span) for kind in asked.wants)
    bonus = KIND_BONUS * kinds / max(1, len(asked.wants)) * min(1.0, 0.3 + own + near)
    bonus += DEED_BONUS * (not asked.done.isdisjoint(words_of(span.text)))
    bonus += NAMING_BONUS * bool(span.named.intersection(asked.stems))
    return own + near + bonus - (ASKING_PENALTY if span.text.endswith("?") else 0.0)


def _has_field(kind: str, span: Span) -> bool:
    return span.kind in ("record", "row") and bool(FIELD_WORDS.get(kind, _NO_WORDS) & span.stems) and any(c.isdigit() for c in span.text)


def choose(ranked: Sequence[tuple[float, Span]], *, words: int, share: float = 0.3) -> list[Span]:
    """The best spans within about `words` words: at least one, none far below the best, none that repeats what is chosen."""
    chosen: list[Span] = []
    used = 0
    for score, span in ranked:
        size = len(span.text.split())
        if chosen and (used + size > words or score < share * ranked[0][0] or _repeats(span, chosen)):
            continue
        chosen.append(span)
        used += size
    return chosen


def _repeats(span: Span, chosen: Sequence[Span]) -> bool:
    own = set(words_of(span.text))
    return any(len(own & set(words_of(c.text))) >= SAME_SHARE * len(own) for c in chosen)
