"""A person's correction of a turn, put down to the recipe that wrote what was wrong. Knows manifests; judges nothing."""

from pandora_dagster.contracts.corrections import Correction, Corrections
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import InputError

ANSWER = "response"
"""The phase that wrote what the person sees."""


def correct(key: TurnKey, manifest: Manifest, said: str, corrections: Corrections, *, phase: str = ANSWER) -> Correction:
    """Write a correction down. Raises InputError where nobody's recipe wrote it: an imported turn, a phase that did not run."""
    if not said.strip():
        raise InputError("correction: empty: expected what was wrong, or what it should have been")
    ran = next((record for record in manifest.phases if record.phase == phase), None)
    if ran is None or not ran.recipes:
        known = ", ".join(record.phase for record in manifest.phases if record.recipes) or "none: it was imported"
        raise InputError(f"{key}: {phase}: no recipe ran there: expected a phase that did ({known})")
    recipe, version = next(iter(ran.recipes.items()))
    return corrections.add(key, revision=manifest.revision, phase=phase, recipe=recipe, recipe_version=version, said=said.strip())
