"""What a query asks for: its intent, its type, the kind of thing it wants. Rules over its words; no document is read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pandora_dagster.contracts.phase_outputs import Intent, QueryType
from pandora_dagster.language.relative_days import refers_to_past, strip_days
from pandora_dagster.runtime.extractive.words.word_matching import LIGHT_VERBS, META_WORDS, content_words, stem, terms, word_set, words

_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day)|thanks?|thank you|bye|goodbye)\b", re.I
)
_SMALL_TALK = word_set("hi hello hey hiya howdy greetings good morning afternoon evening day thanks thank you bye goodbye there how are")
_COURTESY = re.compile(
    r"^\W*(?:(?:hi|hello|hey|ok|okay|great|perfect|good|thanks|thank you)\b(?: (?:there|again|so much|very much|a lot))*[,.!; ]*)+"
    r"(?:(?:that|this|it)(?:['’]s| is| was)? (?:\w+ )?(?:helps?|helped|helpful|great|perfect|good|fine|all|clear|enough)"
    r"|for (?:your|the|all)[^?]{1,60})?"
    r"(?: (?:a lot|so much|very much|me|now|for now))*\W*$",
    re.I,
)
_TELLS = re.compile(
    r"^\W*(?:(?:actually|well|ok|okay|also|and|but|so|no|yes|sorry|please|by the way|btw|from now on)\b[, ]*)*"
    r"(?:(?:remember|note|keep in mind|don['’]?t forget)\b|never|always|call me|i\b|we\b|my|our|the|this|that|it|for|on|in|at|when|from)",
    re.I,
)
_VERB = re.compile(
    r"^\W*(?:\w+[ ,]+){1,6}?(?:am|is|are|was|were|has|had|have|will"
    r"|needs?|takes?|runs?|costs?|lives?|works?|\w{3,}ed|\w+['’](?:s|m|re|ve|ll))\b",
    re.I,
)
_DID_THEN = re.compile(r"^\W*(?:\w+[ ,]+){1,4}(?:i|we) \w{3,}ed\b", re.I)
"""`Last Sunday I cooked`: when it was stands first."""
_IN_NEED = re.compile(
    r"\b(?:have|has|need|needs|got|trying) to\b|\b(?:calling|writing|asking|here) (?:about|for|because|to|regarding)\b"
    r"|^\W*(?:this|it)(?:['’]s| is) (?:about|regarding)\b|\b(?:problem|issue|trouble|question)s? with\b",
    re.I,
)
"""It tells of something so that it is done."""
_SEEKS = re.compile(r"\b(?:i|we)(?:['’]d)? (?:\w+ )?(?:need|want|would like|like to|looking|wondering|wish|hope)\b", re.I)
_FEELS = r"(?:prefer|like|love|hate|dislike|don'?t (?:like|want|eat|drink)|am allergic|always|never|live in|work (?:as|at|for))"
_LEADS = r"(?:(?:well|ok|okay|also|by the way|actually|sorry|no|correction),? )*"
_STATES = re.compile(
    r"\b(?:please )?(?:remember|note|keep in mind|don'?t forget) (?:that |my |i )|^\W*(?:from now on|call me\b)"
    rf"|^\W*{_LEADS}i (?:\w+ )?{_FEELS}\b"
    rf"|^\W*{_LEADS}my (?:favou?rite|preferred|budget|name|birthday|location|home|address|usual)\b[^?\n]{{0,160}}?\b(?:is|are)\b",
    re.I,
)
_PAST = re.compile(
    r"\b(?:did (?:we|i|you)|have (?:we|i|you)|we (?:talked|discussed|spoke|looked|booked|agreed|decided)|talk(?:ed)? about|last time"
    r"|earlier|(?:you|i) (?:said|told|mentioned|asked|recommended|suggested|booked)|previous(?:ly)?|before|yesterday|remember|recall"
    r"|again|ago|our (?:last|earlier))\b",
    re.I,
)
_OF_ASKING = re.compile(
    r"\b(?:asked|did \w+ (?:ever |already )?ask|(?:my|our|your|his|her|their|which|what) (?:\w+ )?questions?|gefragt|fragte\w*)\b"
    r"|\b(?:meine|unsere|deine|welche|seine|ihre)n? (?:\w+ )?fragen?\b",
    re.I,
)
_ABOUT = re.compile(r"\b(?:about|regarding|concerning|über)\s+\w", re.I)
_DEED = re.compile(r"\bdid (?:we|i|you|they|he|she) ([a-z]{3,})\b", re.I)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}")
_OWN = re.compile(r"\b(?:what|which|where|when|who|how|do|does|is|are)\b[^.?!\n]{0,160}?\b(?:my|i)\b", re.I)
_PREFERENCES = re.compile(r"\b(?:preferences?|favou?rites?|prefer(?:red)?|budget)\b|\bdo i (?:like|prefer|love|hate)\b", re.I)
_COMMERCE = re.compile(
    r"\b(?:buy|buying|purchase|cheap(?:er|est)?|affordable|price[ds]?|pricing|deals?|discount|for sale|in stock|shop(?:ping)?|order online"
    r"|under [$€£]\s?\d|best value|expensive|budget)\b|[$€£]\d",
    re.I,
)
_NAVIGATE = re.compile(r"^\W*(?:please )?(?:go to|open|visit|navigate to|take me to|browse to)\b", re.I)
_COMPARE = re.compile(r"\b(?:compare|comparison|versus|vs\.?|difference between|better than|which is better|pros and cons)\b", re.I)
_TRANSACT = re.compile(
    r"^\W*(?:please )?(?:can you |could you |i'?d like to |i want to )?"
    r"(?:book|cancel|change|update|remember|save|create|send|add|remove|delete|store|modify)\b",
    re.I,
)
_ASKS = re.compile(
    r"^\W*(?:what|which|who|whom|whose|where|when|why|how|is|are|was|were|do|does|did|can|could|has|have|tell me|explain|describe)\b|\?",
    re.I,
)
_KIND_CUES = {
    "money": re.compile(
        r"\b(?:how much|costs?|price[ds]?|pa(?:y|id)|spen[dt]|charged?|fees?|fares?|amount|total|refund(?:ed)?|budget|cheap(?:est)?"
        r"|expensive)\b",
        re.I,
    ),
    "time": re.compile(r"\b(?:when|what (?:date|day|time|year|month)|how long|how old|which (?:date|day|year|month))\b", re.I),
    "count": re.compile(r"\b(?:how many|how often|how long|how old|number of)\b", re.I),
    "person": re.compile(r"\b(?:who|whom|whose)\b", re.I),
    "place": re.compile(r"\b(?:where|which (?:city|country|place|airport|town))\b", re.I),
}
KIND_WORDS = {
    kind: frozenset(map(stem, word_set(named)))
    for kind, named in (
        ("money", "cost costs price prices amount amounts total fee fees fare fares paid pay payment refund balance charge"),
        ("time", "date dates time times day when year month"),
    )
}
"""Kind -> stems of words that only name that kind: they are not what the question is about."""
_LIGHT_STEMS = frozenset(map(stem, LIGHT_VERBS))
FIELD_WORDS = {
    kind: frozenset(map(stem, word_set(named)))
    for kind, named in (
        ("money", "cost costs price prices amount amounts fee fees fare fares refund balance charge"),
        ("time", "date dates time times departure arrival created year month"),
        ("count", "count quantity total"),
    )
}
"""Kind -> stems of field names that hold such a thing."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query as this runtime reads it. `stems` without those that only name a wanted kind or a light verb, if others remain."""

    text: str
    stems: tuple[str, ...]
    wants: frozenset[str] = field(default_factory=frozenset[str])
    names: frozenset[str] = field(default_factory=frozenset[str])
    """Stems that are names in the query: who it is about rather than what."""
    done: frozenset[str] = frozenset()
    """Past forms of what the query says was done: `did we order` -> `ordered`."""
    days: tuple[str, ...] = ()
    """The days on which what it asks for was said, as `text.said_days` tells them."""
    all_of_days: bool = False
    """All that was said on these days may answer; where it asks about a thing (`about the roof`), only what says a word of it."""


def question(text: str, *, more: Sequence[str] = (), days: tuple[str, ...] = ()) -> Question:
    """Read a query; `more` are texts whose words count as asked for too (a resolved title). `days` are those that it names: what was
    said then is asked for where it looks back, and their own words ask for nothing."""
    days = days if refers_to_past(text) or _PAST.search(text) else ()
    matter = strip_days(text) if days else text
    wants = frozenset(kind for kind, cue in _KIND_CUES.items() if cue.search(text))
    stems = [stem(w) for w in content_words(matter)] + [t for extra in more for t in terms(extra)]
    named = {t for kind in wants for t in KIND_WORDS.get(kind, ())} | _LIGHT_STEMS
    kept = [t for t in dict.fromkeys(stems) if t not in named]
    names = frozenset(t for name in _NAME.findall(text) for t in terms(name))
    return Question(text, tuple(kept or dict.fromkeys(stems)), wants, names, done(text), days, bool(days) and not _ABOUT.search(matter))


def done(text: str) -> frozenset[str]:
    """The regular past forms of the verbs after `did we`, `did I`, `did you`; what is about asking itself names no deed."""
    verbs = (m.group(1).lower() for m in _DEED.finditer(text))
    return frozenset(verb + ("d" if verb.endswith("e") else "ed") for verb in verbs if verb not in META_WORDS)


def is_greeting(text: str) -> bool:
    """A greeting or thanks and nothing else."""
    return bool(_GREETING.match(text)) and all(w in _SMALL_TALK or w.isdigit() for w in words(text)[:8]) and len(words(text)) <= 8


def is_courtesy(text: str) -> bool:
    """Thanks or praise and nothing else."""
    return bool(_COURTESY.match(text))


def requests(text: str) -> bool:
    """Whether a sentence asks or wants something done, rather than only telling."""
    return bool(_ASKS.search(text) or _SEEKS.search(text)) or not _TELLS.match(text)


def tells(text: str) -> bool:
    """Whether a sentence only tells of the person or of a matter: it ends as one, has its verb, and asks or wants nothing."""
    opens = _TELLS.match(text) or _DID_THEN.match(text)
    wants = _ASKS.search(text) or _SEEKS.search(text) or _IN_NEED.search(text)
    return text.rstrip().endswith(".") and bool(opens and _VERB.search(text)) and not wants


def states_preference(text: str) -> bool:
    """The person says something to be remembered (and does not ask)."""
    return bool(_STATES.search(text)) and not text.rstrip().endswith("?")


def asks_preference(text: str) -> bool:
    """The person asks what they prefer."""
    return bool(_PREFERENCES.search(text)) and bool(_OWN.search(text))


def asks_past(text: str) -> bool:
    """The query looks back at earlier turns or at something of the person's own."""
    return bool(_PAST.search(text) or _OWN.search(text))


def asks_of_asking(text: str) -> bool:
    """The query asks what was asked: only then is a question an answer."""
    return bool(_OF_ASKING.search(text))


def shops(text: str) -> bool:
    """The query has words of buying."""
    return bool(_COMMERCE.search(text))


def intent(text: str) -> Intent:
    """000 section 16.1's intent, by rules; the first that holds."""
    rules: tuple[tuple[bool, Intent], ...] = (
        (is_greeting(text), "greeting"),
        (states_preference(text), "preference"),
        (bool(_NAVIGATE.match(text)), "navigation"),
        (asks_preference(text) or bool(_PAST.search(text)), "recall"),
        (shops(text), "commerce"),
        (bool(_OWN.search(text)), "recall"),
    )
    for holds, name in rules:
        if holds:
            return name
    return "query"


def query_type(text: str) -> QueryType:
    """000 and 004's query type, by rules; the first that holds."""
    rules: tuple[tuple[bool, QueryType], ...] = (
        (is_greeting(text), "general_question"),
        (bool(_NAVIGATE.match(text)), "navigation"),
        (bool(_COMPARE.search(text)), "comparison"),
        (states_preference(text) or bool(_TRANSACT.match(text)), "transactional"),
        (intent(text) == "commerce", "commerce_search"),
        (bool(_ASKS.search(text)), "informational"),
    )
    for holds, name in rules:
        if holds:
            return name
    return "general_question"
