"""What a library of its own judgement (trafilatura) takes for the main text of a page: one of the sources that must agree."""

import logging
import re
from copy import deepcopy
from dataclasses import dataclass

from pandora_dagster.documents.webpages.elements.blocks import Block
from pandora_dagster.documents.webpages.elements.html_tree import Element, words
from pandora_dagster.documents.webpages.libraries import library

MAX_ELEMENTS = 50_000
"""Elements of a page beyond which the library is not asked: it takes 40 % of the time of reading a page."""
_MAX_SEARCHED = 300_000
"""Characters of main text in which a block is searched for inside lines; a longer one is compared line by line."""


@dataclass(frozen=True, slots=True)
class MainText:
    """The main text, compared without white space and Markdown marks."""

    whole: str
    lines: frozenset[str]

    def has(self, block: Block) -> bool:
        """Whether the main text holds a block; of rows, most cells."""
        if block.rows:
            cells = [key for row in block.rows for cell in row if (key := _key(cell))]
            return sum(self._has(cell) for cell in cells) * 2 > len(cells)
        return self._has(_key(block.text))

    def _has(self, key: str) -> bool:
        return key in self.lines or (len(self.whole) <= _MAX_SEARCHED and key in self.whole)


def is_too_large(root: Element) -> bool:
    """Whether a tree has more elements than the library is given."""
    return any(number >= MAX_ELEMENTS for number, _ in enumerate(root.iter()))


def main_text(root: Element) -> MainText:
    """The main text of a tree from which the hidden part was taken out; empty where the library finds none, or is not asked."""
    if is_too_large(root):
        return MainText("", frozenset())
    trafilatura = library("trafilatura")
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it warns of every page without a main text
    copy = deepcopy(root)
    document = trafilatura.bare_extraction(copy, include_comments=False, include_tables=True, with_metadata=False)
    text = str(document.text or "") if document is not None else ""
    lines = [_key(line) for line in text.splitlines()]
    return MainText("\n".join(lines), frozenset(lines))


def _key(text: str) -> str:
    return re.sub(r"[\s|\\]+|^- ", "", words(text).removeprefix("- "))
