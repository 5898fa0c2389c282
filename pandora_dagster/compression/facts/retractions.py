"""Which sentence an earlier one misleads without: what takes it back, refuses it, moves its date or amount, or stands against it.

Knows English cues and who speaks; knows nothing of weights or layout. Linear in the text: of a word only the last few sentences
that hold it are looked at.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from pandora_dagster.compression.facts.fact_statements import ERROR
from pandora_dagster.compression.facts.fact_types import FactKind
from pandora_dagster.compression.facts.value_finder import find_values
from pandora_dagster.compression.words.courtesy import is_courtesy
from pandora_dagster.compression.words.hinted_patterns import hinted
from pandora_dagster.compression.words.normalization import KeyIndex, key, words
from pandora_dagster.compression.words.word_classes import FUNCTION_WORDS, clauses, is_negation, stem, word_set

# Words around a quoted sentence that take it back: `Forget that I said: ...`, `... That is no longer so.` Knows English cues of
# taking back; knows nothing of facts. What the source itself says around a sentence takes nothing back.

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


_DENIES = re.compile(
    r"\W*(?:(?:sorry|well|hm+|but|and|ok(?:ay)?|yes|then|so)\b[,.\u2013\u2014 ]+)*(?:"
    r"no(?! (?:prob|worr|doubt|wonder|kidding|idea|way|need|matter|one\b))|nope|nah|not(?! (?:at all|bad|only|sure))|never(?! mind)|"
    r"neither|actually|rather|correction|instead|wrong|on the contrary|(?:i(?:'|\u2019)m|i am) afraid|unfortunately|make (?:it|that))\b",
    re.IGNORECASE,
)
"""Begins what turns the sentence before it around."""
_CORRECTS = re.compile(
    r"\W*(?:no[, ]+(?:wait|sorry)|correction|rather|i mean|sorry, (?:i|it|that)|scratch that|make (?:it|that))\b", re.IGNORECASE
)
"""Begins what a speaker says to correct their own last sentence."""
_OFFERS = re.compile(
    r"\b(?:I|we)(?:(?:'|\u2019)d)? (?:(?:can|could|would|will|do) )?"
    r"(?:offer|propose|suggest|want|demand|request|like to|ask (?:for|that|you))\b|"
    r"\b(?:how about|what about|shall (?:we|I)|can (?:we|I|you)|could (?:we|I|you)|may (?:we|I))\b",
    re.IGNORECASE,
)
"""Asks or offers what may be refused."""
_MOVES = hinted(
    re.compile(
        r"\b(?:moved|postponed|changed|shifted|rescheduled|brought forward|put (?:off|back)|delayed|raised|lowered|reduced|increased|cut|"
        r"extended|shortened|replaced|corrected|revised|updated|amended|adjusted)\b (?:\w+ ){0,4}?(?:to|by|until|till|from|on|with)\b|"
        r"\b(?:instead of|rather than|no longer|(?:is|are) now)\b",
        re.IGNORECASE,
    ),
    "ed |brought forward|put off|put back|cut |instead of|rather than|no longer|is now|are now",
)
"""Gives a matter another date, amount or name than it had."""
_VOIDS = hinted(
    re.compile(
        r"\b(?:no longer (?:valid|applies|apply|in force)|(?:is|are|was|were|been|becomes?) (?:\w+ ){0,2}?"
        r"(?:void|withdrawn|superseded|replaced|obsolete|cancelled|canceled|expired))\b",
        re.IGNORECASE,
    ),
    "no longer|void|withdrawn|superseded|replaced|obsolete|cancel|expired",
)
"""Says of something named that it holds no more."""
_CALENDAR = word_set(
    "january february march april may june july august september october november december monday tuesday wednesday thursday friday "
    "saturday sunday today tomorrow yesterday"
)
_OPPOSITES = (
    (("in favour", "in favor", "for", "pro", "pros", "ayes", "yes"), ("against", "opposed", "contra", "con", "cons", "noes", "no")),
    (("advantages", "benefits", "strengths"), ("disadvantages", "drawbacks", "weaknesses", "risks")),
    (("present", "attending"), ("absent", "excused", "apologies")),
    (("included", "allowed", "accepted", "approved", "passed", "do"),
     ("excluded", "not included", "forbidden", "not allowed", "rejected", "not approved", "failed", "don't", "do not")),
)  # fmt: skip
"""Labels of lists that say together who or what stands on which side."""
_LABEL = re.compile(r"[\s>\-*+_]*([^\W\d][\w'\u2019 ]{1,24}?)(?:\*\*)?:")
_TOLD = frozenset((FactKind.MONEY, FactKind.DATE, FactKind.TIME, FactKind.PERCENTAGE, FactKind.QUANTITY, FactKind.NUMBER))
_NAMED = re.compile(r"\b([A-Za-z][\w\-]*)[ #:=]{1,2}#?((?=[\w\-.]*\d)[\w\-]{2,})\b|\b((?=[\w\-]*\d)(?=[\w\-]*[A-Za-z])[\w\-]{5,})\b")
"""What a line of a log is about: `payment 7741`, `INC-20881`."""
_MOST_NAMED, _NEAR, _BEST, _FRAGMENT, _FIRST, _STEM = 4, 12, 3, 3, 3, 4
"""Lines that share what an error is about; sentences of a word that are looked at; those that one sentence moves; words of a sentence
that says nothing alone; sentences of a reply that may refuse; letters by which words of one stem agree."""


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    """A sentence, in line `line`; `speaker` is "" in prose."""

    text: str
    line: int
    speaker: str = ""


def answers(said: Sequence[SpokenSentence]) -> dict[int, tuple[int, ...]]:
    """Number of a sentence -> the numbers of those that it misleads without."""
    found: defaultdict[int, dict[int, None]] = defaultdict(dict)
    for links in (_replies(said), _moved(said), _voided(said), _opposed(said), _same_errand(said)):
        for one, other in links:
            found[one][other] = None
    return {one: tuple(others) for one, others in found.items()}


def with_answers(numbers: Iterable[int], answered: Mapping[int, Sequence[int]]) -> set[int]:
    """Sentences with all that they mislead without."""
    found: set[int] = set()
    waiting = list(numbers)
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += answered.get(number, ())
    return found


def _replies(said: Sequence[SpokenSentence]) -> Iterator[tuple[int, int]]:
    """What is said in a turn -> what refuses it in the next; a refusal in a word -> the sentence behind it, and what then is settled."""
    turns = _turns(said)
    refused: dict[int, int] = {}
    """A refusal -> what it refuses."""
    for before, turn in pairwise(turns):
        for place, number in enumerate(turn[:_FIRST]):
            opens = place == 0 and bool(_DENIES.match(said[number].text))
            if is_courtesy(said[number].text) or not (opens or _negates(said[number].text)):
                continue
            target = _shared(said, before if opens else [n for n in before if _is_open(said[n].text)], number)
            target = before[-1] if target < 0 and opens else target
            if target >= 0 and not is_courtesy(said[target].text):
                yield target, number
                refused[number] = target
                if len(said[number].text.split()) <= _FRAGMENT and place + 1 < len(turn):
                    yield number, turn[place + 1]
                    refused[turn[place + 1]] = target
        settled, open_ = turn[0], [number for number in before if number in refused]
        if open_ and settled not in refused and _shared(said, [*(refused[n] for n in open_), *open_], settled) >= 0:
            yield from [(open_[-1], settled)] if _kinds(said[settled].text) else []
    for number in range(1, len(said)):
        if said[number].line == said[number - 1].line and _CORRECTS.match(said[number].text):
            yield number - 1, number


def _turns(said: Sequence[SpokenSentence]) -> list[list[int]]:
    """Numbers of what one speaker says without a break."""
    turns: list[list[int]] = []
    last = ""
    for number, sentence in enumerate(said):
        if not sentence.speaker:
            last = ""
        elif sentence.speaker == last:
            turns[-1].append(number)
        else:
            turns.append([number])
            last = sentence.speaker
    return turns


def _is_open(text: str) -> bool:
    """Whether a sentence may be refused without a `No`: it offers or asks for something, or gives a date or an amount."""
    return bool(_OFFERS.search(text) or _kinds(text).keys() - {FactKind.NUMBER})


def _shared(said: Sequence[SpokenSentence], before: Sequence[int], number: int) -> int:
    """The last of the sentences `before` that shares a word with another, -1 for none."""
    own = _words(said[number].text)
    return next((n for n in reversed(before) if own & _words(said[n].text)), -1)


def _moved(said: Sequence[SpokenSentence]) -> Iterator[tuple[int, int]]:
    """What gives a date or an amount -> what gives the same matter another one later."""
    holding: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_NEAR))
    for number, sentence in enumerate(said):
        own = {word for word in _words(sentence.text) if word.isalpha() and word not in _CALENDAR and len(word) >= _STEM}
        if _MOVES.search(sentence.text) and (values := _kinds(sentence.text)):
            near = Counter(n for word in own for n in holding[word[:_STEM]] if _agrees(word, said[n].text))
            told = {n: count for n, count in near.items() if _differs(_kinds(said[n].text), values)}
            most = max(told.values(), default=0)
            yield from ((n, number) for n in sorted((n for n, count in told.items() if count == most), reverse=True)[:_BEST])
        for word in {word[:_STEM] for word in own}:
            holding[word].append(number)


def _voided(said: Sequence[SpokenSentence]) -> Iterator[tuple[int, int]]:
    """What names a thing by its number -> what says later that this holds no more."""
    ends = [(number, _coded(sentence.text)) for number, sentence in enumerate(said) if _VOIDS.search(sentence.text)]
    wanted = {name for _, names in ends for name in names}
    holding: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_NEAR))
    at = 0
    for number, sentence in enumerate(said if wanted else ()):
        own = _coded(sentence.text) & wanted
        if at < len(ends) and ends[at][0] == number:
            yield from ((before, number) for name in sorted(own) for before in holding[name])
            at += 1
        for name in own:
            holding[name].append(number)


def _coded(text: str) -> frozenset[str]:
    """The names of a text that have a digit and a letter: `PQ-2231`."""
    names = ((m.group(2) or m.group(3)).lower() for m in _NAMED.finditer(text))
    return frozenset(name for name in names if not name.replace("-", "").isdigit() and any(c.isalpha() for c in name))


def _agrees(word: str, text: str) -> bool:
    """Whether a text has the word, or one that goes on from its stem: `handed`, `handover`."""
    return any(min(len(word), len(other)) >= _STEM and (word.startswith(other) or other.startswith(word)) for other in _words(text))


def _opposed(said: Sequence[SpokenSentence]) -> Iterator[tuple[int, int]]:
    """Neighbours whose labels stand against each other, both ways."""
    labels = [key(found.group(1)) if (found := _LABEL.match(sentence.text)) else "" for sentence in said]
    for number, (one, other) in enumerate(pairwise(labels)):
        if one and other and said[number + 1].line - said[number].line <= 2:
            for pair in _OPPOSITES:
                if (one in pair[0] and other in pair[1]) or (one in pair[1] and other in pair[0]):
                    yield number, number + 1
                    yield number + 1, number


def _same_errand(said: Sequence[SpokenSentence]) -> Iterator[tuple[int, int]]:
    """A line that logs an error -> the later lines about the same thing, where these are few."""
    errors = {number: _named(sentence.text) for number, sentence in enumerate(said) if ERROR.search(sentence.text)}
    wanted = {name for names in errors.values() for name in names}
    lines: defaultdict[str, list[int]] = defaultdict(list)
    for number, sentence in enumerate(said if wanted else ()):
        for name in _named(sentence.text) & wanted:
            lines[name].append(number)
    for number, names in errors.items():
        for name in sorted(names):
            if len(lines[name]) <= _MOST_NAMED:
                yield from ((number, other) for other in lines[name] if other > number)


def _named(text: str) -> frozenset[str]:
    return frozenset(f"{m.group(1)} {m.group(2)}".lower() if m.group(2) else m.group(3).lower() for m in _NAMED.finditer(text))


def _negates(text: str) -> bool:
    return any(is_negation(word) for word in text.split())


@lru_cache(4_096)
def _words(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(text) if word not in FUNCTION_WORDS)


def _kinds(text: str) -> dict[FactKind, set[str]]:
    """The dates, amounts and numbers of a text."""
    found: defaultdict[FactKind, set[str]] = defaultdict(set)
    for value in find_values(text, is_redacted=True):
        if value.kind in _TOLD:
            found[value.kind].add(key(value.text))
    return dict(found)


def _differs(one: Mapping[FactKind, set[str]], other: Mapping[FactKind, set[str]]) -> bool:
    """Whether two give different values of one kind."""
    return any(kind in one and not one[kind] & values for kind, values in other.items())
