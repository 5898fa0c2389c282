"""What a person can do about a turn that halted: give the answer that the model did not, or end the turn. Knows the flow; asks nobody.

A retry needs nothing of its own: the phase runs again, with what is in production now.
"""

from dataclasses import dataclass, field, replace

from pandora_dagster.contracts.calls import CallRequest, CallResult
from pandora_dagster.contracts.ids import TurnKey, turn_number, user_id
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.ports import Cookbook, Executes
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.contracts.words import TurnState
from pandora_dagster.errors import InputError
from pandora_dagster.phases import indexing
from pandora_dagster.phases.flow import left_to_do
from pandora_dagster.phases.kit import Kit


@dataclass(slots=True)
class AnsweredByHand:
    """The Executes port, in which the first call of the halted phase and recipe has a person's answer."""

    execution: Executes
    cookbook: Cookbook
    intervention: Intervention
    answer: str
    given: bool = field(default=False)

    async def call(self, request: CallRequest) -> CallResult:
        if not self.given and self._is_meant(request):
            self.given = True
            request = replace(request, by_hand=self.answer)
        return await self.execution.call(request)

    def _is_meant(self, request: CallRequest) -> bool:
        if request.site.phase != self.intervention.phase:
            return False
        return self.cookbook.get(request.recipe, request.mode).name == self.intervention.recipe


def refuse_past(intervention: Intervention) -> None:
    """Raises InputError for an intervention about which something was done."""
    if intervention.over:
        raise InputError(f"{intervention.over}: expected an open one", hint="pandora interventions list names those that are")


def with_answer(kit: Kit, intervention: Intervention, answer: str) -> tuple[Kit, AnsweredByHand]:
    """The kit with which the halted turn goes on with a person's answer, and what tells whether it was given.

    Raises InputError where no call halted it, and where the phase that halted is done.
    """
    refuse_past(intervention)
    if not intervention.recipe or not intervention.call_id:
        told = f"intervention {intervention.id}: {intervention.type}: no call of a recipe halted it"
        raise InputError(f"{told}: expected one that an answer can mend", hint="mend what its message names, then --retry")
    manifest = kit.turns.manifest(TurnKey(user_id(intervention.user_id), turn_number(intervention.turn_id)))
    if intervention.phase not in left_to_do(manifest):
        raise InputError(f"intervention {intervention.id}: {intervention.phase} is done since: expected one that is left to do")
    if not answer.strip():
        raise InputError("answer: empty: expected what the model should have answered")
    given = AnsweredByHand(kit.execution, kit.cookbook, intervention, answer)
    return replace(kit, execution=given), given


def abandon(key: TurnKey, kit: Kit) -> Manifest:
    """End a halted turn without an answer. Raises InputError for one that did not halt: an answer that stands is not taken back."""
    with kit.turns.lock(key):
        turn = kit.turns.load(key)
        if turn.manifest.state is TurnState.ABANDONED:
            return turn.manifest
        if turn.manifest.state is not TurnState.HALTED:
            raise InputError(f"{key}: the turn is {turn.manifest.state}: expected one that halted")
        ended = kit.turns.commit(turn, phase=None, state=TurnState.ABANDONED)
        indexing.index(kit, ended)
        return ended.manifest
