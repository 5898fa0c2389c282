"""Reads the outcomes of turns from manifests and corrections; attributes a user's correction to the recipe of the wrong text."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId, turn_number, user_id
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.ports.record_storage import Corrections
from pandora_dagster.contracts.recipe_governance import Correction
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.governance.call_metrics import TurnOutcome
from pandora_dagster.phases.flow.phase_spec import PhaseRole
from pandora_dagster.phases.flow.phase_table import phase_in_role

_CACHED_TURNS = 10_000
"""Turns whose outcome is cached: calls of a turn come close together."""


@dataclass(slots=True)
class TurnOutcomes:
    """Outcomes of turns, each read once."""

    manifest: Callable[[TurnKey], Manifest]
    corrections: Corrections
    _outcomes: OrderedDict[tuple[str, str, int], TurnOutcome | None] = field(
        default_factory=OrderedDict[tuple[str, str, int], TurnOutcome | None]
    )
    _corrected_turns: dict[str, frozenset[tuple[str, int]]] = field(default_factory=dict[str, frozenset[tuple[str, int]]])

    def outcome_of(self, record: CallRecord) -> TurnOutcome | None:
        """The outcome of a call's turn; None without a turn, and for a turn that is open, missing, damaged, or has a newer revision."""
        if not record.turn_id:
            return None
        key = (record.user_id, record.turn_id, record.revision)
        if key not in self._outcomes:
            self._outcomes[key] = self._read_outcome(record)
            if len(self._outcomes) > _CACHED_TURNS:
                self._outcomes.popitem(last=False)
        return self._outcomes[key]

    def _read_outcome(self, record: CallRecord) -> TurnOutcome | None:
        try:
            user = user_id(record.user_id)
            manifest = self.manifest(TurnKey(user, turn_number(record.turn_id)))
        except (DocumentError, InputError):
            return None
        if manifest.revision != record.revision or manifest.state is TurnState.OPEN:
            return None
        corrected = (record.turn_id, record.revision) in self._corrections_of(user)
        return TurnOutcome(manifest.state is not TurnState.HALTED, _was_sent_back(manifest), corrected)

    def _corrections_of(self, user: UserId) -> frozenset[tuple[str, int]]:
        if user not in self._corrected_turns:
            self._corrected_turns[user] = frozenset((c.turn_id, c.revision) for c in self.corrections.of_user(user))
        return self._corrected_turns[user]


def _was_sent_back(manifest: Manifest) -> bool:
    """Whether the validator asked for another answer."""
    reports = [phase.report for phase in manifest.phases if phase.phase == phase_in_role(PhaseRole.VALIDATION)]
    return any(cast("Mapping[str, object]", report.get("facts", {})).get("revisions") for report in reports)


def attribute_correction(
    key: TurnKey,
    manifest: Manifest,
    text: str,
    corrections: Corrections,
    *,
    phase: str = "",
    recipe: str = "",
    calls: Iterable[CallRecord] = (),
) -> Correction:
    """Store a correction. `phase`: the one that was wrong, "" for that of the answer; `recipe`: its name, where several ran in it;
    `calls`: of the turn, oldest first.

    Raises InputError where no recipe ran (an imported turn, a phase that did not run), and where it is ambiguous which.
    """
    if not text.strip():
        raise InputError("correction: empty: expected what was wrong, or what it should have been")
    phase = phase or phase_in_role(PhaseRole.ANSWER)
    phase_record = next((record for record in manifest.phases if record.phase == phase), None)
    if phase_record is None or not phase_record.recipes:
        phases_with_recipe = ", ".join(record.phase for record in manifest.phases if record.recipes) or "none: it was imported"
        raise InputError(f"{key}: {phase}: no recipe ran there: expected a phase that did ({phases_with_recipe})")
    if recipe not in phase_record.recipes and (recipe or len(phase_record.recipes) > 1):
        reason = f"{recipe} did not run there" if recipe else "several recipes ran there"
        raise InputError(f"{key}: {phase}: {reason}: expected one of {', '.join(phase_record.recipes)}", hint="name it with --recipe")
    wrong_recipe = recipe or next(iter(phase_record.recipes))
    call = next((record.call_id for record in reversed([*calls]) if record.recipe == wrong_recipe), "")
    version = phase_record.recipes[wrong_recipe]
    return corrections.add(
        key, revision=manifest.revision, phase=phase, recipe=wrong_recipe, recipe_version=version, text=text.strip(), call_id=call
    )
