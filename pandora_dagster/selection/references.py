"""Whether a query refers to earlier conversation (002 section 4, "Reference Detection"). A rule over its words: no call, no document."""

import re
from dataclasses import dataclass
from typing import Literal

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
