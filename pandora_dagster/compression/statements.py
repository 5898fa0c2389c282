"""Sentences that are facts as a whole: errors, constraints with their force, decisions, claims with their source.

Knows English cues; knows nothing of rank.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pandora_dagster.compression.facts import FactKind
from pandora_dagster.compression.language import FUNCTION_WORDS, content_stems, is_negation, stem, word_set
from pandora_dagster.compression.normal import words

ERROR = re.compile(
    r"^\W{0,4}(?:error|exception|fatal|traceback|panic|failed|failure)\b"
    r"|\b\w*(?:Error|Exception)\b\s*:|\berror\s*:|\bHTTP/?\d?[\d.]* [45]\d\d\b",
    re.IGNORECASE | re.MULTILINE,
)
FORCE = re.compile(
    r"\b(?:mustn't|must not|must(?! have been| have had| be (?:so|such|really|very|nice|great|hard|tough|proud|excit|amaz|fun|love))|"
    r"shall|shall not|have to|has to|need to be|never|at most|at least|no more than|no less than|not more than|"
    r"no later than|no earlier than|only (?:if|when|with|on|in|the|a)|under \$?\d|below \$?\d|less than|more than \$?\d|up to \$?\d|"
    r"maximum|minimum|without|except|cannot|can't|don't want|do not want|won't accept|avoid|unless)\b",
    re.IGNORECASE,
)
PREFERENCE = re.compile(r"\b(?:prefer(?:s|red|ably)?|rather|ideally|would like|favou?r)\b", re.IGNORECASE)
DECISION = re.compile(
    r"\b(?:decided|approved|rejected|agreed|confirmed|selected|chosen|chose|concluded|accepted|declined|resolved|"
    r"(?:has|have) been (?:successfully )?\w+ed|"
    r"(?:successfully|already) \w+ed|status: ?\w+|outcome|we will go with|go ahead|proceed with)\b",
    re.IGNORECASE,
)
CLAIM_SOURCE = re.compile(r"https?://\S+|\[\d{1,4}\](?![(\[:])|\(\w[\w\-]*\.(?:com|org|net|io|gov|edu|de|co\.uk)\)|@\s?\$")
_AMOUNT = re.compile(r"\d")
_SENTENCE = re.compile(r"[^\n.!?]*(?:[.!?](?!\s|$|\")[^\n.!?]*)*[.!?]*[\"')]*")
_LIMIT = re.compile(rf"{FORCE.pattern}|\d+(?:[.,]\d+)*", re.IGNORECASE)
_SHORTEST, _LONGEST = 8, 400
_TELLING = word_set("one once twice first second before after until only within between off")
"""Function words that tell one constraint from another."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence or line at characters `start` to `end`; `is_binding` for a constraint that is more than a preference."""

    kind: FactKind
    text: str
    start: int
    end: int
    is_binding: bool = True


def statements(text: str) -> Iterator[Statement]:
    """The sentences of a prose text that are facts as a whole, in order."""
    if not (ERROR.search(text) or FORCE.search(text) or PREFERENCE.search(text) or DECISION.search(text) or CLAIM_SOURCE.search(text)):
        return
    at = 0
    for line in text.split("\n"):
        yield from _of_line(line, at)
        at += len(line) + 1


def _of_line(line: str, at: int) -> Iterator[Statement]:
    if ERROR.search(line) and len(line) <= _LONGEST:
        if trimmed := line.strip():
            start = at + line.index(trimmed[0])
            yield Statement(FactKind.ERROR, trimmed, start, start + len(trimmed))
        return
    for found in _SENTENCE.finditer(line):
        sentence = found.group().strip()
        if not _SHORTEST <= len(sentence) <= _LONGEST:
            continue
        start = at + found.start() + found.group().index(sentence[0])
        if kind := _kind(sentence):
            yield Statement(kind, sentence, start, start + len(sentence), is_binding=not PREFERENCE.search(sentence))


def _kind(sentence: str) -> FactKind | None:
    if sentence.endswith("?"):
        return None
    if FORCE.search(sentence) or PREFERENCE.search(sentence):
        return FactKind.CONSTRAINT
    if CLAIM_SOURCE.search(sentence) and _AMOUNT.search(CLAIM_SOURCE.sub("", sentence)):
        return FactKind.CLAIM
    return FactKind.DECISION if DECISION.search(sentence) else None


def distinguishing(text: str) -> frozenset[str]:
    """Stems of the words by which a statement differs from others: all but function words, fillers and words of force."""
    plain = FORCE.sub(" ", text.replace("_", " "))
    own = frozenset(stem(word) for word in words(plain) if word not in FUNCTION_WORDS or word in _TELLING)
    return own or frozenset(content_stems(text.replace("_", " ")))


def is_same_force(one: str, other: str) -> bool:
    """Whether `other` binds as `one` does: by the same words, to the same numbers in the same order, and denies where it denies."""
    theirs = iter(_limits(other))
    return _forces(one) == _forces(other) and _denies(one) == _denies(other) and all(limit in theirs for limit in _limits(one))


def _forces(text: str) -> frozenset[str]:
    return frozenset(" ".join(found.group().lower().split()) for found in FORCE.finditer(text))


def _limits(text: str) -> list[str]:
    """Words of force and numbers, in order."""
    return [" ".join(found.group().lower().replace(",", "").split()) for found in _LIMIT.finditer(text)]


def _denies(text: str) -> bool:
    return any(is_negation(word) for word in text.split())
