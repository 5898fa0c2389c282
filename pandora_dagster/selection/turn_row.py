"""A turn's index row, made from its documents alone. The one place where a row is made: phases, import and rebuild call it."""

import re
from collections.abc import Mapping
from typing import Any

from pandora_dagster.contracts.turns import Manifest, TurnRow
from pandora_dagster.text.citations import REFERENCES_TITLE, cited, references
from pandora_dagster.text.meta import subsections
from pandora_dagster.text.sections import ContextDocument

_TOLD = (0, 4, 5)
"""The words of the person, tool results, the answer."""
_BEFORE = 2
"""In a recorded turn: what stood before the first words of the person."""
_QUOTING = "extractive"
"""The runtime whose answers are verbatim spans, each with its citation (DECISIONS 25)."""
_QUOTED_LINE = re.compile(r"^.*\[\d+\][ \t]*$\n?", re.MULTILINE)


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
    return "\n\n".join(told(manifest, ContextDocument.parse(context)).values())


def told(manifest: Manifest, document: ContextDocument) -> dict[int, str]:
    """What later turns learn from a turn: section -> text, without what only repeats an older source.

    A recorded turn tells all it holds. A live turn's sections 1 to 3 and 6 tell of its own work; a result that leads to
    earlier turns is theirs; and an answer of the embedded runtime is made of quotations, each of which stands at its source.
    """
    if manifest.recorded:
        bodies = {n: document.body(n) for n in sorted((*_TOLD, _BEFORE))}
    else:
        answer = document.body(5)
        bodies = {
            0: document.query(),
            4: _new_results(document.body(4)),
            5: _QUOTED_LINE.sub("", answer).strip("\n") if manifest.runtime == _QUOTING else answer,
        }
    return {n: body for n, body in bodies.items() if body.strip()}


def _new_results(body: str) -> str:
    """The results of section 4 that tell something no earlier turn holds."""
    elsewhere = {s.label for s in references(body) if not s.path.startswith("turns/")}
    kept = [f"### {title}\n\n{text}" for title, text in subsections(body).items() if elsewhere.intersection(cited(text))]
    return "\n\n".join(part for part in kept if not part.startswith(f"### {REFERENCES_TITLE}"))


def _summarised(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "summary": str(summary.get("summary", "")),
        "topics": tuple(str(t) for t in summary.get("topics", ())),
        "intent": str(summary.get("intent", "")),
        "has_research": bool(summary.get("has_research", False)),
        "research_topic": summary.get("research_topic"),
    }
