"""Sentences of a text. Knows where one ends ("Dr.", "$697.00" and "i.e." do not end one); changes no character inside."""

from collections.abc import Callable, Iterable

import sentencex  # pyright: ignore[reportMissingTypeStubs]

_SEGMENT: Callable[[str, str], Iterable[str]] = sentencex.segment  # pyright: ignore


def sentences(text: str, *, language: str = "en") -> tuple[str, ...]:
    """The sentences of `text` in order, each verbatim without the blanks around it; a line break always ends one."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(s for line in lines if line for part in _SEGMENT(language, line) if (s := part.strip()))
