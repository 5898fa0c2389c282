"""The archive as a resource of the graph. Knows how to open the house for a night; knows nothing of what a night does."""

from collections.abc import Collection, Iterator
from datetime import date, datetime
from typing import Protocol

import dagster as dg
from pydantic import Field

from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.archive.archive_run import OnRow
from pandora_dagster.archive.level_runs import OnRow as OnLevel
from pandora_dagster.contracts.archive_records import ArchivedDay, ArchiveReport
from pandora_dagster.contracts.enums import Priority
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.user.summary_levels import LevelReport, LevelSubject
from pandora_dagster.defs.resources import cached_app


class ArchiveRunner(Protocol):
    """What assets, checks and schedules of the archive need of the house. A test replaces it by any object with these methods."""

    def waiting(self, now: datetime) -> frozenset[date]:
        """The days that hold turns due at `now`."""
        ...

    def by_day(self) -> tuple[tuple[date, int], ...]:
        """Every day that has archived turns, and how many."""
        ...

    def run(self, days: Collection[date], *, run_id: str, on_row: OnRow) -> ArchiveReport: ...
    def archived(self, days: Collection[date]) -> Iterator[TurnKey]: ...
    def days(self, days: Collection[date]) -> Iterator[ArchivedDay]: ...
    def page(self, day: date) -> str:
        """The address of the page that shows a day's documents with their lineage; "" where none is served."""
        ...

    def subjects(self, days: Collection[date], *, people: bool) -> dict[date, frozenset[LevelSubject]]:
        """The sessions, or the people, that have turns archived on these days, or came to rest with one of them."""
        ...

    def level(self, name: str, subjects: Collection[LevelSubject], *, run_id: str, on_row: OnLevel) -> LevelReport:
        """Bring `session_summaries` or `user_digests` of these subjects up to date."""
        ...

    def lost(self, subjects: Collection[LevelSubject]) -> Iterator[str]:
        """What speaks against `no_fact_lost` of these narratives or digests, a sentence each."""
        ...

    def lineage_page(self, document: str) -> str:
        """The address of the page that shows a document's lineage; "" where none is served."""
        ...


class ArchiveResource(dg.ConfigurableResource[None]):
    """RunsNights as a Dagster resource, whose calls a live turn goes before; empty fields leave the project's own settings as they are."""

    root: str = Field("", description="Store root; empty: PANDORA_ROOT, or data/panda-system-docs.")
    runtime: str = Field("", description="Runtime: extractive, sglang or sglang-offline; empty: as the settings say.")

    def waiting(self, now: datetime) -> frozenset[date]:
        return self._archival.waiting(now)

    def by_day(self) -> tuple[tuple[date, int], ...]:
        return self._archival.by_day()

    def run(self, days: Collection[date], *, run_id: str, on_row: OnRow) -> ArchiveReport:
        return self._archival.run(days, run_id=run_id, on_row=on_row)

    def archived(self, days: Collection[date]) -> Iterator[TurnKey]:
        return self._archival.archived(days)

    def days(self, days: Collection[date]) -> Iterator[ArchivedDay]:
        return self._archival.days(days)

    def page(self, day: date) -> str:
        return self._archival.page(day)

    def subjects(self, days: Collection[date], *, people: bool) -> dict[date, frozenset[LevelSubject]]:
        return self._archival.subjects(days, people=people)

    def level(self, name: str, subjects: Collection[LevelSubject], *, run_id: str, on_row: OnLevel) -> LevelReport:
        return self._archival.level(name, subjects, run_id=run_id, on_row=on_row)

    def lost(self, subjects: Collection[LevelSubject]) -> Iterator[str]:
        return self._archival.lost(subjects)

    def lineage_page(self, document: str) -> str:
        return self._archival.lineage_page(document)

    @property
    def _archival(self) -> ArchiveService:
        return ArchiveService(cached_app(self.root, self.runtime, Priority.BATCH))
