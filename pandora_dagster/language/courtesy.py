"""Whether a sentence is a courtesy or a mark and says nothing about its matter."""

import re

from pandora_dagster.language.cues import Cue, cues
from pandora_dagster.language.tokens import all_words

_OFFER = re.compile(
    r"^(?:sorry|please (?:tell|let|ask|give|send|say)|let me|if you (?:want|wish|like|would|need)"
    r"|(?:i|we) (?:can|could|will|would|looked|searched|checked)"
    r"|(?:bitte|sag|sagen sie|gib|geben sie) |(?:ich|wir) (?:kann|können|könnte|könnten|werde|würde)"
    r"|(?:wenn|falls) (?:du|sie) (?:möchte|willst|wollen|wünsch)"
    r"|(?:je|nous) (?:peux|pouvons|pourrais|pourrions)|dites?-moi|n['’]hésitez|si vous (?:voulez|souhaitez)"
    r"|(?:puedo|podemos|podría|podríamos)|dime|dígame|avísame|si (?:quieres|quiere|desea)"
    r"|posso|se vuoi|ik kan|laat me)\b",
    re.IGNORECASE,
)
"""Openings of a sentence in which the assistant speaks of what it can do next, or asks for a word: pronoun and modal verb."""
_CLAUSE_END = re.compile(r"[,.!?;:。！？，]+")
_DIGIT = re.compile(r"\d")
_MAX_COURTESY_WORDS = 8
"""Words of a clause with a word of thanks or greeting that is still nothing but that."""

_MAX_GREETING_WORDS = 4
"""Words before a comma that are still a greeting in front of the matter."""


def is_courtesy(text: str, language: str = "") -> bool:
    """Whether `text` thanks or greets and says hardly a word beside it; also a mark such as `###STOP###`. A text with a number never is."""
    if _DIGIT.search(text) or len(all_words(text)) <= 1:
        return not _DIGIT.search(text)
    found = [(len(all_words(clause)), Cue.COURTESY in cues(clause, language)) for clause in _CLAUSE_END.split(text)]
    return any(is_thanks for _, is_thanks in found) and all(said <= (_MAX_COURTESY_WORDS if is_thanks else 1) for said, is_thanks in found)


def is_offer(text: str) -> bool:
    """Whether a sentence offers a next step or asks the user for one: `I can look in your mails.`"""
    return bool(_OFFER.match(text.lstrip("*_- ")))


def without_greeting(text: str, language: str = "") -> str:
    """`text` from its first clause on that is no courtesy, verbatim; "" where all of it is one."""
    if is_courtesy(text, language):
        return ""
    clause = _CLAUSE_END.search(text)
    if clause and is_courtesy(text[: clause.end()], language) and len(all_words(text[: clause.start()])) <= _MAX_GREETING_WORDS:
        return without_greeting(text[clause.end() :].lstrip(), language)
    return text
