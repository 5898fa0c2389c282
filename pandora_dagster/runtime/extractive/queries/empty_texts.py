"""Texts that answer nothing: those that only repeat a question, that ask for something, or that this runtime said by itself."""

import re

from pandora_dagster.language.cues import ends_as_question
from pandora_dagster.language.no_result_phrases import is_no_result
from pandora_dagster.language.stop_words import ASKING_WORDS
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.queries.content_words import STOP_WORDS, stem, words

_YES_OR_NO = re.compile(r"^\W*(?:is|are|was|were|am|do|does|did|have|has|had|can|could|will|would|should)\b", re.IGNORECASE)
_SPEAKER_PREFIX = re.compile(r"^(?:\(\d{4}-\d{2}-\d{2}\) )?(?:(?:\*\*)?[A-Za-z][\w '-]{0,30}?(?::\*\*|\*\*:|:) +)?")
"""The date or the speaker before what was said."""
_REQUEST = re.compile(
    r"^\W*(?:(?:and|but|so|then|also|unfortunately|if so|if not|(?:to|before|in order to) [^,.]{1,80}),? )?"
    r"(?:(?:could|can|would|will|may|might) (?:you|i|we)\b"
    r"|please (?:provide|confirm|share|tell|give|let|specify|send|enter|choose|reply)\b|let me know\b|would you like\b"
    r"|do you (?:want|need)\b|feel free\b|how (?:can|may) i (?:help|assist)\b"
    r"|i(?: will| would|['’]ll|['’]d)? (?:also )?need (?:your|you to|the following"
    r"|(?:the|a) [\w ]{0,30}\b(?:id|number|details|information|name)s?)\b)",
    re.IGNORECASE,
)
_FIXED_SENTENCES = tuple(TEMPLATES[name] for name in ("greeting", "noted", "welcome", "ask_meaning", "ask_open"))
_CITATION = re.compile(r"(?<!\s)\s*\[\d{1,4}\]")
_DATE_PREFIX = re.compile(r"^\(\d{4}-\d{2}-\d{2}[^)\n]{0,20}\) ")


def repeats_question(text: str, query: str) -> bool:
    """Whether `text` has no word of matter beyond those of `query`; to a yes-or-no question a statement of its words is an answer."""
    bare = _SPEAKER_PREFIX.sub("", text)
    is_question = ends_as_question(text)
    if not is_question and _YES_OR_NO.match(query) and words(bare) != words(query):
        return False
    known = {stem(w) for w in words(query)}
    return all(stem(w) in known or w in STOP_WORDS | ASKING_WORDS for w in words(bare if is_question else text))


def is_question_or_request(text: str) -> bool:
    """Whether `text` asks or offers something instead of telling it."""
    return ends_as_question(text) or bool(_REQUEST.match(_SPEAKER_PREFIX.sub("", text)))


def is_fixed_sentence(text: str) -> bool:
    """Whether `text` is one of this runtime's own fixed sentences, or says that nothing was found."""
    bare = _CITATION.sub("", _DATE_PREFIX.sub("", text))
    return is_no_result(bare) or bare.startswith(_FIXED_SENTENCES) or _SPEAKER_PREFIX.sub("", text).startswith(_FIXED_SENTENCES)
