"""What a query asks for: its intent, its type, the kind of thing it wants. Rules over its words; no document is read."""

import re
from typing import TypeVar

from pandora_dagster.contracts.phase_outputs import Intent, QueryType
from pandora_dagster.language.courtesy import is_courtesy
from pandora_dagster.language.cues import Cue, cues, ends_as_question
from pandora_dagster.runtime.extractive.queries.content_words import content_words, words

Name = TypeVar("Name", bound=str)

_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day)|thanks?|thank you|bye|goodbye)\b", re.IGNORECASE
)
_ORDER_START = re.compile(
    r"^\W*(?:(?:and|also|then|so|ok|okay|now|please|kindly|bitte|can you|could you|would you)\b[, ]*)*"
    r"(?:tell|show|give|find|search|look|list|compare|explain|describe|summari[sz]e|translate|write|draft|make|create|add|remove|delete|change"
    r"|update|modify|cancel|book|reserve|order|buy|send|save|store|open|go|visit|navigate|check|recommend|suggest|help|let|try|use|get|run|fix"
    r"|call|return|refund|exchange|proceed|confirm|continue|zeig|nenn|gib|such|finde|buche|sag|schreib|erklär|vergleich|hilf|mach)\w{0,2}\b",
    re.IGNORECASE,
)
"""It begins as an order does."""
_STATEMENT_END = re.compile(r"[.!。！][\"'”)*_]*\s*$")
_MIN_STATEMENT_WORDS = 3
"""A sentence of fewer words tells nothing: `Correct.`"""
_SUBJECT_WITH_VERB = re.compile(
    r"^\W*(?!(?:what|which|who|where|when|why|how|that|there)\b)[^\W\d_][\w-]*(?:['’]s \w+)?"
    r" (?:is|are|was|were|has|had|needs|wants|likes|loves|hates|prefers|lives|works|cannot|can['’]t|does(?:n['’]t| not)|takes|turns|moved"
    r"|starts|ends|costs|ist|sind|war|hat|braucht|wohnt|kostet)\b",
    re.I,
)
"""`Mia is allergic to nuts`, `Ella's swimming has moved`: a name or noun, and its verb at once, as no request begins."""
_NEED_PHRASE = re.compile(
    r"\b(?:have|has|need|needs|got|trying) to\b|\b(?:calling|writing|asking|here) (?:about|for|because|to|regarding)\b"
    r"|^\W*(?:this|it)(?:['’]s| is) (?:about|regarding)\b|\b(?:problem|issue|trouble|question)s? with\b",
    re.I,
)
"""It tells of something so that it is done."""
_WISH = re.compile(r"\b(?:i|we)(?:['’]d)? (?:\w+ )?(?:need|want|would like|like to|looking|wondering|wish|hope)\b", re.I)
_FEELING_VERB = r"(?:prefer|like|love|hate|dislike|don'?t (?:like|want|eat|drink)|am allergic|always|never|live in|work (?:as|at|for))"
_LEAD_IN = r"(?:(?:well|ok|okay|also|by the way|actually|sorry|no|correction),? )*"
_PREFERENCE_STATEMENT = re.compile(
    r"\b(?:please )?(?:remember|note|keep in mind|don'?t forget) (?:that |my |i )|^\W*(?:from now on|call me\b)"
    rf"|^\W*{_LEAD_IN}i (?:\w+ )?{_FEELING_VERB}\b"
    rf"|^\W*{_LEAD_IN}my (?:favou?rite|preferred|budget|name|birthday|location|home|address|usual)\b[^?\n]{{0,160}}?\b(?:is|are)\b",
    re.I,
)
_ADVICE_REQUEST = re.compile(
    r"\b(?:suggest\w*|recommend\w*|advi[sc]e|ideas?|propose|plan|choose|pick|which .{1,40} should|what (?:should|could|can|shall) (?:i|we)"
    r"|vorschl\w+|empf[ei]\w+|schlag\w* .{0,40}vor)\b",
    re.IGNORECASE,
)
_LOOK_BACK = re.compile(
    r"\b(?:did (?:we|i|you)|have (?:we|i|you)|we (?:talked|discussed|spoke|looked|booked|agreed|decided)|talk(?:ed)? about|last time"
    r"|earlier|(?:you|i) (?:said|told|mentioned|asked|recommended|suggested|booked)|previous(?:ly)?|before|yesterday|remember|recall"
    r"|again|ago|our (?:last|earlier))\b",
    re.I,
)
_WORD_OF_ASKING = re.compile(
    r"\b(?:asked|did \w+ (?:ever |already )?ask|(?:my|our|your|his|her|their|which|what) (?:\w+ )?questions?|gefragt|fragte\w*)\b"
    r"|\b(?:meine|unsere|deine|welche|seine|ihre)n? (?:\w+ )?fragen?\b",
    re.I,
)
_PRESENT = re.compile(r"\b(?:still|now|currently|today|at the moment|noch|jetzt|derzeit|aktuell|heute|encore|maintenant)\b", re.I)
_FIRST_PERSON = re.compile(r"\b(?:I|me|my|mine|we|us|our|ours|ich|mir|mich|meine?[nrsm]?|wir|uns|unsere?[nrsm]?)\b", re.I)
_TOPIC = re.compile(r"\b(?:about|regarding|concerning|über)\s+\w", re.I)
_QUESTION_OF_OWN = re.compile(r"\b(?:what|which|where|when|who|how|do|does|is|are)\b[^.?!\n]{0,160}?\b(?:my|i)\b", re.I)
_PREFERENCE_WORD = re.compile(r"\b(?:preferences?|favou?rites?|prefer(?:red)?|budget)\b|\bdo i (?:like|prefer|love|hate)\b", re.I)
_BUYING_WORD = re.compile(
    r"\b(?:buy|buying|purchase|cheap(?:er|est)?|affordable|price[ds]?|pricing|deals?|discount|for sale|in stock|shop(?:ping)?|order online"
    r"|under [$€£]\s?\d|best value|expensive|budget)\b|[$€£]\d",
    re.I,
)
_NAVIGATION_START = re.compile(r"^\W*(?:please )?(?:go to|open|visit|navigate to|take me to|browse to)\b", re.I)
_COMPARISON_WORD = re.compile(r"\b(?:compare|comparison|versus|vs\.?|difference between|better than|which is better|pros and cons)\b", re.I)
_TRANSACTION_START = re.compile(
    r"^\W*(?:please )?(?:can you |could you |i'?d like to |i want to )?"
    r"(?:book|cancel|change|update|remember|save|create|send|add|remove|delete|store|modify)\b",
    re.I,
)
_QUESTION_FORM = re.compile(
    r"^\W*(?:what|which|who|whom|whose|where|when|why|how|is|are|was|were|do|does|did|can|could|has|have|tell me|explain|describe)\b|[?？]",
    re.I,
)


def is_greeting(text: str) -> bool:
    """A greeting or thanks and nothing else."""
    return bool(_GREETING.match(text)) and not ends_as_question(text) and is_courtesy(text, "en")


def is_thanks(text: str) -> bool:
    """Thanks or praise, and nothing else than that it was so."""
    return Cue.COURTESY in cues(text) and "?" not in text and (is_courtesy(text) or len(content_words(text)) <= 1)


def is_question(text: str) -> bool:
    """Whether a sentence is a question."""
    return bool(_QUESTION_FORM.search(text))


def is_order(text: str) -> bool:
    """Whether a sentence begins as an order does."""
    return bool(_ORDER_START.match(text))


def states_at_once(text: str) -> bool:
    """Whether a sentence names a thing and says at once what it is: `Mia is allergic to nuts`."""
    return bool(_SUBJECT_WITH_VERB.match(text))


def is_request(text: str) -> bool:
    """Whether a sentence asks for something, or tells of it so that it is done."""
    return any(shape.search(text) for shape in (_QUESTION_FORM, _WISH, _NEED_PHRASE, _ORDER_START))


def is_statement(text: str) -> bool:
    """Whether a sentence only tells: it ends as one, or names a thing and says at once what it is, and wants nothing."""
    said = _STATEMENT_END.search(text) and (len(words(text)) >= _MIN_STATEMENT_WORDS or not text.isascii())
    return (bool(said) or states_at_once(text)) and not is_request(text)


def states_preference(text: str) -> bool:
    """The user says something to be remembered (and does not ask)."""
    return bool(_PREFERENCE_STATEMENT.search(text)) and not ends_as_question(text)


def asks_preference(text: str) -> bool:
    """The user asks what they prefer."""
    return bool(_PREFERENCE_WORD.search(text)) and bool(_QUESTION_OF_OWN.search(text))


def asks_past(text: str) -> bool:
    """The query looks back at earlier turns or at something of the user's own."""
    return bool(_LOOK_BACK.search(text) or _QUESTION_OF_OWN.search(text))


def asks_present(text: str) -> bool:
    """The query asks how things are now."""
    return bool(_PRESENT.search(text))


def speaks_of_self(text: str) -> bool:
    """The query has a word for the user, or for those the user is one of."""
    return bool(_FIRST_PERSON.search(text))


def asks_advice(text: str) -> bool:
    """The query asks for advice: limits bind it that it does not repeat."""
    return bool(_ADVICE_REQUEST.search(text))


def asks_about_questions(text: str) -> bool:
    """The query asks what was asked: only then is a question an answer."""
    return bool(_WORD_OF_ASKING.search(text))


def mentions_buying(text: str) -> bool:
    """The query has words of buying."""
    return bool(_BUYING_WORD.search(text))


def read_intent(text: str) -> Intent:
    """The intent of specification 000, section 16.1, by rules."""
    return _first_that_holds(
        (is_greeting(text), "greeting"),
        (states_preference(text), "preference"),
        (bool(_NAVIGATION_START.match(text)), "navigation"),
        (asks_preference(text) or looks_back(text), "recall"),
        (mentions_buying(text), "commerce"),
        (bool(_QUESTION_OF_OWN.search(text)), "recall"),
        (True, "query"),
    )


def read_query_type(text: str) -> QueryType:
    """The query type of specifications 000 and 004, by rules."""
    return _first_that_holds(
        (is_greeting(text), "general_question"),
        (bool(_NAVIGATION_START.match(text)), "navigation"),
        (bool(_COMPARISON_WORD.search(text)), "comparison"),
        (states_preference(text) or bool(_TRANSACTION_START.match(text)), "transactional"),
        (read_intent(text) == "commerce", "commerce_search"),
        (is_question(text), "informational"),
        (True, "general_question"),
    )


def _first_that_holds(*rules: tuple[bool, Name]) -> Name:
    return next(name for holds, name in rules if holds)


def looks_back(text: str) -> bool:
    """The query looks back at earlier turns."""
    return bool(_LOOK_BACK.search(text))


def asks_of_days(text: str) -> bool:
    """The query asks what happened on its days, not about a thing."""
    return not _TOPIC.search(text)
