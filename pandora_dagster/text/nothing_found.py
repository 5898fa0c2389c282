"""How an answer says that nothing was found: the words that the prompts ask for and the embedded runtime uses. Knows no documents."""

import re

_ABOUT = r"(?: (?:about|on|of|for|in|that tells)\b(?:\"[^\"]*\"|[^\".,;:\n\d])*)?"
"""What follows is what was looked for: no figure, no second clause."""
_SENTENCE = rf"(?:I found nothing{_ABOUT}(?:[.:]|$)|What comes nearest:|I looked at:)"
_ONLY = re.compile(rf"\s*(?:{_SENTENCE}\s*)+")


def only_nothing_found(text: str) -> bool:
    """Whether an answer says nothing else than that nothing was found."""
    return bool(_ONLY.fullmatch(text))
