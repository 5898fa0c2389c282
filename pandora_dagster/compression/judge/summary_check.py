"""Whether a condensed text is one at all: not a reply, a refusal, an echo, a bag of words or a bare list of values.

Knows forms of failure, each with its reason; knows nothing of facts.
"""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pandora_dagster.compression.facts.value_finder import find_values
from pandora_dagster.compression.judge.candidate import NO_SENTENCES
from pandora_dagster.compression.judge.source_support import Support
from pandora_dagster.compression.read.packed_text import ALSO_IN, ALSO_SEEN
from pandora_dagster.compression.words.normalization import key, words
from pandora_dagster.compression.words.word_classes import FUNCTION_WORDS
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.redaction.credentials import credential_spans

_REPLY = re.compile(
    r"^\W*(?:sure|certainly|of course|absolutely|okay|ok|great|got it|understood|no problem|happy to|"
    r"i(?:'|\u2019)?d be happy|i(?:'|\u2019)?ll|i will|"
    r"i can help|here(?:'|\u2019)?s|here is|here are|below is|hello|hi there|thank you for|thanks for|let me)\b[^\n]{0,200}"
    r"(?:summar|compress|condens|shorten|version|help|assist|text|document|content|request|know)",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"^\W*(?:i(?:'|\u2019)?m (?:really )?(?:sorry|unable|not able)|i am (?:sorry|unable|not able)|sorry,|"
    r"i (?:cannot|can(?:'|\u2019)?t|won(?:'|\u2019)?t)|"
    r"unfortunately,? i|as an? (?:ai|language model)|i apologi[sz]e|my apologies)\b",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"\b(?:could|can|would) you (?:please )?(?:provide|share|clarify|specify|send|paste|tell)\b|"
    r"\bwhat would you like\b|\bplease (?:provide|share|paste|clarify)\b"
    r"|\bdo you want me to\b|\bwhich (?:part|text|document)\b|\bhow can i (?:help|assist)\b|\blet me know\b",
    re.IGNORECASE,
)
_LABEL = re.compile(r"^[\w \-.()\[\],]{1,60}[:=]\s*(?=\S)")
_PART = re.compile(r"[;,:=]\s?|\s(?=\w+=)")
_LABELLED = 3
_HELD = re.compile(r": |^\S+ \d{4}-\d\d-\d\d ")
"""A part of the list of single values that names the record they belong to, or their date."""
_SENTENCE_BORDER, _LIST_BORDER = re.compile(r"(?<=[.;])\s+"), re.compile(r"[;,]\s")
_VALUES_ALLOWED = 0.10
_SAMPLED_WORDS, _REACH, _SUPPORTED, _GLUE = 2_000, 8, 0.5, 0.2
_SHORTEST = 25
_REPEATS = 3


@dataclass(frozen=True, slots=True)
class SummaryCheck:
    """`reasons` say why a text is no condensed text; empty for a sound one."""

    reasons: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.reasons


def check_summary(candidate: str, source: str, target: int, counter: TokenMeasure) -> SummaryCheck:
    """Whether `candidate` can stand for `source` in `target` tokens; every reason against it."""
    if not candidate.strip():
        return SummaryCheck(() if not source.strip() else ("empty: a text was expected",))
    if candidate == source:
        tokens = counter.count(candidate)
        return SummaryCheck(() if tokens <= target else (f"echo: the source itself, {tokens} tokens; at most {target} were expected",))
    theirs = key(source)
    against = (*_sizes(candidate, source, target, counter), *_forms(candidate, source, theirs), *Support(candidate, theirs).reasons())
    return SummaryCheck(tuple(reason for reason in against if reason))


def _sizes(candidate: str, source: str, target: int, counter: TokenMeasure) -> tuple[str, ...]:
    tokens = counter.count(candidate)
    found: tuple[str, ...] = ()
    if tokens > target:
        found += (f"inflated: {tokens} tokens; at most {target} were expected",)
    if len(candidate) > len(source) and tokens > counter.count(source):
        found += ("inflated: longer than its source",)
    bare = sum(counter.count(part) for part in _bare_values(candidate, source))
    if tokens > _SHORTEST and bare > _VALUES_ALLOWED * tokens:
        found += (
            f"bare list of values: {bare} of {tokens} tokens stand without a sentence, a row or a name; "
            f"at most {int(_VALUES_ALLOWED * tokens)} may: a larger target leaves room for what the values are about",
        )
    return found


def _forms(candidate: str, source: str, theirs: str) -> tuple[str, ...]:
    """`theirs` is the key of `source`."""
    plain = key(candidate)
    opening = candidate.lstrip()[:400]
    is_quoted = key(opening[:80]) in theirs
    return (
        "" if is_quoted or not _REPLY.search(opening) else "chat reply: speaks to the reader instead of condensing",
        "" if is_quoted or not _REFUSAL.search(opening) else "refusal: declines instead of condensing",
        "" if is_quoted or not (_ASKING.search(opening) and len(words(candidate)) < 120) else "question back: asks instead of condensing",
        "" if len(plain) < 200 or plain != theirs else "echo: the source, spelled differently",
        _repeated(candidate, source),
        "credential: a key or a password stands in it" if credential_spans(candidate) else "",
        _shuffled(candidate, source, f" {theirs} "),
    )


def without_echoes(candidate: str, source: str) -> str:
    """`candidate` with each line once that it says over and over, more often than the source says it."""
    again = {line for line, _ in _echoes(candidate, source)}
    if not again:
        return candidate
    kept: list[str] = []
    seen: set[str] = set()
    for line in candidate.split("\n"):
        if line.strip() not in seen:
            kept.append(line)
        seen |= again & {line.strip()}
    return "\n".join(kept)


def _echoes(candidate: str, source: str) -> Iterator[tuple[str, int]]:
    lines = Counter(line.strip() for line in candidate.split("\n") if len(line.strip()) > 20)
    often = {line: times for line, times in lines.items() if times >= _REPEATS}
    theirs = Counter(line.strip() for line in source.split("\n")) if often else Counter[str]()
    for line, times in often.items():
        if times > theirs[line] and times > source.count(line.partition(": ")[2] or line):
            yield line, times


def _repeated(candidate: str, source: str) -> str:
    return next((f"echo: one line stands {times} times" for _, times in _echoes(candidate, source)), "")


def _shuffled(candidate: str, source: str, theirs_key: str) -> str:
    """A bag of words: few function words, and neighbours that are no neighbours in the source."""
    prose = [line for line in candidate.split("\n") if not _holds_values(line, theirs_key)]
    spoken = words("\n".join(prose))[:_SAMPLED_WORDS]
    if len(spoken) < _SHORTEST or sum(w in FUNCTION_WORDS for w in spoken) > _GLUE * len(spoken):
        return ""
    theirs = words(source)
    wanted = set(spoken)
    near: set[tuple[str, str]] = set()
    for i, word in enumerate(theirs):
        if word in wanted:
            near.update((word, other) for other in theirs[i + 1 : i + 1 + _REACH] if other in wanted)
    pairs = list(itertools.pairwise(spoken))
    supported = sum(pair in near for pair in pairs)
    if supported >= _SUPPORTED * len(pairs):
        return ""
    return f"bag of words: {supported} of {len(pairs)} neighbours are neighbours in the source"


def _holds_values(line: str, source: str) -> bool:
    """Whether a line is a row or a list of values: most of its parts stand in the source as they are."""
    if "|" in line:
        return True
    if not line.startswith(NO_SENTENCES):
        return False
    parts = [value for part in _PART.split(line)[1:] if (value := key(part))]
    return bool(parts) and sum(f" {value} " in source for value in parts) * 2 >= len(parts)


def _bare_values(candidate: str, source: str) -> list[str]:
    """Parts of lines that are nothing but values: outside a table, no line of the source, without another word, and without the
    key and the subject or date that would say what they are. A label speaks for a few values behind it, not for a list."""
    theirs = {line.strip() for line in source.split("\n")}
    found: list[str] = []
    header = False
    for line in candidate.split("\n"):
        header = (line.startswith("#") and not _only_values(line)) or (header and bool(line.strip()))
        if line.startswith(ALSO_IN):
            continue
        if line.startswith(ALSO_SEEN):
            found += [part.partition(" ")[2] for part in line.removeprefix(ALSO_SEEN).split("; ") if not _HELD.search(part)]
        elif line.strip() not in theirs and not line.startswith("|") and not header and not _is_object(line):
            label = _LABEL.match(line)
            bare = list(_bare_parts(line[label.end() :] if label else line))
            found += bare[_LABELLED:] if label else bare
    return found


def _bare_parts(line: str) -> Iterator[str]:
    """The values of sentences that are nothing else, whatever stands between them; of other sentences the parts that are."""
    for sentence in _SENTENCE_BORDER.split(line):
        if _only_values(sentence):
            yield from (value.text for value in find_values(sentence, is_redacted=True))
        else:
            yield from (part for part in _LIST_BORDER.split(sentence) if part.strip() and _only_values(part))


def _is_object(line: str) -> bool:
    """Whether a line is a JSON object, whose members name their values."""
    if not line.startswith("{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _only_values(part: str) -> bool:
    values = list(find_values(part, is_redacted=True))
    starts, ends = [v.start for v in values], [v.end for v in values]
    between = words("".join(part[a:b] for a, b in zip((0, *ends), (*starts, len(part)), strict=True)))
    return bool(values) and (not between or (len(values) > 1 and all(word in FUNCTION_WORDS for word in between)))
