# pyright: reportUnknownMemberType=false
# (the signature of dg.sensor names a bare PathLike)
"""Interventions as events of an asset that is not computed: what halted stands in Dagster soon after. Knows ticks and cursors."""

import dagster as dg

from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.defs.prompt_scores import GROUP
from pandora_dagster.defs.resources import InterventionResource

ASSET, SENSOR = "interventions", "open_interventions"
_EVERY_S = 30
_AT_ONCE = 50
"""Events of one tick; the rest comes with the next."""


def interventions_asset() -> dg.AssetSpec:
    """The asset whose events are interventions; turns make them, Dagster only shows them."""
    text = "Why turns halted, one event an intervention. `pandora interventions show ID` has all to judge it, `resolve` goes on or ends it."
    return dg.AssetSpec(ASSET, description=text, group_name=GROUP, kinds={"markdown"})


def interventions_sensor() -> dg.SensorDefinition:
    """`open_interventions`: an event for each open intervention that was not shown before. Its cursor: those that were and are open."""

    @dg.sensor(
        name=SENSOR,
        minimum_interval_seconds=_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Shows each new intervention as an event of the asset `interventions`, with what it says and how to go on.",
    )
    def open_interventions(
        context: dg.SensorEvaluationContext, halts: dg.ResourceParam[InterventionResource]
    ) -> dg.SensorResult | dg.SkipReason:
        found, shown = halts.open().list(state="open"), set((context.cursor or "").split())
        new = [one for one in found if one.id not in shown][:_AT_ONCE]
        if not new:
            return dg.SkipReason("every open intervention was shown")
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
