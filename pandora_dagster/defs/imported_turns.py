"""Imports as events of an external asset: `pandora import` reports each, and Dagster shows what came and what archival will take next.

Imported turns have no partition: no phase ran for them (decision 41: docs/decisions/41-events-of-imported-turns.md).
"""

import dagster as dg

from pandora_dagster.contracts.archive_records import DueTurn
from pandora_dagster.defs.checked_asset import OWNER
from pandora_dagster.defs.instance import add_archival_days, remove_turn_partitions
from pandora_dagster.language.word_forms import counted
from pandora_dagster.transfer.conversation_import import ImportReport

ASSET, GROUP = "imported_turns", "archive"


def imported_turns_asset() -> dg.AssetSpec:
    """The external asset whose events are imports."""
    text = "Conversations that `pandora import` stored as turns; one event for each import. No phase runs for these turns."
    return dg.AssetSpec(ASSET, description=text, group_name=GROUP, kinds={"json"}, owners=[OWNER])


def record_import(instance: dg.DagsterInstance, report: ImportReport, *, source: str, due: tuple[DueTurn, ...]) -> None:
    """Report an import that stored turns as one event, add the days that archival takes next, and delete the partitions
    that earlier versions added for its turns.

    `source`: the name of its file; `due`: the turns that the next archival run takes.
    """
    remove_turn_partitions(instance, report.keys)
    if not report.turns:
        return
    users = sorted({key.user for key in report.keys})
    days = sorted({turn.day for turn in due})
    add_archival_days(instance, days)
    metadata = {
        "source": source,
        "turns": report.turns,
        "conversations": report.conversations,
        "conversations_unchanged": report.unchanged,
        "lines_rejected": len(report.faults),
        "users": len(users),
        "turns_due_for_archival": len(due),
        **({"due_days": f"{counted(len(days), 'day')} from {days[0]} to {days[-1]}"} if days else {}),
    }
    instance.report_runless_asset_event(dg.AssetMaterialization(ASSET, metadata=metadata))
