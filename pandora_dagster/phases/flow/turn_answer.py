"""What a user gets from a finished turn: its answer and the targets of its citations."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.turn_row import RESPONSE_FILE, whole_answer
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.steps.turn_completion import citations


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """The answer of a turn; of one that was clarified, its question back; empty for one that halted before it."""

    key: TurnKey
    state: TurnState
    response: str
    citations: tuple[Mapping[str, Any], ...]
    """Each with `label`, `turn_id` ("" for stored memory) and the absolute `path` of its document."""
    intervention: str | None


def _cited_file(deps: PhaseDependencies, key: TurnKey, user_folder: Path, path: str) -> str:
    """The file that a cited path leads to: sources resolve their logical ids (decision 20, docs/decisions/20-files-of-a-user.md), other
    paths are below the user's folder."""
    return next((file for source in deps.context_sources if (file := source.path(key.user, path))), str(user_folder / path))


def read_answer(deps: PhaseDependencies, key: TurnKey, turn: Turn | None = None) -> TurnAnswer:
    """A turn's answer, each citation resolved to its document; `turn`: as it is stored, where the caller has it."""
    turn = turn or deps.turns.load(key, only=(RESPONSE_FILE,))
    user_folder = Path(deps.turns.path(key)).parent.parent
    if turn.manifest.revision:  # its folder is two levels below that of the turn
        user_folder = user_folder.parent.parent
    cited = tuple({**citation, "path": _cited_file(deps, key, user_folder, str(citation["path"]))} for citation in citations(turn))
    answer = whole_answer(ContextDocument.parse(turn.context), turn.files)
    return TurnAnswer(key, turn.manifest.state, answer, cited, turn.manifest.intervention)
