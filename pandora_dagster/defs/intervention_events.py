# pyright: reportUnknownMemberType=false
# (the signature of dg.sensor names a bare PathLike)
"""Interventions as events of an external asset, which a sensor reports to Dagster."""

import dagster as dg

from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.defs.prompt_scores import GROUP
from pandora_dagster.defs.resources import InterventionResource

ASSET, SENSOR = "interventions", "open_interventions"
_EVERY_S = 30
_AT_ONCE = 50
"""Events of one tick; the next tick reports the rest."""


def interventions_asset() -> dg.AssetSpec:
    """The external asset whose events are interventions; turns create them, Dagster only shows them."""
    text = "Why turns halted: one event per intervention. `pandora interventions show ID` prints it, `resolve` resumes or ends the turn."
    return dg.AssetSpec(ASSET, description=text, group_name=GROUP, kinds={"markdown"})


def interventions_sensor() -> dg.SensorDefinition:
    """`open_interventions`: an event for each open intervention not reported before. The cursor holds the reported open ones."""

    @dg.sensor(
        name=SENSOR,
        minimum_interval_seconds=_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reports each new intervention as an event of the asset `interventions`, with its message and how to resume.",
    )
    def open_interventions(
        context: dg.SensorEvaluationContext, halts: dg.ResourceParam[InterventionResource]
    ) -> dg.SensorResult | dg.SkipReason:
        found, shown = halts.open().list(state="open"), set((context.cursor or "").split())
        new = [one for one in found if one.id not in shown][:_AT_ONCE]
        if not new:
            return dg.SkipReason("every open intervention was reported")
        shown.update(one.id for one in new)
        return dg.SensorResult(asset_events=[_event(one) for one in new], cursor=" ".join(one.id for one in found if one.id in shown))

    return open_interventions


def _event(one: Intervention) -> dg.AssetMaterialization:
    texts = {
        "intervention": one.id,
        "type": one.type.value,
        "turn": f"{one.user_id}:{one.turn_id}" if one.turn_id else "",
        "phase": one.phase,
        "recipe": f"{one.recipe}@{one.recipe_version}" if one.recipe else "",
        "message": one.message,
        "hint": one.hint,
    }
    command = dg.MetadataValue.md(f"`pandora interventions show {one.id}`")
    return dg.AssetMaterialization(ASSET, metadata={**{name: text for name, text in texts.items() if text}, "judge": command})
