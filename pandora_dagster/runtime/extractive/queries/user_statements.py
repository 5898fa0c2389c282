"""What users state of themselves, verbatim with its category, and which sentence retracts what another says. Rules over words."""

import re

from pandora_dagster.contracts.user.user_memory import MAX_FACT_CHARACTERS, FactCategory
from pandora_dagster.documents.redaction.credentials import holds_secret
from pandora_dagster.language.cues import negations
from pandora_dagster.language.dates import MONTHS, WEEKDAYS
from pandora_dagster.language.quantities import is_currency, quantities, spellings
from pandora_dagster.language.sentences import sentences
from pandora_dagster.language.stop_words import ASKING_WORDS
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.queries.content_words import STOP_WORDS, content_words, stem, terms, words
from pandora_dagster.runtime.extractive.queries.query_intent import (
    is_order,
    is_question,
    is_request,
    is_statement,
    is_thanks,
    states_at_once,
)

OPENING = re.compile(
    r"^\W*(?:(?:and|but|so|well|ok|okay|also|actually|no|yes|sorry|hi|hello|hey|oh|please|by the way|btw|just so you know|fyi|from now on"
    r"|(?:please )?(?:remember|note|keep in mind|don['’]?t forget)(?: that| this(?=:))?)\b[,:;.!]?\s*)+",
    re.IGNORECASE,
)
"""Words before a statement that are no part of it: `Please remember that`."""
_FIRST_PERSON = re.compile(
    r"\b(?:i|me|my|mine|myself|we|us|our|ours|ich|mir|mich|mein\w*|wir|uns|unser\w*|je|moi|mon|ma|mes|nous|notre|nos)\b|\bj['’]",
    re.IGNORECASE,
)
_CATEGORY_WORDS: tuple[tuple[FactCategory, str], ...] = (
    ("Conflict", r"argued|fought|disagreed?|quarrell?ed|fell out|complain(?:ed)?|upset with|angry|annoyed"),
    (
        "Emotional",
        r"(?:i|we) (?:\w+ ){0,2}(?:like|love|enjoy|hate|dislike|fear|feel|felt|afraid|worried|anxious|excited|happy|sad|proud|tired of)"
        r"|prefer(?:red)?|preference|favou?rite|usual",
    ),
    (
        "People",
        r"my (?:\w+ )?(?:name|birthday|job|age|wife|husband|partner|son|daughter|child(?:ren)?|kids?|mother|father|mom|mum|dad|parents?"
        r"|sister|brother|grand\w+|aunt|uncle|cousin|friends?|boss|manager|colleagues?|team|doctor|dog|cat)|call me|allerg\w+",
    ),
    (
        "Logistics",
        r"my (?:[\w'’-]+ ){1,4}(?:is|are|was|has|\w{3,}s)|need|must|never|always|at (?:most|least)|decided|chosen?|agreed|settled"
        r"|picked|have to|plan(?:ning)?|going|will|let['’]?s",
    ),
    ("History", r"(?:i|we) (?:\w+ )?(?:used to|bought|went|got|met|saw|took|made|had|was|were|left|began|grew|\w{3,}ed)"),
)
_CATEGORIES: tuple[tuple[FactCategory, re.Pattern[str]], ...] = tuple(
    (category, re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)) for category, pattern in _CATEGORY_WORDS
)
"""Of what a fact speaks (specification 002, section 4), by the first that holds; else of the user."""
_NEED = re.compile(r"^\W*(?:i|we) need (?!(?:an?|some|help|your|you|to)\b)\w", re.IGNORECASE)
"""What is needed whatever is asked for: `We need wheelchair access`. `I need a hotel` asks for one."""
_LIMIT_PHRASE = re.compile(
    r"\b(?:must(?:n['’]t)?|never|always|at most|at least|no (?:more|less|fewer|later|earlier) than|not (?:more|less|over|exceed)"
    r"|not allowed|maximum|minimum|budget is|limit(?:ed)?|cap(?:ped)?)\b|\b(?:under|below|within|up to|until|exceed) (?:[$€£] ?)?\d",
    re.IGNORECASE,
)
_PERSONAL_LIMIT = re.compile(
    r"\b(?:allerg\w+|intoleran\w+|vegetarian|vegan|diabetic|pregnant|needs?|brauch\w+"
    r"|can(?:no|['’])t (?:eat|drink|have)|do(?:n['’]t| not) (?:eat|drink)"
    r"|vegetarier\w*|veganer\w*|schwanger|esse .{0,20}(?:kein|nie))",
    re.IGNORECASE,
)
_CLAUSE_JOINT = re.compile(r"(?:[,;]|(?<!\s))\s+(?:and|but)(?: that)?\s+(?=(?:my|i|we|our)\b)", re.IGNORECASE)
_THING_WITH_FIGURE = re.compile(r"^(?:the|this|that|these|those|it|each|every|all|no|for|on|in|at)\b.*\d", re.IGNORECASE)
_FORGET_REQUEST = re.compile(
    r"^\W*(?:please |can you |could you )*forget (?:about |that |what i said about |everything about )?(.+)$", re.IGNORECASE
)
_EXCLUSIVE_CHOICE = re.compile(r"\b(?:prefer|favou?rite|preferred|usual|call me)\b", re.IGNORECASE)
_SINGLE_VALUE_OPENINGS = (
    re.compile(r"^my ([^?.!,]{1,60}?) (?:is|are|was)\b", re.IGNORECASE),
    re.compile(r"^(i (?:live|work|study)) (?:in|at|for|near|as)\b", re.IGNORECASE),
)
"""Openings whose first group names a thing that has one value at a time."""
_ATTITUDE_WORD = re.compile(
    r"(?:prefer|like|love|hate|dislike|enjoy|need|now|actually|longer|any ?more|instead|never|always)", re.IGNORECASE
)
_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")
_LIMIT_STEMS = frozenset(
    map(stem, ("must", "limit", "most", "least", "maximum", "minimum", "spend", "pay", "exceed", "cap", "allowed", "budget"))
)
_MAX_REPEATED_SENTENCES = 4
"""Statements that an acknowledgement repeats."""
_MIN_SHARED_STEM_SHARE = 0.5
"""Share of the shorter statement's words that both must have to be about one matter."""
_CHANGE_WORD = re.compile(
    r"\b(?:mov(?:ed|es|ing)|switch(?:ed|ing)|chang(?:ed|es)|migrated|postponed|rescheduled|delayed|brought forward|updated|correction|meant"
    r"|actually|instead|rather than|no longer|any ?more|now|new|verschoben|verlegt|geändert|korrektur|stattdessen|nicht mehr|jetzt|nun|doch"
    r"|statt|neue[rs]?|not\b.{1,60}?\bbut|nicht\b.{1,60}?\bsondern|umgezogen|korrigiert)\b",
    re.IGNORECASE,
)
_GERMAN_DAYS = words(
    "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonnabend Sonntag Januar Februar März Mai Juni Juli Oktober Dezember"
)
_DAYS = frozenset((*WEEKDAYS, *MONTHS, *_GERMAN_DAYS))
_DAY_STEMS = frozenset(map(stem, _DAYS))
_YEAR = re.compile(r"(?:19|20)\d\d")


def extract_facts(text: str) -> list[tuple[str, FactCategory]]:
    """The sentences that state something of the user, verbatim, with their category: no question, no order, no credential."""
    parts = [clause for whole in sentences(text) for clause in split_clauses(whole)]
    return [(part, _category(OPENING.sub("", part))) for part in parts if _is_fact(part) and not holds_secret(part)]


def split_clauses(sentence: str) -> tuple[str, ...]:
    """The statements of the user that a sentence joins, each verbatim: `I am allergic to nuts and my limit is 40 euros.` is two, so that
    one can change without the other. The sentence itself where a part of it states nothing."""
    parts = tuple(p.strip(" ,;") for p in _CLAUSE_JOINT.split(sentence))
    return parts if len(parts) > 1 and all(map(_is_fact, parts)) else (sentence,)


def _is_fact(sentence: str) -> bool:
    core = OPENING.sub("", sentence)
    if (
        len(sentence) > MAX_FACT_CHARACTERS
        or is_question(core)
        or is_order(core)
        or _FORGET_REQUEST.match(sentence)
        or is_thanks(core)
        or not content_words(core)
    ):
        return False
    binding = _is_limit(core) or bool(_NEED.match(core))
    return binding or (
        (bool(_FIRST_PERSON.search(core)) or states_at_once(core)) and not is_request(core) and not core.lower().startswith("you ")
    )


def _category(core: str) -> FactCategory:
    found: FactCategory | None = next((category for category, shape in _CATEGORIES if shape.search(core)), None)
    return found or "People"


def retracted_stems(text: str) -> list[frozenset[str]]:
    """The stems of each thing that the user asks to be forgotten."""
    retracted = (m[1] for sentence in sentences(text) if (m := _FORGET_REQUEST.match(sentence)))
    return [stems for thing in retracted if (stems := frozenset(terms(thing)) - frozenset(map(stem, ASKING_WORDS)))]


def contradicts(new: str, old: str) -> bool:
    """Whether two statements cannot both hold: one thing with another value, an exclusive choice or a correction about the same
    matter, a like that became a dislike. Of two things (`my budget for hotels`, `my budget for the trip`) each has its own value."""
    new_core, old_core = OPENING.sub("", new), OPENING.sub("", old)
    if words(new_core) == words(old_core):
        return False
    are_two_things = False
    for pattern in _SINGLE_VALUE_OPENINGS:
        new_match, old_match = pattern.match(new_core), pattern.match(old_core)
        if new_match and old_match and set(words(new_match[1])) == set(words(old_match[1])):
            return True
        are_two_things = are_two_things or bool(new_match and old_match)
    if _CHANGE_WORD.search(new) and _is_limit(new_core) and _is_limit(old_core):
        return _is_same_limit(new_core, old_core)
    if not _share_subject(statement_stems(new_core), statement_stems(old_core)):
        return False
    exclusive = _EXCLUSIVE_CHOICE.search(new_core) and _EXCLUSIVE_CHOICE.search(old_core)
    return bool(exclusive) or (
        not are_two_things and bool(_CHANGE_WORD.search(new) or bool(negations(new_core)) != bool(negations(old_core)))
    )


def shared_matter(new: str, old: str) -> float:
    """The share of the stems of two statements that both have, without figures and days, which are values of a matter."""
    new_stems, old_stems = (_without_values(statement_stems(_CHANGE_WORD.sub(" ", s))) for s in (new, old))
    return len(new_stems & old_stems) / max(1, len(new_stems | old_stems))


def is_binding(sentence: str) -> bool:
    """Whether a statement limits what the user can be given."""
    core = OPENING.sub("", sentence)
    return _is_limit(core) or bool(_PERSONAL_LIMIT.search(core))


def _is_limit(core: str) -> bool:
    """Whether a sentence binds: the user by what it says of them, or a matter by a figure. An order to the assistant alone does not."""
    bound = _LIMIT_PHRASE.search(core) and (_FIRST_PERSON.search(core) or _THING_WITH_FIGURE.match(core))
    return bool(bound) and not core.lower().startswith("you ")


def _is_same_limit(new: str, old: str) -> bool:
    """Whether a corrected limit takes the place of `old`: of several figures one must be the old one's; else one of them names no
    matter that the other does not. A currency does not count: `the budget is 1500 euros` and `near the river, at most 90 euros a night` are
    two limits."""
    figures = [frozenset(_FIGURE.findall(s)) for s in (new, old)]
    stems_of = [statement_stems(s) for s in (new, old)]
    new_subject, old_subject = (frozenset(t for t in stems if t.isalpha() and t not in _LIMIT_STEMS) for stems in stems_of)
    if len(figures[0]) > 1:
        return not figures[0].isdisjoint(figures[1]) and (not new_subject or not old_subject or not new_subject.isdisjoint(old_subject))
    if stems_of[0].isdisjoint(stems_of[1]):
        return False
    currencies = {stem(word) for s in (new, old) for q in quantities(s) if is_currency(q.unit) for word in spellings(q.unit)}
    new_matter, old_matter = new_subject - currencies, old_subject - currencies
    return bool(new_matter) == bool(old_matter) and (new_matter <= old_matter or old_matter <= new_matter)


def corrects(new: str, old: str) -> bool:
    """Whether `new` says of the subject of `old` that it changed: a word of change, and a figure or day that `old` has otherwise.

    Where each names something that the other does not, they are about two things.
    """
    if not _CHANGE_WORD.search(new):
        return False
    new_stems, old_stems = _without_values(statement_stems(_CHANGE_WORD.sub(" ", new))), _without_values(statement_stems(old))
    if new_stems - old_stems and old_stems - new_stems:
        return False
    has_new_value = any(old_values and new_values - old_values for new_values, old_values in zip(_values(new), _values(old), strict=True))
    return has_new_value and _share_subject(new_stems, old_stems)


def _share_subject(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= max(1, _MIN_SHARED_STEM_SHARE * min(len(one), len(other)))


def _without_values(stems: frozenset[str]) -> frozenset[str]:
    """Stems of a matter without figures and days, which are its values."""
    return frozenset(s for s in stems if s.isalpha() and s not in _DAY_STEMS)


def _values(sentence: str) -> tuple[frozenset[str], frozenset[str]]:
    """Figures, years left out: what was so in one year does not end what was so in another; days of the week and months."""
    return frozenset(f for f in _FIGURE.findall(sentence) if not _YEAR.fullmatch(f)), frozenset(words(sentence)) & _DAYS


def statement_stems(sentence: str) -> frozenset[str]:
    """The stems that say what a statement is about."""
    return frozenset(stem(w) for w in words(sentence) if w not in STOP_WORDS and w not in ASKING_WORDS and not _ATTITUDE_WORD.fullmatch(w))


def acknowledge(query: str) -> str:
    """The fixed words for a query that only tells, with what it tells verbatim, or only thanks; "" for one that asks for anything."""
    facts = {sentence for sentence, _ in extract_facts(query)}
    statements = [s for s in sentences(query) if not is_thanks(s)]
    repeated = [s for s in statements if s in facts or is_statement(s) or _FORGET_REQUEST.match(s)]
    if len(repeated) < len(statements) or any(is_request(s) and not is_binding(s) for s in repeated if s in facts):
        return ""
    if not repeated:
        return TEMPLATES["welcome"] if query.strip() else ""
    return " ".join((TEMPLATES["noted"], *repeated[:_MAX_REPEATED_SENTENCES]))
