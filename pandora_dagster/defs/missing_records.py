# pyright: reportUnknownMemberType=false
"""Turns, archival runs and archived days without a run in Dagster. `pandora doctor` reports them, `pandora index rebuild` records them."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import dagster as dg

from pandora_dagster.app import App
from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.app.health import Finding
from pandora_dagster.defs.archival.archival_schedule import active_days, unmaterialized_days
from pandora_dagster.defs.archival.recorded_archival import ArchivalRecord, report_archival, unrecorded_archivals
from pandora_dagster.defs.instance import open_instance
from pandora_dagster.defs.turn.missing_runs import record_stored_turns, unrecorded_turns
from pandora_dagster.language.word_forms import counted


@dataclass(frozen=True, slots=True)
class MissingRecords:
    """How many turns, archival runs and archived days have no run in Dagster."""

    turns: int
    runs: int
    days: int

    def __bool__(self) -> bool:
        return bool(self.turns or self.runs or self.days)

    def __str__(self) -> str:
        counts = ((self.turns, "turn"), (self.runs, "archival run"), (self.days, "archived day"))
        return ", ".join(counted(number, noun) for number, noun in counts if number)


def find_missing_records(app: App) -> MissingRecords:
    """What Dagster lacks of this store; raises StoreError. Changes nothing."""
    exists = app.settings.dagster_home.is_dir()
    with open_instance(app.settings) if exists else nullcontext(dg.DagsterInstance.ephemeral()) as instance:
        archived = {day for day, _ in ArchiveService(app).by_day()}
        days = unmaterialized_days(archived, instance) - active_days(instance, app.settings)
        return MissingRecords(len(unrecorded_turns(app, instance)), len(unrecorded_archivals(app, instance)), len(days))


def missing_record_findings(app: App) -> Iterator[Finding]:
    """The finding of `doctor`; none where Dagster has a run of everything. The documents are complete without."""
    if app.settings.root.is_dir() and (missing := find_missing_records(app)):
        remedy = "It works; Dagster does not show them. pandora index rebuild records them."
        yield Finding("runs", True, f"{missing} without a run in Dagster", remedy)


def record_missing(app: App) -> MissingRecords:
    """Record what Dagster lacks, from what the store has; return what that was. Raises StoreError."""
    missing = find_missing_records(app)
    if missing.turns:
        with open_instance(app.settings, captures_output=False) as instance:
            record_stored_turns(app, instance, unrecorded_turns(app, instance))
    if missing.runs or missing.days:
        report_archival(app, ArchivalRecord.idle())
    return missing
