"""Clauses of speech that was written down without punctuation, divided where a new one opens and never inside a phrase."""

import re
from collections.abc import Iterator
from functools import cache

_SHORTEST, _LEAST_TEXT, _MARKS_EVERY = 40, 300, 250
"""Characters of a clause at least; of a text that is divided; and between two marks of punctuation in one that is not."""
_FILLERS = {"en": "um|uh|okay|ok|alright", "de": "ähm|äh|okay", "fr": "euh|bon|bah", "es": "eh|bueno|okay"}
_CONNECTIVES = {
    "en": "and|but|so|because|now|then|or|well|also",
    "de": "und|aber|also|weil|denn|jetzt|dann|oder",
    "fr": "et|mais|donc|alors|parce que|puis|ou",
    "es": "y|pero|entonces|porque|luego|o",
}
_SUBJECTS = {
    "en": "i|you|we|they|he|she|it|it's|i'm|we're|you're|they're|there|there's|that|that's|let's|if|when|who|what|how|please|don't|never",
    "de": "ich|du|wir|ihr|sie|er|es|man|das|da|wenn|wer|was|wie|bitte",
    "fr": "je|j'ai|tu|on|nous|vous|il|elle|ils|elles|c'est|ça|si|quand|qui|il y a",
    "es": "yo|tú|él|ella|usted|nosotros|ellos|ustedes|si|cuando|quién|hay|es|se|no",
}
_MARK = re.compile(r"[.,;:!?。、]")


@cache
def _opener(language: str) -> re.Pattern[str] | None:
    if language not in _FILLERS:
        return None
    connectives, subjects = _CONNECTIVES[language], _SUBJECTS[language]
    return re.compile(rf"(?<=\s)(?:(?:{_FILLERS[language]})\s|(?:{connectives})\s+(?:{connectives}\s+)?(?:{subjects})\s)", re.IGNORECASE)


def clause_places(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    """The clauses of `text[start:end]`; all of it where it has punctuation, is short, or its language has no known openers."""
    opener = _opener(language)
    if opener and end - start > _LEAST_TEXT and len(_MARK.findall(text, start, end)) * _MARKS_EVERY < end - start:
        for found in opener.finditer(text, start, end):
            if found.start() - start >= _SHORTEST and end - found.start() >= _SHORTEST:
                yield start, found.start() - 1
                start = found.start()
    yield start, end
