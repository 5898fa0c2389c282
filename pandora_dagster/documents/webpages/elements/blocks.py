"""A visible page as blocks of text in its order: headings, paragraphs, list items, and whole tables as Markdown rows."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pandora_dagster.documents.webpages.elements.data_tables import is_data_table, table_rows
from pandora_dagster.documents.webpages.elements.html_tree import BLOCK_TAGS, HEADINGS, Element, is_element, tag_of, words

_MAX_LIST_LEVEL = 6
_SENTENCE_END = re.compile(r"[.!?:;。！？…»”\"]['’)\]]*$")
_AMOUNT = re.compile(r"[€$£¥₹]\s?\d|\d\s?[€$£¥₹]")
_CONTROLS = frozenset({"button", "option", "legend"})


@dataclass(slots=True)
class Block:
    """Text of one element that no inner block element holds. `rows` are the cells of a table or of terms and their descriptions."""

    element: Element
    tag: str
    text: str
    links: int = 0
    """Characters of the text that are in links."""
    rows: tuple[tuple[str, ...], ...] = ()
    parts: list[Element] = field(default_factory=list[Element])
    """The elements inside the block that hold text of it."""

    @property
    def link_share(self) -> float:
        """Share of the text that is in links."""
        return min(1.0, self.links / max(1, len(self.text)))


class _Pen:
    """Collects the text of the block that is being read."""

    def __init__(self, element: Element) -> None:
        self.element, self.tag = element, tag_of(element)
        self.parts: list[str] = []
        self.elements: list[Element] = []
        self.links = 0


def blocks_of(body: Element, is_apart: Callable[[Element], bool] = lambda element: False) -> list[Block]:
    """The blocks below `body` in order. Linear in the size of the tree.

    `is_apart`: whether an element that is written within a line is a block of its own, such as a signature.
    """
    found: list[Block] = []
    pen = _Pen(body)
    links = 0

    def flush(owner: Element) -> None:
        nonlocal pen
        if text := words("".join(pen.parts)):
            found.append(Block(pen.element, pen.tag, _marked(pen, text), pen.links, parts=pen.elements))
        pen = _Pen(owner)

    def write(text: str | None, element: Element) -> None:
        if text:
            pen.parts.append(text)
            if text.strip():
                pen.elements.append(element)
                pen.links += len(words(text)) if links else 0

    for event, element in _walk(body):
        tag = tag_of(element)
        if event == "table":
            flush(element)
            rows, link_characters = table_rows(element)
            if rows:
                found.append(Block(element, tag, rows_text(rows), link_characters, rows, [element]))
            continue
        block = tag in BLOCK_TAGS or is_apart(element)
        if event == "start":
            if block:
                flush(element)
            elif tag == "br":
                flush(pen.element)
            links += tag == "a"
            write(element.text, element)
        else:
            links -= tag == "a"
            if block:
                flush(_block_parent(element))
        if event == "end":
            write(element.tail, element.getparent())
    flush(body)
    return _described(found)


def rows_text(rows: tuple[tuple[str, ...], ...]) -> str:
    """Rows as Markdown, without a line of dashes: which row is the heading is not always known."""
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _walk(body: Element) -> Iterator[tuple[str, Element]]:
    """("start" | "end", element) in document order; a table of data is one ("table", element) and then its end is not given."""
    stack: list[tuple[str, Element]] = [("start", body)]
    while stack:
        event, element = stack.pop()
        if event == "tail":
            yield "end", element
            continue
        if tag_of(element) == "table" and is_data_table(element):
            yield "table", element
            continue
        yield "start", element
        stack.append(("tail", element))
        stack.extend(("start", child) for child in reversed(element) if is_element(child))


def _block_parent(element: Element) -> Element:
    parent = element.getparent()
    while parent is not None and tag_of(parent) not in BLOCK_TAGS and tag_of(parent) != "body":
        parent = parent.getparent()
    return parent if parent is not None else element


def _marked(pen: _Pen, text: str) -> str:
    if pen.tag != "li":
        return text
    level = len(list(pen.element.iterancestors("ul", "ol", "menu")))
    return "  " * (min(level, _MAX_LIST_LEVEL) - 1) + "- " + text


def _described(blocks: list[Block]) -> list[Block]:
    """Terms joined with their descriptions, one block for each `dl` element."""
    out: list[Block] = []
    rows: list[tuple[str, ...]] = []
    terms: list[str] = []
    described: list[Block] = []

    def end() -> None:
        rows.extend((term,) for term in terms)
        if rows:
            out.append(
                Block(
                    described[0].element,
                    "dl",
                    rows_text(tuple(rows)),
                    sum(b.links for b in described),
                    tuple(rows),
                    [p for b in described for p in b.parts],
                )
            )
        for collected in (rows, terms, described):
            collected.clear()

    for block in blocks:
        holder = block.element if block.tag in ("dt", "dd") else next(iter(block.element.iterancestors("dt", "dd")), None)
        if holder is None or (described and _list_of(described[0].element) is not _list_of(holder)):
            end()
        if holder is None:
            out.append(block)
            continue
        described.append(block)
        if tag_of(holder) == "dt":
            terms.append(block.text)
        elif terms:
            rows.append((" / ".join(terms), block.text))
            terms.clear()
        elif rows:
            rows[-1] = (*rows[-1][:-1], f"{rows[-1][-1]}; {block.text}")
        else:
            rows.append((block.text,))
    end()
    return out


def _list_of(element: Element) -> Element:
    return next(iter(element.iterancestors("dl")), None)


def is_heading(block: Block) -> bool:
    """Whether a block is a heading."""
    return block.tag in HEADINGS or (block.element.get("role") == "heading")


def is_control(block: Block) -> bool:
    """Whether a block is the text of a control, not of the page."""
    return block.tag in _CONTROLS or str(block.element.get("role") or "") in ("button", "tab", "menuitem", "option")


def prose_like(block: Block) -> bool:
    """Whether a block looks like a part of a text: a heading, rows, a sentence, an amount of money, or ten words."""
    return (
        bool(block.rows)
        or is_heading(block)
        or len(block.text.split()) >= 10
        or bool(_SENTENCE_END.search(block.text) or _AMOUNT.search(block.text))
    )


def sizes(body: Element) -> tuple[dict[Element, int], dict[Element, int]]:
    """Characters of text of each element below `body`, and those of them in links."""
    text: defaultdict[Element, int] = defaultdict(int)
    linked: defaultdict[Element, int] = defaultdict(int)
    for element in reversed([element for element in body.iter() if is_element(element)]):
        text[element] += len(words(element.text)) + sum(len(words(child.tail)) for child in element)
        if tag_of(element) == "a":
            linked[element] = text[element]
        if element is not body:
            text[element.getparent()] += text[element]
            linked[element.getparent()] += linked[element]
    return dict(text), dict(linked)
