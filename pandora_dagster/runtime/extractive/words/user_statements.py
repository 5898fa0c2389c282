"""What a person states of themselves: sentences with their category, and which of two can not both hold. Rules over words, verbatim."""

import re

from pandora_dagster.contracts.user.user_memory import LONGEST_FACT, FactCategory
from pandora_dagster.documents.redaction.credentials import holds_secret
from pandora_dagster.language.sentences import sentences
from pandora_dagster.runtime.extractive.words.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.words.query_intent import is_courtesy, requests, tells
from pandora_dagster.runtime.extractive.words.word_matching import FILLERS, META_WORDS, STOP_WORDS, stem, terms, words

_OPENING = re.compile(
    r"^\W*(?:(?:and|but|so|well|ok|okay|also|actually|no|yes|sorry|hi|hello|hey|oh|please|by the way|btw|just so you know|fyi|from now on"
    r"|(?:please )?(?:remember|note|keep in mind|don['’]?t forget)(?: that)?)\b[,:;.!]?\s*)+",
    re.IGNORECASE,
)
_I = r"(?:i|we)(?:['’](?:m|ve|d|ll|re))?"
_HOW = r"(?:\w+ly |also |just |still |do |am |are |have |always |never |not |don['’]?t |can['’]?t |no longer )*"
_LIMIT = (
    r"(?=.*(?:\d|\b(?:by|before|until|after|under|within|at most|at least|no more than|only|without|never|always|monday|tuesday"
    r"|wednesday|thursday|friday|saturday|sunday|today|tomorrow|tonight)\b))"
)
"""A need with a limit is a fact; one without is a request."""
_KIN = (
    r"(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|son|daughter|child|children|kids?|baby|mother|father|mom|mum|dad"
    r"|parents?|sister|brother|siblings?|grand\w+|aunt|uncle|cousin|niece|nephew|friends?|boss|manager|colleagues?|team|neighbou?rs?"
    r"|roommates?|doctor|dog|cat|pets?)"
)
_RULES: tuple[tuple[FactCategory, str], ...] = (
    (
        "Conflict",
        rf"{_I} {_HOW}(?:argued|fought|disagreed?|quarrell?ed|fell out|complain(?:ed)?|upset with|angry (?:with|at|about)|annoyed)\b",
    ),
    (
        "Emotional",
        rf"{_I} {_HOW}(?:prefer|like|love|enjoy|adore|hate|dislike|loathe|stand|fear|dread|feel|felt|afraid|worried|anxious|stressed"
        r"|excited|happy|sad|proud|upset|nervous|tired of)\b|my (?:\w+ )?(?:favou?rite|preferred|preference|usual)\b",
    ),
    (
        "Logistics",
        r"my (?:\w+ ){0,2}(?:budget|deadline|appointment|meeting|flight|trip|address|schedule|availability|order|reservation|plan|size)s?\b"
        rf"[^?]*\b(?:is|are|was|starts?|ends?)\b|{_I} {_HOW}(?:need|want|must|has to|have to|had to|can|could|would like|plan|planning"
        rf"|going|will)\b{_LIMIT}|{_I} {_HOW}(?:decided|chose|chosen|agreed|settled|picked|going with)\b"
        rf"|let['’]?s (?:go with|take|use|choose|pick)\b|{_I}['’]?ll (?:take|go with|use|have)\b",
    ),
    (
        "People",
        rf"my (?:\w+ )?(?:name|birthday|job|age|hometown|nationality|profession|{_KIN})\b[^?]*"
        r"\b(?:is|are|was|has|have|lives?|works?|likes?|loves?|hates?|prefers?|needs?|wants?|cannot|can['’]t|turns?|goes)\b|call me\b"
        r"|i(?:['’]m| am) (?!(?:looking|trying|wondering|asking|going|planning|sure|sorry|not sure|interested|here)\b)(?:\w+ )?\w+"
        rf"|{_I} {_HOW}(?:live|work|study|speak|eat|drink|own)\b|{_I} {_HOW}have (?:a|an|two|three|four|\d+) (?:\w+ )?{_KIN}\b",
    ),
    (
        "Logistics",
        r"my (?:[\w'’-]+ ){1,4}(?:is|are|has|\w{3,}s(?= (?:in|on|at|by|from|until|to|for|every)\b)) "
        rf"|{_I} need (?!(?:an?|some|help|your|you|to)\b)\w",
    ),
    (
        "People",
        r"(?!(?:it|this|that|there|what|he|she)\b)(?-i:[A-ZÀ-Ý])[\w-]*(?:['’]s \w+)?"
        r" (?:is|has|needs|cannot|can['’]t|lives?|hates|likes|loves|prefers|does(?:n['’]t| not)) ",
    ),
    (
        "History",
        rf"{_I} {_HOW}(?:used to|bought|went|got|met|saw|took|made|had|was|were|left|began|grew|\w{{3,}}ed)\b"
        r"(?! (?:to (?:know|ask|see)|wondering|hoping)\b)",
    ),
)
_CATEGORIES: tuple[tuple[FactCategory, re.Pattern[str]], ...] = tuple(
    (category, re.compile(rf"^(?:{pattern})", re.IGNORECASE)) for category, pattern in _RULES
)
_WITHIN: tuple[tuple[FactCategory, re.Pattern[str]], ...] = tuple(
    (
        category,
        re.compile(
            rf"(?<![\w'’])(?<!if )(?<!what )(?<!which )(?<!how )(?<!when )(?<!why )(?<!where )(?<!whether )(?:{pattern})", re.IGNORECASE
        ),
    )
    for category, pattern in _RULES[1:3]
)
"""Preferences and needs that do not open the sentence: `At home I prefer tea.`"""
_BOUND = re.compile(
    r"\b(?:must(?:n['’]t)?|never|always|at most|at least|no (?:more|less|fewer|later|earlier) than|not (?:more|less|over|exceed)"
    r"|not allowed|maximum|minimum|budget is|limit(?:ed)?|cap(?:ped)?)\b|\b(?:under|below|within|up to|until|exceed) (?:[$€£] ?)?\d",
    re.IGNORECASE,
)
_BARRED = re.compile(
    r"\b(?:allerg\w+|intoleran\w+|vegetarian|vegan|diabetic|pregnant|can(?:no|['’])t (?:eat|drink|have)|do(?:n['’]t| not) (?:eat|drink)"
    r"|vegetarier\w*|veganer\w*|schwanger|esse .{0,20}(?:kein|nie))",
    re.IGNORECASE,
)
_JOINT = re.compile(r"[,;]?\s+(?:and|but)\s+(?=(?:my|i|we|our)\b)", re.IGNORECASE)
_OF_PERSON = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours)\b|^(?:never|always|don['’]t|do not)\b", re.IGNORECASE)
_OF_MATTER = re.compile(r"^(?:the|this|that|these|those|it|each|every|all|no|for|on|in|at)\b.*\d", re.IGNORECASE)
_FORGET = re.compile(
    r"^\W*(?:please |can you |could you )*forget (?:about |that |what i said about |everything about )?(.+)$", re.IGNORECASE
)
_ASKS = re.compile(
    r"^(?:what|which|who|whom|whose|where|when|why|how|is|are|was|were|do|does|did|can|could|has|would|will|should)\b", re.IGNORECASE
)
_EXCLUSIVE = re.compile(r"\b(?:prefer|favou?rite|preferred|usual|call me)\b", re.IGNORECASE)
_CORRECTS = re.compile(
    r"\b(?:actually|instead|no longer|any ?more|not .{1,60} but|changed? (?:my|our) minds?|now|rather than|meant|correction)\b",
    re.IGNORECASE,
)
_ONE_VALUE = (
    re.compile(r"^my ([^?.!,]{1,60}?) (?:is|are|was)\b", re.IGNORECASE),
    re.compile(r"^(i (?:live|work|study)) (?:in|at|for|near|as)\b", re.IGNORECASE),
)
"""Openings whose first group names a thing that has one value at a time."""
_FEELS = re.compile(r"(?:prefer|like|love|hate|dislike|enjoy|need|now|actually|longer|any ?more|instead|never|always)", re.IGNORECASE)
_NOT = re.compile(r"\b(?:not|never|no|cannot|hate|dislike|stopped)\b|n['’]t\b", re.IGNORECASE)
_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")
_LIMITING = frozenset(
    map(stem, ("must", "limit", "most", "least", "maximum", "minimum", "spend", "pay", "exceed", "cap", "allowed", "budget"))
)
_UNITS = frozenset(map(stem, ("euro", "euros", "dollar", "dollars", "pounds", "francs", "percent", "hours", "minutes", "days", "cm", "kg")))
ALIKE = 0.5
"""Share of the shorter statement's words that both must have to be about one matter."""


def stated(said: str) -> list[tuple[str, FactCategory]]:
    """The sentences that state something of the person, verbatim, with their category: no question, no order, no credential."""
    found: list[tuple[str, FactCategory]] = []
    for sentence in (clause for whole in sentences(said) for clause in clauses(whole)):
        core = _OPENING.sub("", sentence)
        if sentence.rstrip().endswith("?") or _ASKS.match(core) or _FORGET.match(sentence) or len(sentence) > LONGEST_FACT:
            continue
        category = _category(core)
        if category and _is_telling(core) and not holds_secret(sentence):
            found.append((sentence, category))
    return found


def clauses(sentence: str) -> tuple[str, ...]:
    """The statements of the person that a sentence joins, each verbatim: `I am allergic to nuts and my limit is 40 euros.` is two, so that
    one can change without the other. The sentence itself where a part of it states nothing."""
    parts = tuple(p.strip(" ,;") for p in _JOINT.split(sentence))
    return parts if len(parts) > 1 and all(_category(_OPENING.sub("", p)) for p in parts) else (sentence,)


def taken_back(said: str) -> list[frozenset[str]]:
    """The stems of each thing that the person asks to be forgotten."""
    asked = (m[1] for sentence in sentences(said) if (m := _FORGET.match(sentence)))
    return [stems for thing in asked if (stems := frozenset(terms(thing)) - frozenset(map(stem, META_WORDS)))]


def contradicts(new: str, old: str) -> bool:
    """Whether two statements can not both hold: one thing with another value, an exclusive choice or a correction about the same
    matter, a like that became a dislike. Of two things (`my budget for hotels`, `my budget for the trip`) each has its own value."""
    one, other = _OPENING.sub("", new), _OPENING.sub("", old)
    if words(one) == words(other):
        return False
    apart = False
    for pattern in _ONE_VALUE:
        mine, theirs = pattern.match(one), pattern.match(other)
        if mine and theirs and set(words(mine[1])) == set(words(theirs[1])):
            return True
        apart = apart or bool(mine and theirs)
    if _CORRECTS.search(new) and _is_limit(one) and _is_limit(other):
        return _is_same_limit(one, other)
    shared, least = matter(one) & matter(other), min(len(matter(one)), len(matter(other)))
    if not shared or len(shared) < ALIKE * least:
        return False
    exclusive = _EXCLUSIVE.search(one) and _EXCLUSIVE.search(other)
    return bool(exclusive) or (not apart and bool(_CORRECTS.search(new) or bool(_NOT.search(one)) != bool(_NOT.search(other))))


def _category(core: str) -> FactCategory | None:
    opening: FactCategory | None = next((category for category, rule in _CATEGORIES if rule.match(core)), None)
    if opening:
        return opening
    if _is_limit(core):
        return "Logistics"
    return next((category for category, rule in _WITHIN if rule.search(core)), None)


def binds(sentence: str) -> bool:
    """Whether a statement limits what the person can be given."""
    core = _OPENING.sub("", sentence)
    return _is_limit(core) or bool(_BARRED.search(core))


def _is_limit(core: str) -> bool:
    """Whether a sentence binds: the person by what it says of them, or a matter by a figure. What is told to the reader alone does not."""
    return bool(_BOUND.search(core) and (_OF_PERSON.search(core) or _OF_MATTER.match(core))) and not core.lower().startswith("you ")


def _is_telling(core: str) -> bool:
    return any(w not in STOP_WORDS and w not in META_WORDS and stem(w) not in FILLERS for w in words(core))


def _is_same_limit(new: str, old: str) -> bool:
    """Whether a corrected limit takes the place of `old`: of several figures one must be the old one's; else one of them names no
    matter that the other does not."""
    figures = [frozenset(_FIGURE.findall(s)) for s in (new, old)]
    measured = [matter(s) for s in (new, old)]
    one, other = (frozenset(t for t in stems if t.isalpha() and t not in _LIMITING) for stems in measured)
    if len(figures[0]) > 1:
        return not figures[0].isdisjoint(figures[1]) and (not one or not other or not one.isdisjoint(other))
    alike = bool(one - _UNITS) == bool(other - _UNITS)  # `the budget is 1500 euros` does not replace `at most 90 euros a night`
    return alike and not measured[0].isdisjoint(measured[1]) and (one <= other or other <= one)


def matter(sentence: str) -> frozenset[str]:
    """The stems that say what a statement is about."""
    return frozenset(stem(w) for w in words(sentence) if w not in STOP_WORDS and w not in META_WORDS and not _FEELS.fullmatch(w))


# The answer to a query that asks for nothing. Knows the query's words; reads no document, so that nothing is claimed of one.


def acknowledged(query: str) -> str:
    """The fixed words for a query that only tells, with what it tells verbatim, or only thanks; "" for one that asks for anything."""
    facts = {sentence for sentence, _ in stated(query)}
    told = [s for s in sentences(query) if s in facts or tells(s)]
    rest = [s for s in sentences(query) if s not in told and not is_courtesy(s)]
    if rest or any(requests(s) for s in told):
        return ""
    return " ".join((TEMPLATES["noted"], *told)) if told else TEMPLATES["welcome"] if query.strip() else ""
