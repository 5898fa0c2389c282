"""Words around a quoted sentence that take it back: `Forget that I said: ...`, `... That is no longer so.`

Knows English cues of taking back; knows nothing of facts. What the source itself says around a sentence takes nothing back.
"""

import re

from pandora_dagster.compression.language import clauses, is_negation
from pandora_dagster.compression.normal import KeyIndex, key

_CUE = re.compile(
    r"\b(?:forget|ignore|disregard|scrap|drop|revoke[ds]?|retract(?:s|ed)?|withdr[ae]wn?|withdrew|cancel(?:s|led|ed)?|undone|undo|lifted|"
    r"false|wrong|untrue|mistaken(?:ly)?|mistake|joke|joking|outdated|obsolete|expired|superseded|overruled|void|invalid|solved|"
    r"resolved|fixed|gone|used to|formerly|previously|once|earlier rule|old rule|myth|pretend(?:ed)?|imagine|suppose|instead of)\b",
    re.IGNORECASE,
)
_OPENS = re.compile(r"(?:[:\u2013\u2014\"\u201c\u00ab'(]|\bthat)\s*$")
_BACK = re.compile(r"^\W*(?:(?:but|and|now|actually|however|yet),? )?(?:that|this|it|which|these|those|not)\b", re.IGNORECASE)
_LOOKED_AT = 20
_REACH = 160


def is_taken_back(said: str, text: str, source: KeyIndex) -> bool:
    """Whether `said` stands in `text`, and each time in words of denial that `source` does not have."""
    text, said = text.lower(), said.lower()
    at, number = text.find(said), 0
    while at >= 0 and number < _LOOKED_AT:
        if not (
            _denies_before(text[max(0, at - _REACH) : at], said, source) or _denies_behind(text[at + len(said) :][:_REACH], said, source)
        ):
            return False
        at, number = text.find(said, at + len(said)), number + 1
    return number > 0


def _denies_before(before: str, said: str, source: KeyIndex) -> bool:
    """What leads to a sentence, from the line above where that one ends with a colon."""
    above, _, line = before.rpartition("\n")
    if not line.strip() and above.rstrip().endswith(":"):
        line = above.rpartition("\n")[2]
    frame = clauses(line)[-1]
    return bool(_OPENS.search(frame)) and _denies(frame) and not source.has(key(f"{frame} {said}"))


def _denies_behind(behind: str, said: str, source: KeyIndex) -> bool:
    """What is said right behind of the sentence before."""
    after = clauses(behind.lstrip(" .!?\"'\u201d)\n"))[0].split("\n")[0]
    return bool(_BACK.match(after)) and _denies(after) and not source.has(key(after))


def _denies(frame: str) -> bool:
    return bool(_CUE.search(frame)) or any(is_negation(word) for word in frame.split())
