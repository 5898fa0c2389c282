"""The one resource of the graph. Knows how to open the house; knows nothing of phases beyond running one by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import dagster as dg
from pydantic import Field

from pandora_dagster.app import App, open_app
from pandora_dagster.app.batch_service import BatchService, OnBegin
from pandora_dagster.contracts.batches import Batch, BatchRow
from pandora_dagster.contracts.enums import Priority
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.errors import InputError
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow import turn_flow
from pandora_dagster.settings import Settings, load_settings, process_environment
from pandora_dagster.stores.records.batch_files import Inbox
from pandora_dagster.transfer.query_batch import OnRow


class PhaseRunner(Protocol):
    """What the assets need of the house. A test replaces it by any object with these methods."""

    def start(self, query: str, *, user: str, session: str, mode: str) -> TurnKey: ...
    def session(self, key: TurnKey) -> str: ...
    def run_phase(self, name: str, key: TurnKey) -> PhaseReport: ...
    def folder(self, key: TurnKey, revision: int) -> str: ...


@dataclass(frozen=True, slots=True)
class AppPhaseRunner:
    """RunsPhases over a house that is open. `again`: a finished phase runs again; without it the run only goes on with a turn."""

    app: App
    again: bool = True

    def start(self, query: str, *, user: str, session: str, mode: str) -> TurnKey:
        return self.app.start(query, user=user, session=session, mode=mode)

    def session(self, key: TurnKey) -> str:
        return self.app.dependencies.turns.manifest(key).session_id

    def run_phase(self, name: str, key: TurnKey) -> PhaseReport:
        report = self.app.run(turn_flow.run_phase(name, key, self.app.dependencies, again=self.again))
        if report.skipped and not self.again and report.manifest.finished(name):
            told = f"{key}: {name}: another process has finished it: expected nobody else to work on this turn"
            raise InputError(told, hint="pandora turns shows what became of it")
        return report

    def folder(self, key: TurnKey, revision: int) -> str:
        return self.app.dependencies.turns.path(key, revision=revision)


class BatchRunner(Protocol):
    """What the assets and sensors of batches need of the house."""

    def fingerprints(self) -> dict[str, str]:
        """Files of the inbox, each with what stays the same while nobody writes."""
        ...

    def identity(self, name: str) -> tuple[str, str]:
        """Digest of a file of the inbox, and the day that it belongs to."""
        ...

    def waiting(self, day: str) -> tuple[str, ...]:
        """Files of the inbox that belong to this day."""
        ...

    def run_waiting(self, name: str, day: str, *, on_begin: OnBegin, on_row: OnRow) -> object: ...
    def of_day(self, day: str) -> Sequence[tuple[Batch, Sequence[BatchRow]]]: ...


class TurnResource(dg.ConfigurableResource[None]):
    """RunsPhases as a Dagster resource; empty fields leave the project's own settings as they are."""

    root: str = Field("", description="Store root; empty: PANDORA_ROOT, or data/panda-system-docs.")
    runtime: str = Field("", description="Runtime: extractive, sglang or sglang-offline; empty: as the settings say.")

    def start(self, query: str, *, user: str, session: str, mode: str) -> TurnKey:
        return self._phases.start(query, user=user, session=session, mode=mode)

    def session(self, key: TurnKey) -> str:
        return self._phases.session(key)

    def run_phase(self, name: str, key: TurnKey) -> PhaseReport:
        return self._phases.run_phase(name, key)

    def folder(self, key: TurnKey, revision: int) -> str:
        return self._phases.folder(key, revision)

    @property
    def _phases(self) -> PhaseRunner:
        return AppPhaseRunner(cached_app(self.root, self.runtime))


class BatchResource(dg.ConfigurableResource[None]):
    """RunsBatches as a Dagster resource, whose calls a live turn goes before; empty fields leave the project's own settings as they are."""

    root: str = Field("", description="Store root; empty: PANDORA_ROOT, or data/panda-system-docs.")
    runtime: str = Field("", description="Runtime: extractive, sglang or sglang-offline; empty: as the settings say.")

    def fingerprints(self) -> dict[str, str]:
        return {waiting.name: waiting.fingerprint for waiting in Inbox(_settings(self.root, self.runtime).root).files()}

    def identity(self, name: str) -> tuple[str, str]:
        return self._batching.identity(name)

    def waiting(self, day: str) -> tuple[str, ...]:
        return self._batching.waiting(day)

    def run_waiting(self, name: str, day: str, *, on_begin: OnBegin, on_row: OnRow) -> object:
        return self._batching.run_waiting(name, day, on_begin=on_begin, on_row=on_row)

    def of_day(self, day: str) -> Sequence[tuple[Batch, Sequence[BatchRow]]]:
        return self._batching.of_day(day)

    @property
    def _batching(self) -> BatchService:
        return BatchService(cached_app(self.root, self.runtime, Priority.BATCH))


def _settings(root: str, runtime: str) -> Settings:
    return load_settings(process_environment(PANDORA_ROOT=root, PANDORA_RUNTIME=runtime))


@cache
def cached_app(root: str, runtime: str, priority: Priority = Priority.INTERACTIVE) -> App:
    """A process opens a house once: Dagster makes the resource anew for every run."""
    return open_app(_settings(root, runtime), priority=priority)
