"""A turn's index row, made from its documents alone. The one place where a row is made: phases, import and rebuild call it."""

from collections.abc import Mapping
from typing import Any

from pandora_dagster.contracts.turns import Manifest, TurnRow
from pandora_dagster.text.sections import ContextDocument

_TOLD = (0, 4, 5)
"""The words of the person, tool results, the answer."""
_BEFORE = 2
"""In a recorded turn: what stood before the first words of the person."""


def row_of(manifest: Manifest, context: str) -> TurnRow:
    """The row of a turn (004 section 3.3) from its manifest and the text of its context.md."""
    summary = manifest.summary or {}
    return TurnRow(
        user_id=manifest.user_id,
        turn_id=manifest.turn_id,
        number=int(manifest.turn_id.removeprefix("turn_")),
        session_id=manifest.session_id,
        state=manifest.state,
        created_at=manifest.created_at,
        last_activity=manifest.last_activity,
        tokens=manifest.tokens,
        revision=manifest.revision,
        recorded=manifest.recorded,
        runtime=manifest.runtime,
        context_sha=manifest.context_sha,
        text=searched_text(manifest, context),
        **_summarised(summary),
    )


def searched_text(manifest: Manifest, context: str) -> str:
    """What a search looks at."""
    document = ContextDocument.parse(context)
    return "\n\n".join(body for n in told_sections(manifest) if (body := document.body(n)))


def told_sections(manifest: Manifest) -> tuple[int, ...]:
    """The sections that later turns learn from. A live turn's section 2 repeats older turns, 1, 3 and 6 tell of its own work."""
    return tuple(sorted((*_TOLD, _BEFORE))) if manifest.recorded else _TOLD


def _summarised(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "summary": str(summary.get("summary", "")),
        "topics": tuple(str(t) for t in summary.get("topics", ())),
        "intent": str(summary.get("intent", "")),
        "has_research": bool(summary.get("has_research", False)),
        "research_topic": summary.get("research_topic"),
    }
