"""What a person gets from a finished turn: its answer and where its citations lead."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.words import TurnState
from pandora_dagster.phases.kit import Kit
from pandora_dagster.phases.saving import citations
from pandora_dagster.selection.whole_answer import whole_answer
from pandora_dagster.text.sections import ContextDocument


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer of a turn; of one that was clarified, its question back; empty for one that halted before it."""

    key: TurnKey
    state: TurnState
    response: str
    citations: tuple[Mapping[str, Any], ...]
    """Each with `label`, `turn_id` ("" for stored memory) and the absolute `path` of its document."""
    intervention: str | None


def _place(kit: Kit, key: TurnKey, home: Path, path: str) -> str:
    """The file that a cited path leads to: logical ids are resolved by their stores (DECISIONS 20)."""
    if path.startswith("notes/"):
        return kit.notes.path(key.user, path) or path
    if path.startswith(("research_cache/", "webpage_cache/")):
        return kit.sources.path(key.user, path) or path
    return str(home / path)


def answered(kit: Kit, key: TurnKey) -> Answered:
    """Read a turn's answer and resolve each citation to its document."""
    turn = kit.turns.load(key)
    home = Path(kit.turns.path(key)).parent.parent
    if turn.manifest.revision:
        home = home.parent.parent
    cited = tuple({**c, "path": _place(kit, key, home, str(c["path"]))} for c in citations(turn))
    answer = whole_answer(ContextDocument.parse(turn.context), turn.files)
    return Answered(key, turn.manifest.state, answer, cited, turn.manifest.intervention)
