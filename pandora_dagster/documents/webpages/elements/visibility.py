"""What of a page is not seen: by its own style sheets, or by marks that a browser left after computing the style.

Every reader of the tree works on what is left. Hidden text is kept apart with the way in which it is hidden.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pandora_dagster.documents.webpages.charset import CONTROL_CHARACTERS
from pandora_dagster.documents.webpages.elements.computed_style import Style, computed_style, has_color_of_background
from pandora_dagster.documents.webpages.elements.html_tree import UNSEEN_TAGS, Element, elements, full_text, selector_of, tag_of, words
from pandora_dagster.documents.webpages.elements.style_sheets import StyleSheets
from pandora_dagster.documents.webpages.libraries import library

_TAG_LETTERS = {code: chr(code - 0xE0000) for code in range(0xE0020, 0xE007F)}
"""Letters that no font shows, for the letters that they mean."""
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True, slots=True)
class HiddenText:
    """Text that is not seen, and why."""

    text: str
    reason: str
    selector: str


@dataclass(slots=True)
class VisiblePage:
    """A page's tree after the hidden part was taken out, the style of each element that is left, and the hidden part."""

    root: Element
    styles: dict[Element, Style]
    hidden: list[HiddenText] = field(default_factory=list[HiddenText])
    notices: list[str] = field(default_factory=list[str])


def visible_page(root: Element, invisible_attribute: str = "") -> VisiblePage:
    """Takes everything that is not seen out of the tree.

    `invisible_attribute`: the name of an attribute that every invisible element carries, as a browser computed it; "no" as its value marks
    a visible element inside an invisible one. Without it the page's style sheets and attributes decide.
    """
    page = VisiblePage(root, {})
    sheets = StyleSheets(root)
    if sheets.cut:
        page.notices.append("too many style rules: the rest was not read, text may be hidden")
    reasons = _reasons(page, sheets, invisible_attribute.lower())
    _drop_unseen_letters(page)
    _drop_comments(page)
    _take_out(page, reasons)
    _keep_descriptions(page)
    return page


def style_of(page: VisiblePage, element: Element) -> Style:
    """The style of an element or of the nearest element around it."""
    while element is not None:
        if (style := page.styles.get(element)) is not None:
            return style
        element = element.getparent()
    return Style()


def _reasons(page: VisiblePage, sheets: StyleSheets, mark: str) -> dict[Element, str]:
    """Why elements are hidden. A reason with a `~` before it hides an element's own text only: what is inside has its own entry."""
    reasons: dict[Element, str] = {}
    for element, wrapped in sheets.wrapped(page.root):
        parent = page.styles.get(element.getparent(), Style())
        tag = tag_of(element)
        if tag in UNSEEN_TAGS or (tag == "input" and element.get("type", "").lower() == "hidden"):
            reasons[element] = tag
            continue
        style, reason = computed_style(element, tag, parent, sheets.of(element, wrapped))
        page.styles[element] = style
        if mark:
            value = element.get(mark)
            style = replace(style, visible=parent.visible if value is None else value == "no")
            page.styles[element] = style
            reason = ""
        elif not reason and element.get("aria-hidden", "").strip().lower() == "true" and not _holds_content(element):
            reason = "aria-hidden"
        if reason:
            reasons[element] = reason
        elif not style.visible:
            reasons[element] = "~invisible in the browser" if mark else "~visibility"
        elif not mark and has_color_of_background(style):
            reasons[element] = "~color of its background"
    return reasons


def _holds_content(element: Element) -> bool:
    """Whether an element holds the page's heading or main part: a script has left the mark of an open dialogue on it."""
    return tag_of(element) in ("html", "body", "main") or next(element.iter("main", "h1"), None) is not None


def _take_out(page: VisiblePage, reasons: Mapping[Element, str]) -> None:
    """Remove hidden elements, and the own text of those that hide only that."""
    gone: set[Element] = set()
    for element in list(elements(page.root)):
        reason = reasons.get(element)
        if element.getparent() in gone:
            gone.add(element)
        elif reason is None:
            continue
        elif reason.startswith("~"):
            own = [element.text or "", *(child.tail or "" for child in element)]
            if text := words(" ".join(own)):
                page.hidden.append(HiddenText(text, reason[1:], selector_of(element)))
            element.text = None
            for child in element:
                child.tail = None
        elif element.getparent() is not None and tag_of(element) != "head":
            if tag_of(element) not in ("script", "style", "title") and (text := full_text(element)):
                page.hidden.append(HiddenText(text, reason, selector_of(element)))
            gone.add(element)
            element.clear(keep_tail=True)  # and not removed: the position of its siblings stays what it is in the page


def _drop_comments(page: VisiblePage) -> None:
    etree = library("lxml.etree")
    for node in list(page.root.iter(etree.Comment, etree.ProcessingInstruction)):
        if text := words(str(node.text)):
            page.hidden.append(HiddenText(text, "comment", ""))
        if (parent := node.getparent()) is None:
            continue
        before = node.getprevious()
        if before is None:
            parent.text = (parent.text or "") + (node.tail or "")
        else:
            before.tail = (before.tail or "") + (node.tail or "")
        node.tail = None
        parent.remove(node)


def _drop_unseen_letters(page: VisiblePage) -> None:
    secret: list[str] = []
    for element in page.root.iter():
        for name in ("text", "tail"):
            if text := getattr(element, name):
                shown, unseen = seen_letters(CONTROL_CHARACTERS.sub("", text))
                if shown != text:
                    setattr(element, name, shown)
                if unseen:
                    secret.append(unseen)
    if text := words(" ".join(secret)):
        page.hidden.append(HiddenText(text, "letters that no font shows", ""))


def seen_letters(text: str) -> tuple[str, str]:
    """`text` without letters of no width, and the letters that others of them mean."""
    if not any(unicodedata.category(ch) == "Cf" for ch in text if not ch.isascii()):
        return text, ""
    shown: list[str] = []
    for place, ch in enumerate(text):
        joins = ch in _JOINERS and place and ord(text[place - 1]) > 0x590  # Arabic, Indic scripts and emoji need them
        if ch.isascii() or joins or unicodedata.category(ch) != "Cf":
            shown.append(ch)
    return "".join(shown), "".join(_TAG_LETTERS[ord(ch)] for ch in text if ord(ch) in _TAG_LETTERS)


def _keep_descriptions(page: VisiblePage) -> None:
    """Texts of attributes that describe, which no eye sees on the page."""
    for element in page.root.iter("img", "meta", "area"):
        if element.get("http-equiv") is not None:
            continue
        if tag_of(element) == "meta" and element.get("itemprop") is None:
            text, reason = words(element.get("content")), f"meta {element.get('name') or element.get('property') or ''}".strip()
        else:
            text, reason = words(element.get("alt")), "alt text"
        if len(text.split()) > 1:
            page.hidden.append(HiddenText(text, reason, selector_of(element)))
