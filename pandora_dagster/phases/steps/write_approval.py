"""Approval of tool calls: one that writes under a recipe of high risk, or of a tool that asks first, waits for the user's decision.

The decisions are in `approvals.json` of the turn. A call is asked about once; another tool, or other arguments, is another call.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError

from pandora_dagster.contracts.enums import InterventionType, TurnState
from pandora_dagster.contracts.ids import TurnKey, turn_number, user_id
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.phase_outputs import ToolCall
from pandora_dagster.contracts.strict_model import StrictModel
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.core.phase_context import PhaseContext, as_json

APPROVALS = "approvals.json"
_HINT = "Approve it with --approve, or refuse it with --refuse: the turn then goes on."


class WriteApproval(StrictModel):
    """One call that was asked about, and the user's decision."""

    tool: str
    arguments: Mapping[str, Any]
    intervention: str
    decision: Literal["open", "approved", "refused"] = "open"
    decided_at: str = ""

    def matches(self, call: ToolCall) -> bool:
        return self.tool == call.tool and _canonical(self.arguments) == _canonical(call.arguments)


class WriteApprovals(StrictModel):
    """`approvals.json`: the calls of one turn that were asked about, oldest first."""

    calls: tuple[WriteApproval, ...] = ()


def is_approved(ctx: PhaseContext, call: ToolCall, reason: str) -> bool:
    """Whether the user approved this call; False where it was refused. Raises HaltError, with an intervention that gives the reason, before
    the decision."""
    asked = _approvals_of(ctx.turn)
    decided = next((c for c in asked.calls if c.matches(call) and c.decision != "open"), None)
    if decided is not None:
        return decided.decision == "approved"
    question = f"{call.tool} {_canonical(call.arguments)}: {reason}: expected the user's approval"
    halt = ctx.halt(InterventionType.NEEDS_APPROVAL, question, hint=_HINT)
    pending = WriteApproval(tool=call.tool, arguments=call.arguments, intervention=halt.intervention_id)
    ctx.halt_files[APPROVALS] = as_json(WriteApprovals(calls=(*(c for c in asked.calls if c.decision != "open"), pending)))
    raise halt


def approval_files(ctx: PhaseContext) -> dict[str, str]:
    """`approvals.json` as the finished phase stores it; nothing where no call was asked about."""
    return {name: text for name, text in ctx.turn.files.items() if name == APPROVALS}


def decide_call(deps: PhaseDependencies, intervention: Intervention, *, approved: bool) -> TurnKey:
    """Store the user's decision on the call that an intervention asks about; the turn then goes on with `run_turn`.

    Raises InputError where the intervention asks about no call, or is decided already.
    """
    if intervention.type is not InterventionType.NEEDS_APPROVAL:
        raise InputError(f"intervention {intervention.id}: {intervention.type}: expected one that asks to approve a tool call")
    key = TurnKey(user_id(intervention.user_id), turn_number(intervention.turn_id))
    with deps.turns.lock(key):
        turn = deps.turns.load(key)
        calls = [_decided(c, deps, approved) if c.intervention == intervention.id else c for c in _approvals_of(turn).calls]
        is_waiting = turn.manifest.state is TurnState.HALTED and turn.manifest.intervention == intervention.id
        if not is_waiting or all(c.intervention != intervention.id for c in calls):
            raise InputError(f"intervention {intervention.id}: {key} no longer waits for it: expected an open one")
        deps.turns.commit(turn, phase=None, files={APPROVALS: as_json(WriteApprovals(calls=tuple(calls)))})
    return key


def _decided(call: WriteApproval, deps: PhaseDependencies, approved: bool) -> WriteApproval:
    return call.model_copy(update={"decision": "approved" if approved else "refused", "decided_at": deps.now})


def _approvals_of(turn: Turn) -> WriteApprovals:
    """The stored approvals; raises DocumentError where the file was damaged, so that nothing counts as approved."""
    try:
        return WriteApprovals.model_validate_json(turn.files[APPROVALS]) if APPROVALS in turn.files else WriteApprovals()
    except ValidationError as error:
        raise DocumentError(f"{turn.key}: {APPROVALS}: {error.errors()[0]['msg']}: expected the decisions on tool calls") from error


def _canonical(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True)
