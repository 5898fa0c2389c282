"""Code fences that what they hold can not close."""

import re

_TICKS = re.compile(r"`{3,}")


def code_fence(text: str, language: str = "") -> str:
    """`text` in a fence longer than any fence inside it."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
