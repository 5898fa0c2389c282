"""Phrases of answers that found nothing: the phrase that prompts require and the embedded runtime uses, and its variants by models in
English, German and French."""

import re

_MATTER = r"(?:\"[^\"]*\"|[^\".,;:\n\d])*"
"""What was looked for: no figure, no second clause."""
_ENGLISH = rf"I found nothing(?: (?:about|on|of|for|in|that tells)\b{_MATTER})?"
_GERMAN = (
    rf"Ich habe(?: (?:dazu|darüber|hierzu|davon|in)\b{_MATTER})? nichts(?: (?:über|zu|zum|zur|von|in|dazu|darüber)\b{_MATTER})? gefunden"
)
_FRENCH = rf"Je n['’]ai rien trouvé(?: (?:à|au|aux|sur|dans|concernant)\b{_MATTER})?"
_SENTENCE = rf"(?:(?:{_ENGLISH}|{_GERMAN}|{_FRENCH})(?:[.:]|$)|What comes nearest:|I looked at:)"
_ONLY = re.compile(rf"\s*(?:{_SENTENCE}\s*)+")


def is_no_result(text: str) -> bool:
    """Whether an answer says only that nothing was found."""
    return bool(_ONLY.fullmatch(text))
