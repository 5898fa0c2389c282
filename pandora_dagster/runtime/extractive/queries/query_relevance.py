"""Whether a preference, note or topic is relevant to a query (specification 004, section 13.2): by shared words or by the intent."""

import re

from pandora_dagster.runtime.extractive.queries.content_words import content_words, stem, terms
from pandora_dagster.runtime.extractive.queries.query_intent import asks_preference, mentions_buying

_GENERIC_STEMS = frozenset(terms("favorite favourite preferred preference user own like usual general"))
_BUYING_STEMS = frozenset(terms("budget price cost spend brand vendor store shop location city country currency size shipping"))
_BARE_PREFERENCES = re.compile(r"\b(?:my|our|any|all) (?:\w+ )?preferences?\b", re.IGNORECASE)


def subject_stems(query: str) -> frozenset[str]:
    """Stems of the words that say what the query is about, without those that any preference could be called by."""
    return frozenset(stem(w) for w in content_words(query)) - _GENERIC_STEMS


def is_relevant(query: str, key: str, value: str) -> bool:
    """Whether the entry `key: value` matters for `query`."""
    about = frozenset(terms(key.replace("_", " ")))
    if (about - _GENERIC_STEMS | frozenset(terms(value))) & subject_stems(query):
        return True
    if mentions_buying(query) and about & _BUYING_STEMS:
        return True
    return asks_preference(query) and bool(_BARE_PREFERENCES.search(query))


def is_on_subject(query: str, text: str) -> bool:
    """Whether `text` shares so many words with the query that it is about it: two, of one or two all but one."""
    return len({stem(w) for w in shared_words(query, text)}) >= min(2, (len(subject_stems(query)) + 1) // 2 or 1)


def shared_words(query: str, text: str) -> tuple[str, ...]:
    """The words of the query, verbatim in lower case, whose stems are in `text`."""
    stems = frozenset(terms(re.sub(r"[._/-]", " ", text)))
    return tuple(w for w in content_words(query) if stem(w) in stems and stem(w) not in _GENERIC_STEMS)
