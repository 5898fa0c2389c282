"""The spans of a paragraph that become units: sentences, joined or divided."""

import re
from collections.abc import Iterator
from functools import cache

from pandora_dagster.language.sentences import sentence_spans

_MAX_SENTENCE_CHARACTERS = 2_000
"""Characters beyond which a sentence is divided at white space, so that it can be shown at all."""
_NUMBERING = re.compile(r"\W*\w{0,3}[.)\]]\W*")
"""`1.`, `(a)`, `.. [4]`: the number of what follows."""
_QUESTION_END = re.compile(r"[?？][\s\"”’»)]*$")
_ANSWER = re.compile(
    r"[\"“„«]?(?:[-–—] |(?:yes|no|none|nope|ja|nein|doch|oui|non|si|sí|no|nee|sim|não|tak|nie|はい|いいえ|да|нет)\b)", re.IGNORECASE
)
_MAX_QUESTION_CHARACTERS = 160
"""Characters up to which a question and the yes or no after it are one unit."""
_MAX_NUMBERING_CHARACTERS = 12
"""Characters up to which a number and what it numbers are one unit."""
_NUMBER_END = re.compile(r"(?:^|[\s(])(?:\d{1,2}|[A-Za-z])\.$")
"""`that 1.`, `am 3.`: it is not known whether the point ends a sentence, so what follows belongs to it."""

# Clauses of speech that was written down without punctuation, divided where a new one opens and never inside a phrase.

_MIN_CLAUSE_CHARACTERS = 40
"""Characters of the shortest clause that is a unit of its own."""
_MIN_SPEECH_CHARACTERS = 300
"""Characters from which a text without punctuation is divided into clauses."""
_MAX_MARK_DISTANCE = 250
"""Characters from one punctuation mark to the next beyond which a text counts as one without punctuation."""
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


def sentence_places(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence of `text`, white space around it left out."""
    unfinished = -1  # where a sentence begins that goes on
    for start, end in sentence_spans(text, language):
        first = start if unfinished < 0 else unfinished
        unfinished = first if _is_unfinished(text, start, end) and end - first < _MAX_SENTENCE_CHARACTERS else -1
        if unfinished < 0:
            for clause in _clauses(text, first, end, language):
                yield from _divided(text, *clause)
    if unfinished >= 0:
        yield unfinished, len(text.rstrip())


def _is_unfinished(text: str, start: int, end: int) -> bool:
    """Whether what follows `text[start:end]` belongs to it: a question its answer, a number what it counts."""
    if text[end - 1] == "." and _NUMBER_END.search(text[max(start, end - 6) : end]):
        return True
    if end - start < _MAX_QUESTION_CHARACTERS and _QUESTION_END.search(text[max(start, end - 4) : end]):
        return bool(_ANSWER.match(text[end : end + 24].lstrip()))
    return end - start < _MAX_NUMBERING_CHARACTERS and bool(_NUMBERING.fullmatch(text, start, end))


def _divided(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > _MAX_SENTENCE_CHARACTERS:
        cut = text.rfind(" ", start + 1, start + _MAX_SENTENCE_CHARACTERS)
        if cut < 0:
            cut = start + _MAX_SENTENCE_CHARACTERS
        yield start, cut
        start = cut + 1 if text[cut : cut + 1] == " " else cut
    if start < end:
        yield start, end


@cache
def _opener(language: str) -> re.Pattern[str] | None:
    if language not in _FILLERS:
        return None
    connectives, subjects = _CONNECTIVES[language], _SUBJECTS[language]
    return re.compile(rf"(?<=\s)(?:(?:{_FILLERS[language]})\s|(?:{connectives})\s+(?:{connectives}\s+)?(?:{subjects})\s)", re.IGNORECASE)


def _clauses(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    """The clauses of `text[start:end]`; all of it where it has punctuation, is short, or its language has no known openers."""
    opener = _opener(language)
    if opener and end - start > _MIN_SPEECH_CHARACTERS and len(_MARK.findall(text, start, end)) * _MAX_MARK_DISTANCE < end - start:
        for opening in (match.start() for match in opener.finditer(text, start, end)):
            if min(opening - start, end - opening) >= _MIN_CLAUSE_CHARACTERS:
                yield start, opening - 1
                start = opening
    yield start, end
