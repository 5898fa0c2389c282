"""Phrases of answers that found nothing: the phrase that prompts require and the embedded runtime uses, and its variants by models in
English, German and French."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from pandora_dagster.language.cues import negations
from pandora_dagster.language.detection import question_language

_SUBJECT = r"(?:\"[^\"]*\"|[^\".,;:\n\d])*"
"""What was looked for: no figure, no second clause."""
_ENGLISH_PHRASE = rf"I found nothing(?: (?:about|on|of|for|in|that tells)\b{_SUBJECT})?"
_GERMAN_PHRASE = (
    rf"Ich habe(?: (?:dazu|darüber|hierzu|davon|in)\b{_SUBJECT})? nichts(?: (?:über|zu|zum|zur|von|in|dazu|darüber)\b{_SUBJECT})? gefunden"
)
_FRENCH_PHRASE = rf"Je n['’]ai rien trouvé(?: (?:à|au|aux|sur|dans|concernant)\b{_SUBJECT})?"
_SENTENCE = rf"(?:(?:{_ENGLISH_PHRASE}|{_GERMAN_PHRASE}|{_FRENCH_PHRASE})(?:[.:]|$)|What comes nearest:|I looked at:)"
_ONLY_NO_RESULT = re.compile(rf"\s*(?:{_SENTENCE}\s*)+")
NO_RESULT: Mapping[str, str] = MappingProxyType(
    {
        "en": "I found nothing about this.",
        "de": "Ich habe dazu nichts gefunden.",
        "fr": "Je n'ai rien trouvé à ce sujet.",
        "es": "No he encontrado nada sobre esto.",
        "it": "Non ho trovato nulla su questo.",
        "nl": "Ik heb hierover niets gevonden.",
        "pl": "Nie znalazłem nic na ten temat.",
        "pt": "Não encontrei nada sobre isto.",
        "ja": "これについては何も見つかりませんでした。",
    }
)
"""Language -> what an answer says where nothing was found."""


_FINDING_WORDS = {
    "en": r"f[io]u?nd|know[ns]?|mention(?:ed|s)?|stated?|information|record(?:ed)?|specified|unknown",
    "de": r"f[aiu]nden?|fand|gefunden|weiß|wissen|bekannt|erwähnt|genannt|angegeben|Angaben?|Informationen?|Hinweise?",
    "fr": r"trouv\w+|sai[st]|connu\w*|mention\w*|indiqu\w+|précis\w+|informations?|renseignements?",
    "es": r"enc[ou]\w*ntr\w+|sé|sabe|conoc\w+|menciona\w*|indica\w*|consta|información|datos?",
    "it": r"trov\w+|so|noto|menzionat\w+|indicat\w+|informazion[ei]",
    "nl": r"gevonden|vind|weet|bekend|vermeld|informatie|gegevens",
    "pt": r"encontr\w+|sei|menciona\w*|indica\w*|informaç\w+",
}
_FINDING = re.compile(rf"\b(?:{'|'.join(_FINDING_WORDS.values())})\b", re.IGNORECASE)
"""Verbs of finding, knowing and mentioning, and nouns of what is found: negated, they state what was not found."""
_HOLDERS = r"documents?|sources?|conversations?|notes?|turns?|memory|results?|Unterlagen|Dokumente?|Quellen?|Gesprächen?|fuentes?"
_SAYING = r"contains?|says?|tells?|answers?|holds?|have|enthalten|enthält|sagen|sagt|contien(?:t|nent|en?)|dicen?|disent?|dit"
_SILENT_HOLDER = re.compile(rf"\b(?:{_HOLDERS})\b.{{0,60}}\b(?:{_SAYING})\b", re.IGNORECASE)
"""What was read and a verb of saying: negated, they state the same."""
_NEGATIVE_WORD = re.compile(r"\b(?:unknown|unbekannt|inconnue?s?|desconocid[oa]s?|desconozco|unable to|unanswered)\b", re.IGNORECASE)


def states_absence(text: str) -> bool:
    """Whether a clause states that something was not found or is not known."""
    is_negated = negations(text) > 0 and bool(_FINDING.search(text) or _SILENT_HOLDER.search(text))
    return is_negated or bool(_NEGATIVE_WORD.search(text)) or is_no_result(text)


def no_result(question: str) -> str:
    """What an answer to `question` says where nothing was found: in its language, in English where that has no phrase here."""
    return NO_RESULT.get(question_language(question), NO_RESULT["en"])


def is_no_result(text: str) -> bool:
    """Whether an answer says only that nothing was found."""
    return bool(_ONLY_NO_RESULT.fullmatch(text)) or text.strip() in NO_RESULT.values()
