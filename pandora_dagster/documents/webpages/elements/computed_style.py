"""The computed style of an element, as far as it decides whether its text is seen: a window of 1280 by 720 on a white page."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pandora_dagster.documents.webpages.elements.html_tree import Element
from pandora_dagster.documents.webpages.libraries import library

Color = tuple[float, float, float]

_WHITE: Color = (1.0, 1.0, 1.0)
_MIN_CONTRAST = 0.06
"""Largest difference of a channel (0 to 1) between text and background below which no eye reads it."""
_MIN_FONT_PX = 2.0
_MIN_OPACITY = 0.05
_FAR_PX = 500.0
"""An element shifted out of the page by at least this much is off screen."""
_LENGTH = re.compile(r"^([+-]?[\d.]+(?:e[+-]?\d+)?)(px|r?em|ex|ch|pt|vw|vh|vmin|vmax|cm|in|%)?$")
_PX = {"px": 1.0, "": 1.0, "em": 16.0, "rem": 16.0, "ex": 8.0, "ch": 8.0, "pt": 1.33, "vw": 12.8, "vh": 7.2,
    "vmin": 7.2, "vmax": 12.8, "cm": 37.8, "in": 96.0}  # fmt: skip
_FONT_WORDS = {"xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0, "x-large": 24.0, "xx-large": 32.0}
_SHIFT = re.compile(r"translate(?:x|y|3d)?\(([^()]{0,100})\)")
_STRUCK_TAGS = frozenset({"del", "s", "strike"})


@dataclass(frozen=True, slots=True)
class Style:
    """What an element inherits or shares with all that is inside it."""

    visible: bool = True
    font_px: float = 16.0
    opacity: float = 1.0
    color: Color | None = (0.0, 0.0, 0.0)
    """None: transparent."""
    background: Color | None = _WHITE
    """None: an image, or a color that is not known."""
    struck: bool = False


def computed_style(element: Element, tag: str, parent: Style, css: Mapping[str, str]) -> tuple[Style, str]:
    """The style of an element, and why it is hidden with all that is inside; "" where it is not."""
    display = css.get("display") or (
        "none" if element.get("hidden") is not None or (tag == "dialog" and element.get("open") is None) else ""
    )
    struck = parent.struck or tag in _STRUCK_TAGS
    background, color = parent.background, parent.color
    if bg := element.get("bgcolor"):
        background = _color(bg) or background
    if tag == "font" and (named := element.get("color")):
        color = _color(named) or color
    if not css:
        is_same = struck is parent.struck and background is parent.background and color is parent.color
        style = parent if is_same else replace(parent, struck=struck, background=background, color=color)
        return style, "hidden" if display == "none" else ""
    return _declared_style(replace(parent, struck=struck, background=background, color=color), parent.color, tuple(css.items()), display)


@lru_cache(1024)
def _declared_style(
    inherited: Style, parent_color: Color | None, declarations: tuple[tuple[str, str], ...], display: str
) -> tuple[Style, str]:
    """The style that declarations make of an inherited one, and why it is hidden; elements of one class share it."""
    css = dict(declarations)
    visible = inherited.visible if "visibility" not in css or css["visibility"] == "inherit" else css["visibility"] == "visible"
    opacity = inherited.opacity * _fraction(css.get("opacity", "1"))
    style = Style(
        visible=visible,
        font_px=_font_px(css, inherited.font_px),
        opacity=opacity,
        color=_text_color(css, inherited.color, parent_color),
        background=_background(css, inherited.background),
        struck=inherited.struck or "line-through" in css.get("text-decoration", "") + css.get("text-decoration-line", ""),
    )
    return style, _reason(css, style, display)


def _reason(css: Mapping[str, str], style: Style, display: str) -> str:
    if display == "none" or css.get("content-visibility") == "hidden":
        return "display" if "display" in css else "hidden"
    if style.opacity <= _MIN_OPACITY or "opacity(0" in css.get("filter", ""):
        return "opacity"
    if style.font_px < _MIN_FONT_PX:
        return "font size"
    if _off_screen(css):
        return "off screen"
    if _clipped(css):
        return "clip"
    return "size" if _collapsed(css) else ""


def _off_screen(css: Mapping[str, str]) -> bool:
    placed = css.get("position") in ("absolute", "fixed", "relative", "sticky")
    names = ["text-indent", "margin-left", "margin-top", *(("left", "right", "top", "bottom") if placed else ())]
    if any(_pixels(css.get(name, "")) <= -_FAR_PX for name in names):
        return True
    if placed and any(_pixels(css.get(name, "")) >= 20 * _FAR_PX for name in ("left", "right", "top", "bottom")):
        return True
    transform = css.get("transform", "")
    shifts = [_pixels(part) for found in _SHIFT.finditer(transform) for part in re.split(r"[\s,]+", found[1])]
    return any(abs(shift) >= _FAR_PX for shift in shifts) or "scale(0)" in transform or "scale(0," in transform or css.get("scale") == "0"


def _clipped(css: Mapping[str, str]) -> bool:
    clip = re.sub(r"\s", "", css.get("clip", "").replace(",", " ").replace(" ", "_"))
    sides = [_pixels(part) for part in clip.removeprefix("rect(").removesuffix(")").split("_") if part] if clip.startswith("rect(") else []
    if css.get("position") in ("absolute", "fixed") and len(sides) == 4 and abs(sides[1] - sides[3]) <= 1 and abs(sides[2] - sides[0]) <= 1:
        return True
    path = css.get("clip-path", "")
    percent = re.match(r"inset\(\s*(\d+)(?:\.\d+)?%", path)
    return bool(percent and int(percent[1]) >= 50) or bool(
        re.match(r"circle\(\s*0|polygon\(\s*0(?:px|%)? 0(?:px|%)?\s*,\s*0(?:px|%)? 0(?:px|%)?\s*,\s*0(?:px|%)? 0", path)
    )


def _collapsed(css: Mapping[str, str]) -> bool:
    """Whether an element of no height or width cuts off what is inside."""
    cut = any(
        word in css.get("overflow", "") + " " + css.get("overflow-x", "") + " " + css.get("overflow-y", "") for word in ("hidden", "clip")
    )
    sizes = [_pixels(css[name]) for name in ("width", "height", "max-width", "max-height") if name in css and _LENGTH.match(css[name])]
    return cut and any(size <= 1 for size in sizes)


def has_color_of_background(style: Style) -> bool:
    """Whether no eye tells the text from what is behind it."""
    if style.color is None:
        return True
    if style.background is None:
        return False
    return max(abs(a - b) for a, b in zip(style.color, style.background, strict=True)) < _MIN_CONTRAST


def _font_px(css: Mapping[str, str], parent: float) -> float:
    value = css.get("font-size", "")
    if not value and "font" in css:
        value = next(
            (part for part in re.split(r"[\s/]+", css["font"]) if part in _FONT_WORDS or (_LENGTH.match(part) and not part.isdigit())), ""
        )
    if value in _FONT_WORDS:
        return _FONT_WORDS[value]
    if not (found := _LENGTH.match(value)):
        return {"smaller": parent * 0.83, "larger": parent * 1.2}.get(value, parent)
    number, unit = _number(found[1]), found[2] or ""
    if unit in ("%", "em"):
        return parent * number / (100 if unit == "%" else 1)
    return number * _PX.get(unit, 1.0)


def _pixels(value: str) -> float:
    """A length in pixels of a window of 1280 by 720; 0 where it is none. A percentage is of the window's width."""
    found = _LENGTH.match(value.strip().removesuffix("!important").strip())
    return _number(found[1]) * (12.8 if found[2] == "%" else _PX.get(found[2] or "", 1.0)) if found else 0.0


def _number(digits: str) -> float:
    try:
        return float(digits)
    except ValueError:
        return 0.0


def _fraction(value: str) -> float:
    found = _LENGTH.match(value)
    return (_number(found[1]) / 100 if found[2] == "%" else _number(found[1])) if found else 1.0


def _text_color(css: Mapping[str, str], attribute: Color | None, parent: Color | None) -> Color | None:
    value = css.get("-webkit-text-fill-color") or css.get("color", "")
    if not value or value in ("inherit", "currentcolor", "initial", "unset"):
        return attribute
    if "text" in css.get("background-clip", "") + css.get("-webkit-background-clip", ""):
        return parent or (0.0, 0.0, 0.0)  # the background shows through the letters
    found = library("tinycss2.color4").parse_color(value)
    if found is None or isinstance(found, str):
        return attribute
    return None if found.alpha is not None and found.alpha <= _MIN_OPACITY else _channels(found)


def _background(css: Mapping[str, str], inherited: Color | None) -> Color | None:
    shorthand = css.get("background", "")
    if "url(" in shorthand or "gradient(" in shorthand or css.get("background-image", "none") not in ("none", "initial", "unset"):
        return None
    for value in (css.get("background-color", ""), shorthand):
        for part in re.findall(r"[\w-]{1,20}\([^()]{0,100}\)|[^\s()]{1,40}", value):
            found = library("tinycss2.color4").parse_color(part)
            if found is not None and not isinstance(found, str) and (found.alpha is None or found.alpha > _MIN_OPACITY):
                return _channels(found)
    return inherited


def _color(value: str) -> Color | None:
    found = library("tinycss2.color4").parse_color(value if not re.fullmatch(r"[0-9a-fA-F]{6}", value) else f"#{value}")
    return _channels(found) if found is not None and not isinstance(found, str) else None


def _channels(color: Any) -> Color | None:
    try:
        red, green, blue = color.to("srgb").coordinates
    except (NotImplementedError, ValueError):
        return None
    return (red or 0.0, green or 0.0, blue or 0.0)
