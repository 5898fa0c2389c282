"""Resolving a halted turn by hand: the user gives the answer that the model did not, or ends the turn.

A retry needs nothing of its own: the phase runs again, with what is in production now.
"""

from dataclasses import dataclass, field, replace

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, turn_number, user_id
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import CallRequest, CallResult
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog, RecipeExecutor
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import InputError
from pandora_dagster.phases.core import turn_indexing
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.flow.turn_flow import remaining_phases


@dataclass(slots=True)
class ManualAnswerExecutor:
    """A `RecipeExecutor` that gives the user's answer to the first call of the halted phase and recipe."""

    execution: RecipeExecutor
    recipes: RecipeCatalog
    intervention: Intervention
    answer: str
    is_used: bool = field(default=False)
    """Whether a call has received the answer."""

    async def call(self, request: CallRequest) -> CallResult:
        if not self.is_used and self._is_target(request):
            self.is_used = True
            request = replace(request, manual_answer=self.answer)
        return await self.execution.call(request)

    def _is_target(self, request: CallRequest) -> bool:
        if request.site.phase != self.intervention.phase:
            return False
        return self.recipes.get(request.recipe, request.mode).name == self.intervention.recipe


def require_open(intervention: Intervention) -> None:
    """Raises InputError for an intervention that is already resolved."""
    if intervention.resolution_notice:
        raise InputError(f"{intervention.resolution_notice}: expected an open one", hint="pandora interventions list names those that are")


def with_manual_answer(deps: PhaseDependencies, intervention: Intervention, answer: str) -> tuple[PhaseDependencies, ManualAnswerExecutor]:
    """The dependencies to resume the halted turn with the user's answer, and the executor, which records whether it was used.

    Raises InputError where no call halted it, and where the phase that halted is done.
    """
    require_open(intervention)
    if not intervention.recipe or not intervention.call_id:
        message = f"intervention {intervention.id}: {intervention.type}: no call of a recipe halted it"
        raise InputError(f"{message}: expected one that an answer can resolve", hint="correct what its message names, then --retry")
    manifest = deps.turns.manifest(TurnKey(user_id(intervention.user_id), turn_number(intervention.turn_id)))
    if intervention.phase not in remaining_phases(manifest):
        raise InputError(f"intervention {intervention.id}: {intervention.phase} is done since: expected a phase that has not finished")
    if not answer.strip():
        raise InputError("answer: empty: expected what the model should have answered")
    executor = ManualAnswerExecutor(deps.execution, deps.recipes, intervention, answer)
    return replace(deps, execution=executor), executor


def abandon_turn(key: TurnKey, deps: PhaseDependencies) -> Manifest:
    """End a halted turn without an answer. Raises InputError for a turn that did not halt: a stored answer is never withdrawn."""
    with deps.turns.lock(key):
        turn = deps.turns.load(key)
        if turn.manifest.state is TurnState.ABANDONED:
            return turn.manifest
        if turn.manifest.state is not TurnState.HALTED:
            raise InputError(f"{key}: the turn is {turn.manifest.state}: expected one that halted")
        abandoned = deps.turns.commit(turn, phase=None, state=TurnState.ABANDONED)
        turn_indexing.index_turn(deps, abandoned)
        return abandoned.manifest
