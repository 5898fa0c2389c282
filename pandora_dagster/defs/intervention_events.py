# pyright: reportUnknownMemberType=false
# (the signature of dg.sensor names a bare PathLike)
"""Interventions as events of an external asset, which a sensor reports to Dagster."""

import dagster as dg

from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.defs.checked_asset import OWNER
from pandora_dagster.defs.prompt_scores import GROUP
from pandora_dagster.defs.resources import InterventionResource
from pandora_dagster.defs.turn.phase_metadata import retry_command
from pandora_dagster.documents.redaction.credentials import redact

ASSET, SENSOR = "interventions", "open_interventions"
_INTERVAL_S = 30
_MAX_EVENTS_PER_TICK = 50
"""The next tick reports the rest."""


def interventions_asset() -> dg.AssetSpec:
    """The external asset whose events are interventions: turns create them, and Dagster only shows them."""
    text = (
        "Why turns halted: one event per intervention, also a resolved one. `pandora interventions list` has the open ones, "
        "`show ID` prints one, `resolve ID` resumes or ends the turn."
    )
    return dg.AssetSpec(ASSET, description=text, group_name=GROUP, kinds={"markdown"}, owners=[OWNER])


def interventions_sensor() -> dg.SensorDefinition:
    """`open_interventions`: reports an event for each new open intervention. The cursor holds the ids of the reported ones still open."""

    @dg.sensor(
        name=SENSOR,
        minimum_interval_seconds=_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reports each new intervention as an event of the asset `interventions`, with its message and how to resume.",
    )
    def open_interventions(
        context: dg.SensorEvaluationContext, interventions: dg.ResourceParam[InterventionResource]
    ) -> dg.SensorResult | dg.SkipReason:
        still_open, reported_ids = interventions.open().list(state="open"), set((context.cursor or "").split())
        unreported = [intervention for intervention in still_open if intervention.id not in reported_ids][:_MAX_EVENTS_PER_TICK]
        if not unreported:
            return dg.SkipReason("every open intervention was reported")
        reported_ids.update(intervention.id for intervention in unreported)
        return dg.SensorResult(
            asset_events=[_event(intervention) for intervention in unreported],
            cursor=" ".join(intervention.id for intervention in still_open if intervention.id in reported_ids),
        )

    return open_interventions


def _event(intervention: Intervention) -> dg.AssetMaterialization:
    texts = {
        "intervention": intervention.id,
        "type": intervention.type.value,
        "turn": f"{intervention.user_id}:{intervention.turn_id}" if intervention.turn_id else "",
        "phase": intervention.phase,
        "recipe": f"{intervention.recipe}@{intervention.recipe_version}" if intervention.recipe else "",
        "message": redact(intervention.message),
        "hint": redact(intervention.hint),
    }
    metadata = {name: text for name, text in texts.items() if text}
    show = dg.MetadataValue.md(f"`pandora interventions show {intervention.id}`")
    return dg.AssetMaterialization(ASSET, metadata={**metadata, "show": show, "resolve": retry_command(intervention)})
