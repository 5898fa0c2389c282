"""Text for a terminal: stored text cannot act on it."""

import re

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters by which stored text could act on a terminal or reorder what it shows: C0 but tab and line feed, C1, marks of direction."""


def printable(text: str) -> str:
    """The text with each control character in a visible form, such as `\\x1b`. Every text that a command prints goes through it."""
    return CONTROLS.sub(_escape, text.replace("\r\n", "\n"))


def _escape(found: "re.Match[str]") -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
