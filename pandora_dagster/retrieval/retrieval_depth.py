"""How far back retrieval looks (002 section 4, "Retrieval Depth by Stage"): depth, threshold, other sessions. Pure numbers and rules.

Thresholds are quantiles of the ranker in use (DECISIONS 27): 0.6 leaves the best 40 % of what it found.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from pandora_dagster.contracts.turns import Candidate
from pandora_dagster.errors import InputError

# Whether a query refers to earlier conversation (002 section 4, "Reference Detection"). A rule over its words: no call, no
# document.

ReferenceKind = Literal["earlier", "agreement", "order", "same"]


@dataclass(frozen=True, slots=True)
class Reference:
    """What kind of thing is referred to, and by which words of the query."""

    kind: ReferenceKind
    words: str


_WE = r"(?:we|i|you)"
_TALK = (
    r"(?:sa(?:y|id)|t(?:ell|old)|mention(?:ed)?|ask(?:ed)?|talk(?:ed)?|discuss(?:ed)?|sp(?:eak|oke)|show(?:ed|n)?|recommend(?:ed)?"
    r"|suggest(?:ed)?|describe[d]?|explain(?:ed)?|list(?:ed)?|wr[io]te|cho?ose|decided?|order(?:ed)?|book(?:ed)?|look(?:ed)? at|find|found)"
)
_NUMBER = (
    r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|other|former|latter|next|previous|\d{1,2}(?:st|nd|rd|th))"
)
_THING = (
    r"(?:ones?|options?|choices?|items?|suggestions?|recommendations?|ideas?|results?|points?|steps?|questions?|answers?|links?|lists?)"
)
_KINDS: tuple[tuple[ReferenceKind, re.Pattern[str]], ...] = (
    (
        "agreement",
        re.compile(
            rf"\b(?:{_WE} (?:had |have |ha(?:ve|d) )?(?:agreed|promised|committed|settled)|did {_WE} (?:agree|promise|commit|settle)"
            r"|(?:our|your|my) (?:agreement|promise|commitment|plan)|as (?:agreed|promised|planned))\b",
            re.IGNORECASE,
        ),
    ),
    (
        "earlier",
        re.compile(
            rf"\b(?:(?:did|have|had) {_WE} (?:\w+ )?{_TALK}|{_WE}(?:'ve|’ve| have| had)? (?:just |already |once )?{_TALK}"
            rf"(?= (?:about|earlier|before|last|yesterday|that|me|you|to)\b)|(?:what|as|which|where|when) {_WE} (?:just |already )?{_TALK}"
            r"|(?:last|previous|earlier) (?:time|conversation|chat|session|message|discussion|answer)|earlier (?:today|this \w+)"
            r"|(?:go(?:ing)?|com(?:e|ing)|get(?:ting)?) back to|remind me|you (?:still )?(?:remember|recall)"
            r"|(?:remember|recall) (?:when|what|that|how|the))\b",
            re.IGNORECASE,
        ),
    ),
    (
        "same",
        re.compile(
            r"\b(?:(?:as|like) (?:before|last time|usual|always|earlier|yesterday|ever)|same (?:\w+ )?(?:as|again|ones?|thing)|the usual"
            r"|(?:once|yet) again|one more time|the way (?:we|i|you) did)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "order",
        re.compile(rf"\b(?:the {_NUMBER} {_THING}|(?:option|choice|alternative) (?:\d{{1,2}}|[a-e])|the latter|the former)\b", re.I),
    ),
)
"""In order: an agreement also refers to what was said."""


def find_reference(query: str) -> Reference | None:
    """The first reference to earlier conversation in a person's own words, None where there is none."""
    for kind, pattern in _KINDS:
        if found := pattern.search(query):
            return Reference(kind, found.group())
    return None


Depth = Literal["none", "minimal", "light", "full"]
OFFERED: Mapping[Depth, int] = MappingProxyType({"none": 0, "minimal": 5, "light": 20, "full": 40})
"""Depth -> turns that the index offers; light is 004 section 4.1's twenty."""
_ASSISTANT: dict[str, Depth] = {"greeting": "none", "navigation": "minimal"}
_MEDIATION: dict[str, Depth] = {
    "onboarding": "minimal",
    "witnessing": "light",
    "perspective": "light",
    "need_mapping": "full",
    "repair": "full",
    "high_distress": "none",
    "avoid_recall": "none",
    "stage_enforcement": "minimal",
}
_STAGE_THRESHOLDS = {"onboarding": 0.60, "witnessing": 0.65, "perspective": 0.55, "need_mapping": 0.50, "repair": 0.50}


@dataclass(frozen=True, slots=True)
class DepthPolicy:
    """One policy's table, keyed by stage or intent as its windows are."""

    name: str
    depths: Mapping[str, Depth] = field(default_factory=lambda: MappingProxyType(_ASSISTANT))
    other_depth: Depth = "light"
    thresholds: Mapping[str, float] = field(default_factory=lambda: MappingProxyType(dict[str, float]()))
    """Stage or intent -> quantile under which what was found is left out; absent: nothing is, RETRIEVAL judges."""
    other_sessions: Literal["own", "consented"] = "own"
    """`own`: the person's other sessions are searched; `consented`: only once the person consents."""
    linked_weight: float = 1.3
    """How much more a turn of a linked session counts (002 section 4: a 30 % boost)."""


DEPTH_POLICIES: Mapping[str, DepthPolicy] = MappingProxyType(
    {
        "assistant": DepthPolicy("assistant"),
        "mediation": DepthPolicy(
            "mediation",
            depths=MappingProxyType(_MEDIATION),
            other_depth="minimal",
            thresholds=MappingProxyType(_STAGE_THRESHOLDS),
            other_sessions="consented",
        ),
    }
)
"""The shipped policies. Two people meet in a mediation: what one session heard reaches another only with consent."""


def depth_policy(name: str) -> DepthPolicy:
    """A shipped policy; raises InputError."""
    try:
        return DEPTH_POLICIES[name]
    except KeyError:
        raise InputError(f"policy {name!r}: expected one of {', '.join(DEPTH_POLICIES)}") from None


@dataclass(frozen=True, slots=True)
class RetrievalScope:
    """How retrieval looks for one query, and why."""

    depth: Depth
    why: str
    threshold: float
    crosses: bool
    """Whether other sessions of the person are searched."""
    linked_weight: float

    @property
    def offered(self) -> int:
        return OFFERED[self.depth]


def retrieval_scope(policy: DepthPolicy, kind: str, referred: Reference | None, *, consents: bool) -> RetrievalScope:
    """How to look for a query of stage or intent `kind`. A reference to earlier conversation looks fully, except where the kind
    allows no recall at all; it lifts no consent."""
    depth, why = policy.depths.get(kind, policy.other_depth), kind
    if referred and depth != "none":
        depth, why = "full", f"the query refers back: {referred.words}"
    crosses = policy.other_sessions == "own" or consents
    return RetrievalScope(depth, why, policy.thresholds.get(kind, 0.0), crosses, policy.linked_weight)


def filter_candidates(found: Sequence[Candidate], how: RetrievalScope, *, session: str, linked: frozenset[str]) -> tuple[Candidate, ...]:
    """The candidates that are offered, best first: of allowed sessions, linked ones weighted, over the threshold, as deep as `how`."""
    allowed = [c for c in found if how.crosses or c.row.session_id == session]
    weighted = [Candidate(c.row, c.score * (how.linked_weight if c.row.session_id in linked else 1.0)) for c in allowed]
    least = quantile([c.score for c in weighted], how.threshold)
    kept = [c for c in weighted if c.score >= least]
    return tuple(sorted(kept, key=lambda c: -c.score)[: how.offered])


def quantile(values: Sequence[float], share: float) -> float:
    """The value that at least `share` of the values do not exceed, the smallest for 0; 0.0 where there is none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
