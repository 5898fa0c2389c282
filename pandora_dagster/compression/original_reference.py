"""The line with which a shortened text names its stored original."""

from pandora_dagster.contracts.enums import ContentType

REFERENCE = "whole text: "
"""Begins the line that names the stored original."""
_STORED_TYPES = frozenset((ContentType.TOOL_RESULT, ContentType.PRIOR_TURN))
"""Contents whose original stays at the path that is their name, so that a shortened text may refer to it for details."""


def reference_line(name: str, content_type: ContentType) -> str:
    """The line that names the stored tool result or turn; "" where its name is no path."""
    is_path = "/" in name or name.endswith((".md", ".json", ".txt"))
    return f"{REFERENCE}{name}" if content_type in _STORED_TYPES and is_path else ""
