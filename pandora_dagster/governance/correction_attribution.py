"""Attribution of a user's correction of a turn to the recipe that wrote the wrong answer."""

from collections.abc import Iterable

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.ports.record_storage import Corrections
from pandora_dagster.contracts.recipe_governance import Correction
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import InputError

ANSWER = "response"
"""The phase that wrote the answer."""


def attribute_correction(
    key: TurnKey,
    manifest: Manifest,
    said: str,
    corrections: Corrections,
    *,
    phase: str = ANSWER,
    recipe: str = "",
    calls: Iterable[CallRecord] = (),
) -> Correction:
    """Store a correction. `recipe`: its name, where several ran in the phase; `calls`: of the turn, oldest first.

    Raises InputError where no recipe ran (an imported turn, a phase that did not run), and where it is ambiguous which.
    """
    if not said.strip():
        raise InputError("correction: empty: expected what was wrong, or what it should have been")
    ran = next((record for record in manifest.phases if record.phase == phase), None)
    if ran is None or not ran.recipes:
        known = ", ".join(record.phase for record in manifest.phases if record.recipes) or "none: it was imported"
        raise InputError(f"{key}: {phase}: no recipe ran there: expected a phase that did ({known})")
    if recipe not in ran.recipes and (recipe or len(ran.recipes) > 1):
        reason = f"{recipe} did not run there" if recipe else "several recipes ran there"
        raise InputError(f"{key}: {phase}: {reason}: expected one of {', '.join(ran.recipes)}", hint="name it with --recipe")
    blamed = recipe or next(iter(ran.recipes))
    call = next((record.call_id for record in reversed([*calls]) if record.recipe == blamed), "")
    version = ran.recipes[blamed]
    return corrections.add(
        key, revision=manifest.revision, phase=phase, recipe=blamed, recipe_version=version, said=said.strip(), call_id=call
    )
