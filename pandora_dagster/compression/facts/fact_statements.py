"""Sentences that are facts as a whole: errors, constraints with their force, decisions, claims with their source.

Knows English cues, and those of four languages beside; knows nothing of rank.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pandora_dagster.compression.facts.fact_types import FactKind
from pandora_dagster.compression.words import asian_forms, european_forms
from pandora_dagster.compression.words.hinted_patterns import Scripts, hinted
from pandora_dagster.compression.words.normalization import ungrouped, words
from pandora_dagster.compression.words.word_classes import FUNCTION_WORDS, content_stems, is_negation, stem, word_set
from pandora_dagster.language.sentences import mask_inner_points

_PROGRAM_ERRORS = "Permission denied|No such file or directory|[Cc]ommand not found|Connection (?:refused|reset|timed out)"
_STAMP = r"[\[(<]?(?:[A-Z][a-z]{2} {1,2})?\d[\d\-:.,TZ+/ ]{3,40}[\])>]?"
LOGGED = re.compile(rf"^\s*(?:{_STAMP}\s*)(?=[^\n]{{0,60}}?\b(?:ERROR|FATAL|CRITICAL|SEVERE)\b(?!\s*=))", re.MULTILINE)
"""The time before a line that a program logged with a level of error: equal errors are equal whenever they happened."""
_ERROR = re.compile(
    r"(?i:^\W{0,4}(?:error|exception|fatal|traceback|panic|failed|failure)\b"
    r"|\b\w*(?:Error|Exception)\b\s*:|\berror\s*:|\bHTTP/?\d?[\d.]* [45]\d\d\b"
    r"|\blevel=\"?(?:error|fatal|critical)\b|\b(?:segmentation fault|core dumped)\b"
    r"|\bexit(?:ed)?(?: with)?(?: non-?zero)?(?: exit)? (?:status|code)(?: code)?:? ?-?[1-9])"
    rf"|{LOGGED.pattern}|\bERR!"
    r"|^\W{0,4}(?:[\w.]+\.)?[A-Z][a-z]\w*(?:Error|Exception)[ \t]*$"
    rf"|^[\w./\-]+: \(\d+\) \S|^[\w./\-]+: [^\n]{{0,200}}\b(?:{_PROGRAM_ERRORS})[ \t]*$",
    re.MULTILINE,
)
ERROR = hinted(
    _ERROR,
    "error|exception|fatal|critical|severe|traceback|panic|fail|http|segmentation|core dumped|exit|err!|: (|permission denied|no such file|"
    "command not found|connection refused|connection reset|connection timed out",
)
_LIMITS = (
    r"maximum|minimum|(?:max|min)\.?:? ?(?:of )?[$€£]?\d[\d.,]*|at the (?:latest|earliest)|"
    r"at most|at least|no more than|no less than|not more than|no later than|no earlier than"
)
_DEONTIC = (
    r"mustn't|must not|(?<!\ba )must(?!['\u2019]ve|-| have (?:\w+(?:ed|wn|elt)|begun|run|gone|done|lost|left|had|put|made|"
    r"(?:be|se|tak|giv|gott|forgott|eat|fall|stol|brok|chos|spok|writt|driv|hidd|froz|beat)en)\b)"
    r"(?! (?:really |just )?(?:feel|love|know|think|seem|mean|miss|enjoy|sound|say|admit)\b)"
    r"(?! be (?:so|such|really|very|nice|great|hard|tough|scary|proud|excit\w*|amaz\w*|fun|lovely|awesome|\w+ing)\b)|"
    r"shall|forbidden|prohibited|not (?:allowed|permitted|to exceed)|mandatory|obligatory|(?:are|is|be|am) (?:required|obliged) to|"
    r"(?<!\bI )(?<!\bwe )(?<!\bit )(?<!this )(?<!that )(?<!there )may not(?! (?:be"
    r"(?! (?!need|requir|interest|excit|surpris|prepar|relat|support|finish|tir|concern)"
    r"(?:\w{2,}ed|\w+wn|\w+ght|\w+elt|taken|given|written|broken|spoken|chosen|eaten|put|cut|sold|told|held|sent|made|paid|left|kept|built|read)\b)"
    r"|have|know|seem|look|want|need|like|get|feel|mean)\b)|"
    rf"only (?:\w+ ){{1,4}}(?:may|must|shall)|{european_forms.BINDING}"
)
_FIGURE = r"(?= (?:[$€£¥] ?|(?:USD|EUR|GBP|JPY|CHF) )?\d)"
"""Looked at, not taken: the figure is compared by itself."""
_STATES = "know|think|have|like|love|want|need|see|remember|believe|feel|understand|care|recall|seem|look|get|agree"
IMPERATIVE = hinted(
    re.compile(
        r"(?:^\W{0,4}(?:and |but )?(?:please,? |kindly )?|\bplease |[;:] )(?:do not|don't|don\u2019t) "
        rf"(?!(?:{_STATES}|worry|mind|hesitate|mention|even|let|be|you|I|we|they|really|forget)\b)[a-z]"
        r"|^\W{0,4}no (?!(?:one|idea|problem|need|doubt|way|matter|sign|news|thanks)\b)(?:\w+ ){1,4}(?:until|before|after|unless|without)\b"
        r"|^\W{0,4}no (?!kidding|thing)\w{2,}ing(?: (?:in|on|at|inside|near) [\w ]{1,40})?[.!]*$"
        rf"|{european_forms.IMPERATIVE}|{asian_forms.IMPERATIVE}",
        re.IGNORECASE,
    ),
    "don|do not|no |bitte|ne |por favor|per favore|不要|勿|でください",
)
"""Prohibitions without a modal verb: negated imperatives that are no set phrase and no verb of state, `No hiring until ...`."""
_STRICT = rf"\b(?:{_DEONTIC}|{_LIMITS}|\d+ \w+ only)\b"
STRICT = Scripts.of(_STRICT, asian_forms.BINDING)
"""What binds whoever says it; other words of force bind where a person speaks to us."""
_FORCE = (
    rf"\b(?:{_DEONTIC}|{_LIMITS}|\d+ \w+ only|have to|has to|need to be|never|"
    rf"only (?:if|when|with|on|in|the|a)|less than|(?:under|below|within|up to|more than){_FIGURE}|"
    rf"{european_forms.FORCE}|without|except|cannot|can't|don't want|do not want|won't accept|(?:I|we) refuse to|avoid|unless)\b"
)
FORCE = Scripts.of(_FORCE, f"{asian_forms.BINDING}|{asian_forms.FORCE}")
_DUTY = Scripts.of(rf"\b(?:{_DEONTIC})\b", asian_forms.BINDING)
_CLAUSE = re.compile(r"[,;:\uff0c\uff1b\uff1a\u2013\u2014]|\b(?:and|but|while|though|although|und|aber|mais|et|pero|ma)\b", re.IGNORECASE)
_NAMED = hinted(
    re.compile(
        r"\b(?:limit|budget|cap|ceiling|deadline)(?: [\w'\u2019\-]+){0,5}?(?::| (?:is|are|of|at|to)\b)[^\n]{0,40}\d"
        r"|\d[^\n]{0,24} (?:is|as) (?:[\w\-]+ ){0,3}(?:limit|budget|cap|ceiling|deadline)\b",
        re.IGNORECASE,
    ),
    "limit|budget|cap|ceiling|deadline",
)
"""A limit by its name, where no word of force stands: `My budget is 500`."""
_BUT_NOT = hinted(
    re.compile(
        r"^\W{0,4}(?:please,? |then |and |also )?(?:call|send|use|put|pay|book|write|ship|deliver|take|"
        r"give|show|tell|move|change|add|ask|mail|go)\b[^\n]*, "
        r"(?:but )?not (?:at|to|from|with|on|in|by|via|for|before|after|through|the|my|our)\b",
        re.IGNORECASE,
    ),
    "not ",
)
"""What is asked for with what it must not be: `Send it to Ann, not to my old address`."""
PREFERENCE = hinted(
    re.compile(
        r"\b(?:prefer(?:s|red|ably)?|rather|ideally|would like|favou?r|" + european_forms.PREFERENCE + rf")\b|{asian_forms.PREFERENCE}",
        re.IGNORECASE,
    ),
    f"prefer|rather|ideally|would like|favo|{european_forms.PREFERENCE_HINTS}|{asian_forms.PREFERENCE_HINTS}",
)
DECISION = hinted(
    re.compile(
        r"\b(?:decided|voted|approved|rejected|agreed|confirmed|selected|chosen|chose|concluded|accepted|declined|resolved|"
        r"(?:has|have) been (?:successfully )?\w+ed|"
        r"(?:successfully|already) \w+ed|status: ?\w+|outcome|we will go with|go ahead|proceed with)\b",
        re.IGNORECASE,
    ),
    "decided|voted|approved|rejected|agreed|confirmed|selected|chosen|chose|concluded|accepted|declined|resolved| been |"
    "successfully|already|status|outcome|we will go with|go ahead|proceed with",
)
SETTLED = hinted(
    re.compile(
        r"\b(?:I|we)(?: have|'ve|\u2019ve)? (?:hereby )?(?:confirm(?:ed)?|decided|approved?|agreed? to|accept(?:ed)?)\b|"
        r"\b(?:decided|voted|resolved) (?:unanimously )?(?:to|that|against|in favou?r of)\b|"
        r"^\W{0,4}decisions?:|"
        r"\b(?:was|were|has been|have been) (?:decided|agreed|approved)\b|"
        r"^\W{0,4}(?:\w+,? )?yes\b.{0,40}\b(?:go ahead|proceed|do (?:it|that|so))\b|"
        r"\bgo ahead (?:with|and)\b",
        re.IGNORECASE,
    ),
    "confirm|decided|voted|resolved|decision|approve|agree|accept|yes|go ahead",
)
"""A decision or a confirmation in so many words; other words of deciding tell of one."""
CLAIM_SOURCE = re.compile(r"https?://\S+|\[\d{1,4}\](?![(\[:])|\(\w[\w\-]*\.(?:com|org|net|io|gov|edu|de|co\.uk)\)|@\s?\$")
_AMOUNT = re.compile(r"\d")
_FULL = "\u3002\uff01\uff1f\u061f\u06d4"
_SENTENCE = re.compile(rf"[^\n.!?{_FULL}]*(?:[.!?](?!\s|$|\")[^\n.!?{_FULL}]*)*[.!?{_FULL}]*[\"')\u300d\u300f]*")
_LIMIT = Scripts.of(rf"{_FORCE}|\d+(?:[.,]\d+)*", f"{asian_forms.BINDING}|{asian_forms.FORCE}")
_ENDS = word_set("by before until till") | frozenset(european_forms.ENDS)
_WHEN = re.compile(
    rf"\b(by|before|until|till|after|since|from|{'|'.join((*european_forms.ENDS, *european_forms.BEGINS))}) (?:the |zum |dem )?(?=\d|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|"
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december)\b)",
    re.IGNORECASE,
)
_SHORTEST, _LONGEST = 8, 400
_TELLING = word_set("one once twice first second before after until only within between off")
"""Function words that tell one constraint from another."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence or line at characters `start` to `end`; `is_binding` for a constraint that is more than a preference,
    `is_strict` for one that binds whoever says it, and for a decision in so many words."""

    kind: FactKind
    text: str
    start: int
    end: int
    is_binding: bool = True
    is_strict: bool = False


def statements(text: str) -> Iterator[Statement]:
    """The sentences of a prose text that are facts as a whole, in order."""
    at = 0
    for line in text.split("\n"):
        yield from _of_line(line, at)
        at += len(line) + 1


def _of_line(line: str, at: int) -> Iterator[Statement]:
    if ERROR.search(line) and len(line) <= _LONGEST:
        stamp = LOGGED.match(line)
        if trimmed := line[stamp.end() if stamp else 0 :].strip():
            start = at + line.index(trimmed, stamp.end() if stamp else 0)
            yield Statement(FactKind.ERROR, trimmed, start, start + len(trimmed))
        return
    for found in _SENTENCE.finditer(mask_inner_points(line)):
        whole = line[found.start() : found.end()]
        sentence = whole.strip()
        if not _SHORTEST <= len(sentence) <= _LONGEST:
            continue
        start = at + found.start() + whole.index(sentence[0])
        if kind := _kind(sentence):
            is_binding = not PREFERENCE.search(sentence) or _has_duty_beside(sentence)
            yield Statement(kind, sentence, start, start + len(sentence), is_binding, is_binding and _is_strict(kind, sentence))


def _kind(sentence: str) -> FactKind | None:
    if sentence.endswith(("?", "\uff1f", "\u061f")):
        return None
    if SETTLED.search(sentence) and not STRICT.search(sentence):
        return FactKind.DECISION
    if forced(sentence) or any(form.search(sentence) for form in (IMPERATIVE, _NAMED, _BUT_NOT, PREFERENCE)):
        return FactKind.CONSTRAINT
    if CLAIM_SOURCE.search(sentence) and _AMOUNT.search(CLAIM_SOURCE.sub("", sentence)):
        return FactKind.CLAIM
    return FactKind.DECISION if DECISION.search(sentence) else None


def _has_duty_beside(sentence: str) -> bool:
    """Whether a sentence with a wish binds in another clause: `You must call first, and I prefer mornings.`"""
    return any(_DUTY.search(clause) and not PREFERENCE.search(clause) for clause in _CLAUSE.split(sentence))


def _is_strict(kind: FactKind, sentence: str) -> bool:
    if kind is FactKind.DECISION:
        return bool(SETTLED.search(sentence))
    return kind is FactKind.CONSTRAINT and bool(STRICT.search(sentence) or IMPERATIVE.search(sentence))


@lru_cache(8_192)
def forced(sentence: str) -> tuple[tuple[int, int], ...]:
    """Where words of force stand in a sentence. It is asked for statements, and again where talk is shortened."""
    return tuple(found.span() for found in FORCE.form(sentence).finditer(sentence))


@lru_cache(8_192)
def distinguishing(text: str) -> frozenset[str]:
    """Stems of the words by which a statement differs from others: all but function words, fillers and words of force."""
    plain = FORCE.form(text).sub(" ", ungrouped(text.replace("_", " ")))
    own = frozenset(stem(word) for word in words(plain) if word not in FUNCTION_WORDS or word in _TELLING)
    return own or frozenset(content_stems(text.replace("_", " ")))


def is_same_force(one: str, other: str) -> bool:
    """Whether `other` binds as `one` does: by the same words, to the same numbers in the same order, and denies where it denies."""
    theirs = iter(_limits(other))
    return (
        not (_when(one) and _when(other) and _when(one) != _when(other))
        and _forces(one) == _forces(other)
        and _denies(one) == _denies(other)
        and all(limit in theirs for limit in _limits(one))
    )


def _when(text: str) -> frozenset[bool]:
    """Whether what stands before a date or a number ends with it."""
    return frozenset(found.group(1).lower() in _ENDS for found in _WHEN.finditer(text))


def _forces(text: str) -> frozenset[str]:
    return frozenset(" ".join(found.group().lower().split()) for found in FORCE.form(text).finditer(text))


def _limits(text: str) -> list[str]:
    """Words of force and numbers, in order."""
    return [" ".join(found.group().lower().replace(",", "").split()) for found in _LIMIT.form(text).finditer(text)]


def _denies(text: str) -> bool:
    return any(is_negation(word) for word in text.split())
