"""Sentences of a text. Knows where one ends ("Dr.", "$697.00", "i.e." and "3. Januar" do not end one); changes no character inside."""

from collections.abc import Callable, Iterable

import sentencex  # pyright: ignore[reportMissingTypeStubs]

from pandora_dagster.text.points import mask_inner_points

_SEGMENT: Callable[[str, str], Iterable[str]] = sentencex.segment  # pyright: ignore


def sentences(text: str, *, language: str = "en") -> tuple[str, ...]:
    """The sentences of `text` in order, each verbatim without the blanks around it; a line break always ends one."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(s for line in lines if line for s in _of_line(line, language))


def _of_line(line: str, language: str) -> Iterable[str]:
    at = 0
    for part in _SEGMENT(language, mask_inner_points(line)):
        if found := line[at : at + len(part)].strip():
            yield found
        at += len(part)
