"""Which passages answer a question, best first: a linear model over general features, in log odds.

The first five weights come from a fit by `benchmarks/fit_answers.py` with three more features, which changed no answer and are gone. A fit
of these five alone answers fewer questions of the same documents (44 instead of 47 in 100 words) and of LoCoMo (55 instead of 59).
`cover`, the share of the question's content words in the passage, was added to them with its weight in a fit of all six.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import MappingProxyType

from pandora_dagster.language.bm25 import idf
from pandora_dagster.phases.core.day_ranges import is_in_ranges
from pandora_dagster.runtime.extractive.evidence.citation_labels import Labels
from pandora_dagster.runtime.extractive.evidence.questions import Question
from pandora_dagster.runtime.extractive.evidence.source_passages import Passage, PassageReader

WEIGHTS: Mapping[str, float] = MappingProxyType({"rarest": 2.6, "source": 0.76, "kind": 1.04, "late": 0.91, "rank": -1.74, "cover": 5.3})
_MIN_SOURCE_SHARE = 0.25
"""Share of the best source's weight that another needs."""
_MIN_ROOT_LETTERS = 5
"""Letters of the shortest word that abbreviates a longer one: `Dach` is too short, `allerg` is not."""
_KIN_WEIGHT = 0.5
_MAX_RANK = 9
"""From here on the place among the chosen turns says no more."""


@dataclass(frozen=True, slots=True)
class Features:
    """What is known of a passage that may answer, by the names of `WEIGHTS`."""

    passage: Passage
    values: Mapping[str, float]

    def score(self, weights: Mapping[str, float] = WEIGHTS) -> float:
        return sum(weights[name] * value for name, value in self.values.items() if name in weights)


@dataclass(slots=True)
class Vocabulary:
    """How often words occur in the passages, and which of them a question asks for: word -> weight from 0 to 1."""

    passages: Sequence[Passage]
    asked: frozenset[str]
    counts: Counter[str] = field(init=False)
    wanted: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = Counter(key for p in self.passages for key in {*p.keys, *p.above})
        self.wanted = {key: 1.0 for key in self.asked if self.counts[key]}
        for key in self.asked - self.wanted.keys():
            self.wanted |= {other: _KIN_WEIGHT for other in self.counts if other not in self.wanted and is_kin(key, other)}

    def rarity(self, key: str) -> float:
        """How much a word says: its inverse frequency among the passages; the largest for a word that none has."""
        return idf(len(self.passages), self.counts[key])

    def held(self, keys: frozenset[str]) -> float:
        """The share (0 to 1) of what is asked that `keys` hold."""
        worth = {key: max(self.rarity(key), 1.0) if self.counts[key] else math.log(2 + len(self.passages)) for key in self.asked}
        whole = sum(worth.values())
        found = sum(value for key, value in worth.items() if key in keys or any(is_kin(key, other) for other in keys))
        return found / whole if whole else 0.0


def held_shares(texts: Sequence[str], asked: frozenset[str]) -> list[float]:
    """For each text the share of what is asked that it holds."""
    reader = PassageReader(Labels(()))
    vocabulary = Vocabulary([reader.line(text, Passage("", None, ())) for text in texts], asked)
    return [vocabulary.held(frozenset(p.keys)) for p in vocabulary.passages]


def is_kin(one: str, other: str) -> bool:
    """Whether one word is the beginning or the end of the other, as in compounds: `Sanierung` of `Dachsanierung`."""
    short, long = sorted((one, other), key=len)
    return len(short) >= _MIN_ROOT_LETTERS and (long.startswith(short) or long.endswith(short))


def rank_passages(passages: Sequence[Passage], asked: Question) -> list[tuple[float, Passage]]:
    """Passages that have to do with `asked`, best first, with their log odds; of equals the later one first."""
    if on_days := [p for p in passages if is_in_ranges(p.date, asked.days)]:
        passages = [p for p in passages if not p.date or is_in_ranges(p.date, asked.days)]
        if asked.all_of_days or not asked.keys():
            return [(0.0, p) for p in on_days]
    scored = [(f.score(), f.passage) for f in passage_features(passages, asked)]
    return sorted(scored, key=lambda pair: (-pair[0], -pair[1].place))


def passage_features(passages: Sequence[Passage], asked: Question) -> list[Features]:
    """The features of each passage that shares words with the question, or is under a heading that does."""
    languages = tuple({p.language for p in passages})
    vocabulary = Vocabulary(passages, asked.keys(languages))
    if not vocabulary.wanted:
        return []
    sources = [list(group) for _, group in groupby(sorted(passages, key=lambda p: (p.source, p.place)), key=lambda p: p.source)]
    worth = [_source_worth(source, vocabulary) for source in sources]
    best = max(worth)
    near = [(source, value / best) for source, value in zip(sources, worth, strict=True) if value and value >= _MIN_SOURCE_SHARE * best]
    needed = {(code, has_value): asked.needed_keys(code, has_value=has_value) for code in languages for has_value in (False, True)}
    return [f for source, share in near for f in _source_features(source, share, vocabulary, asked, needed)]


def _source_worth(source: Sequence[Passage], vocabulary: Vocabulary) -> float:
    counts = Counter(key for p in source for key in (*p.keys, *p.above) if key in vocabulary.wanted)
    return sum(vocabulary.wanted[key] * vocabulary.rarity(key) * n / (n + 0.5) for key, n in counts.items())


def _source_features(
    source: Sequence[Passage], share: float, vocabulary: Vocabulary, asked: Question, needed: Mapping[tuple[str, bool], frozenset[str]]
) -> list[Features]:
    """The features of the passages of one source. `needed`: language, and whether a passage has a value of the asked kind -> the keys
    that an answer holds."""
    weights = _key_weights(source, vocabulary)
    top = max(weights.values())
    wording = re.compile("|".join(map(re.escape, sorted(asked.words(), key=len, reverse=True))) or r"\Z", re.IGNORECASE)
    found: list[Features] = []
    for n, p in enumerate(source):
        if weights.keys().isdisjoint((*p.keys, *p.above)):
            continue
        has_value = asked.is_value(wording.sub(" ", p.text))
        needed_keys = needed[p.language, has_value]
        values = {
            "rarest": max((weights[key] for key in p.keys if key in weights), default=0.0) / top,
            "source": math.log(share),
            "kind": float(has_value),
            "late": n / len(source),
            "rank": math.log(1 + min(p.rank, _MAX_RANK)),
            "cover": len(needed_keys.intersection((*p.keys, *p.above))) / len(needed_keys) if needed_keys else 0.0,
        }
        found.append(Features(p, values))
    return found


def _key_weights(source: Sequence[Passage], vocabulary: Vocabulary) -> dict[str, float]:
    """How much each wanted word says in this source: a word that is all over it does not distinguish its passages."""
    holders, total = Counter(key for p in source for key in {*p.keys, *p.above} if key in vocabulary.wanted), len(source)
    return {key: idf(total, n) * vocabulary.wanted[key] for key, n in holders.items()}
