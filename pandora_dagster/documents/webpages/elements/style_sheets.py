"""The declarations that a page's own style sheets and style attributes give to each element. External style sheets are not loaded."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pandora_dagster.documents.webpages.elements.html_tree import Element, words
from pandora_dagster.documents.webpages.libraries import library

_PROPERTIES_NAMES = (
    "display visibility opacity font font-size color background background-color background-image background-clip -webkit- "
    "background-clip position left right top bottom text-indent margin-left margin-top clip clip-path width height max-width max- "
    "height overflow overflow-x overflow-y transform scale text-decoration text-decoration-line -webkit-text-fill-color content- "
    "visibility filter"
)
PROPERTIES = frozenset(_PROPERTIES_NAMES.split())
_MAX_STYLE_CHARACTERS = 2_000_000
_MAX_RULES = 20_000
"""Rules with a property that counts: a page beyond it is read without the rest, and says so."""
_SCREEN_WIDTH = 1280
_WIDTH = re.compile(r"\(\s*(min|max)-(?:device-)?width\s*:\s*([\d.]+)(px|r?em)\s*\)", re.IGNORECASE)
_VARIABLE = re.compile(r"var\( ?(--[\w-]{1,100}) ?(?:, ?([^()]{0,200}))?\)")

Declarations = dict[str, str]


class StyleSheets:
    """The rules of a page's `style` elements, matched element by element in document order."""

    def __init__(self, root: Element) -> None:
        self._matcher: Any = library("cssselect2").Matcher()
        self._variables: Declarations = {}
        self.rules = 0
        self.cut = False
        for sheet in root.iter("style"):
            media = str(sheet.get("media") or "")
            if _applies(media):
                self._add(
                    library("tinycss2").parse_stylesheet(
                        (sheet.text or "")[:_MAX_STYLE_CHARACTERS], skip_comments=True, skip_whitespace=True
                    )
                )

    def wrapped(self, root: Element) -> Iterable[tuple[Element, Any]]:
        """Each element with what `of` needs for it."""
        if not self.rules:
            return ((element, None) for element in root.iter() if isinstance(element.tag, str))
        wrapper = library("cssselect2").ElementWrapper.from_html_root(root)
        return ((wrapped.etree_element, wrapped) for wrapped in wrapper.iter_subtree())

    def of(self, element: Element, wrapped: Any) -> Mapping[str, str]:
        """The declarations that win for an element by importance, specificity and order."""
        normal: Declarations = {}
        important: Declarations = {}
        matches = self._matcher.match(wrapped) if wrapped is not None else ()
        for _, _, pseudo, (plain, urgent) in matches:
            if pseudo is None:
                normal.update(plain)
                important.update(urgent)
        if style := element.get("style"):
            plain, urgent = _declarations(library("tinycss2").parse_blocks_contents(str(style)[:10_000]))
            normal.update(plain)
            important.update(urgent)
        normal.update(important)
        return {name: self._resolved(value) for name, value in normal.items()} if normal else _NONE

    def _add(self, rules: Iterable[Any]) -> None:
        selectors = library("cssselect2")
        for rule in rules:
            if rule.type == "at-rule" and rule.content is not None and _holds_rules(rule):
                self._add(library("tinycss2").parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True))
            elif rule.type == "qualified-rule":
                plain, urgent = _declarations(library("tinycss2").parse_blocks_contents(rule.content))
                self._variables.update({name: value for name, value in (plain | urgent).items() if name.startswith("--")})
                payload = tuple({name: value for name, value in values.items() if name in PROPERTIES} for values in (plain, urgent))
                if not any(payload):
                    continue
                if self.rules >= _MAX_RULES:
                    self.cut = True
                    return
                try:
                    compiled = selectors.compile_selector_list(rule.prelude)
                except selectors.SelectorError:
                    continue
                self.rules += 1
                for selector in compiled:
                    self._matcher.add_selector(selector, payload)

    def _resolved(self, value: str) -> str:
        for _ in range(4):
            if "var(" not in value:
                break
            value = _VARIABLE.sub(lambda found: self._variables.get(found[1], found[2] or "")[:200], value)
        return value


_NONE: Mapping[str, str] = {}


def _declarations(items: Iterable[Any]) -> tuple[Declarations, Declarations]:
    serialize = library("tinycss2").serialize
    plain: Declarations = {}
    urgent: Declarations = {}
    for item in items:
        if item.type == "declaration" and (item.lower_name in PROPERTIES or item.name.startswith("--")):
            name = item.name if item.name.startswith("--") else item.lower_name
            (urgent if item.important else plain)[name] = words(serialize(item.value)).lower()
    return plain, urgent


def _holds_rules(rule: Any) -> bool:
    if rule.lower_at_keyword == "media":
        return _applies(library("tinycss2").serialize(rule.prelude))
    return rule.lower_at_keyword in ("supports", "layer", "container", "scope")


def _applies(media: str) -> bool:
    """Whether a media query holds for a screen of 1280 pixels; true where it asks for anything else."""
    return any(_query_applies(query) for query in media.lower().split(",")) if media.strip() else True


def _query_applies(query: str) -> bool:
    if re.search(r"\b(?:print|speech|aural|braille)\b", query) and "not" not in query:
        return False
    if "prefers-color-scheme: dark" in query or "prefers-color-scheme:dark" in query:
        return False
    sizes: Iterator[tuple[str, float]] = (
        (m[1].lower(), float(m[2]) * (1 if m[3] == "px" else 16)) for m in _WIDTH.finditer(query) if m[2].count(".") < 2
    )
    return all(width <= _SCREEN_WIDTH if bound == "min" else width >= _SCREEN_WIDTH for bound, width in sizes)
