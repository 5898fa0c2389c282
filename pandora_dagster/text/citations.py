"""Citations `[n]` and the `### Source References` they lead to (004 section 5.2)."""

import re
from collections.abc import Iterable

from pandora_dagster.contracts.calls import Source
from pandora_dagster.text.meta import subsections

REFERENCES_TITLE = "Source References"
_CITED = re.compile(r"\[(\d{1,4})\](?![(\[:])")
_REFERENCE = re.compile(r"^- \[(\d{1,4})\] `([^`\n]+)`(?: - (.*))?$", re.MULTILINE)
_TURN_PATH = re.compile(r"^turns/(turn_\d{6,9})/")


def cited(text: str) -> tuple[str, ...]:
    """Labels cited in `text`, each once, in order."""
    return tuple(dict.fromkeys(_CITED.findall(text)))


def references(body: str) -> tuple[Source, ...]:
    """The sources that a section lists under `### Source References`."""
    listed = subsections(body).get(REFERENCES_TITLE, "")
    return tuple(
        Source(label, path, description, turn.group(1) if (turn := _TURN_PATH.match(path)) else None)
        for label, path, description in _REFERENCE.findall(listed)
    )


def reference_list(sources: Iterable[Source]) -> str:
    """The `### Source References` subsection for `sources`."""
    lines = [f"- [{s.label}] `{s.path}`" + (f" - {' '.join(s.description.split())}" if s.description else "") for s in sources]
    return f"### {REFERENCES_TITLE}\n\n" + "\n".join(lines)
