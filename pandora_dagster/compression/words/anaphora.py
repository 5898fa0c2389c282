"""Which sentence leans on the one before it: by a pronoun, a connective, a label, or because it goes on or turns it around.

Knows English cues of the beginning of a sentence; knows nothing of layout or weights.
"""

import re

_LEANS = re.compile(
    r"[\"'(*_]*(?:he|she|it(?!\s+(?:is|was|has been|would be|seems)\s+\w+\s+(?:that|to|whether|for)\b)|they|them|his|her|hers|its|"
    r"their|theirs|"
    r"(?:this|that|these|those|such)(?!\s+[A-Z])(?!\s+(?:agreement|contract|document|page|section|clause|policy|guide|letter|e-?mail|message|"
    r"file|report|order|notice|offer|manual|release|version)s?\b)|both|neither|either|the (?:former|latter|same|others?|second|third|rest)|"
    r"here|there(?!\s+(?:is|are|was|were|has|have|will|must|may)\b)|and|or|so|then|thus|hence|therefore|otherwise|moreover|furthermore|besides|"
    r"also|accordingly|consequently|since then|(?:after|because of|despite|for|in|with) (?:that|this|these|those|it)\b|as a result|"
    r"for (?:example|instance)|if (?:so|not)|only then|whether (?:that|this|it)|e\.g\.|i\.e\.|one of them|each of them|none of them)\b",
    re.IGNORECASE,
)
_TURNS = re.compile(
    r"[\"'(*_>\-\s]*(?:(?:however|but|yet|nevertheless|nonetheless|instead|in fact|actually|in reality|on the contrary|conversely|"
    r"unfortunately|"
    r"except)\b|(?:refuted|false|wrong|untrue|incorrect|not true|correction|verdict|confirmed|true|partly true|mostly \w+|"
    r"unproven|disputed|denied|rejected|reality|rebuttal|reply|answer|a|response|result)\W{0,3}:)",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(?:is|was|are|were|has been|have been|proved|turned out) (?:\w+ly )?(?:wrong|false|untrue|incorrect|"
    r"not (?:true|correct)|outdated|obsolete|refuted|withdrawn|superseded|retracted|cancelled|void)\b",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[\s>\-*+]*(?:\d{1,3}[.)] )?(?:\*\*[^*\n]{1,60}\*\*:?|\w{1,24}(?: \w{1,24}){0,3}[.:](?=\s|$))")
_FINISHED = (".", "!", "?", ":", ";", "\u3002", "\uff01", "\uff1f", "|", '"', ")")
_LINE = 30
"""Characters of a line that may have been broken because it was full."""


def leans(sentence: str) -> bool:
    """Whether a sentence takes up what stands before it, so that it says nothing sure without that."""
    return bool(_LEANS.match(sentence.lstrip(" >"))) or turns(sentence)


def turns(sentence: str) -> bool:
    """Whether a sentence takes back, judges or answers what stands before it, so that this misleads without it."""
    return bool(_TURNS.match(sentence) or _DENIES.search(sentence))


def is_labelled(sentence: str) -> bool:
    """Whether the first sentence of a line says what the others are about: `Refuted: ...`, `**Asked:** ...`, `2. Term.`"""
    return bool(_LABEL.match(sentence))


def goes_on(above: str, below: str) -> bool:
    """Whether a sentence was broken over two lines."""
    return len(above) >= _LINE and not above.rstrip().endswith(_FINISHED) and below.lstrip(" >")[:1].islower()
