"""The resources of the graph: each gives the assets one service of the application, which a process opens once.

Assets call `resource.open()` and then the service; a test replaces the resource by an object whose `open()` returns a fake.
"""

from dataclasses import dataclass
from functools import cache
from typing import Protocol

import dagster as dg
from pydantic import Field

from pandora_dagster.app import App, open_app
from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.app.batch_service import BatchService
from pandora_dagster.app.evaluation import Evaluation, open_evaluation
from pandora_dagster.contracts.enums import Priority
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports.record_storage import Interventions
from pandora_dagster.errors import InputError
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow import turn_flow
from pandora_dagster.settings import Settings, load_settings, process_environment
from pandora_dagster.stores.records.batch_files import Inbox


@cache
def cached_app(root: str, runtime: str, priority: Priority) -> App:
    """The application over these settings, opened once per process and priority.

    The one cache of a process: Dagster makes a resource anew for each run, and opening the application takes more than a second.
    """
    return open_app(_settings(root, runtime), priority=priority)


def _settings(root: str, runtime: str) -> Settings:
    return load_settings(process_environment(PANDORA_ROOT=root, PANDORA_RUNTIME=runtime))


class StoreResource(dg.ConfigurableResource[None]):
    """A store on this machine. An empty field takes the value of the settings."""

    root: str = Field("", description="Store root; empty: PANDORA_ROOT, or data/panda-system-docs.")

    def app(self, priority: Priority = Priority.INTERACTIVE) -> App:
        """The application of this process over the store; raises ConfigurationError."""
        return cached_app(self.root, self._runtime, priority)

    @property
    def settings(self) -> Settings:
        """The settings of the store, without the application; raises ConfigurationError."""
        return _settings(self.root, self._runtime)

    @property
    def _runtime(self) -> str:
        return ""


class AppResource(StoreResource):
    """A store and the runtime that answers its model calls. Empty fields take the values of the settings."""

    runtime: str = Field("", description="Runtime: extractive, sglang or sglang-offline; empty: PANDORA_RUNTIME.")

    @property
    def _runtime(self) -> str:
        return self.runtime


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


class TurnResource(AppResource):
    """Runs the phases of turns on a store. Empty fields take the values of the settings."""

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
        return AppPhaseRunner(self.app())


class BatchResource(AppResource):
    """Runs the queries of the inbox, with lower priority than live turns. Empty fields take the values of the settings."""

    @property
    def inbox(self) -> Inbox:
        """The files that wait; opens no application."""
        return Inbox(self.settings.root)

    def open(self) -> BatchService:
        return BatchService(self.app(Priority.BATCH))


class ArchiveResource(AppResource):
    """Archives turns, writes session summaries and digests, and prunes originals, with lower priority than live turns.

    Empty fields take the values of the settings.
    """

    def open(self) -> ArchiveService:
        return ArchiveService(self.app(Priority.BATCH))


class ScoreResource(StoreResource):
    """Scores of prompts and layers, computed from the call records of a store. An empty field takes the value of the settings."""

    def open(self) -> Evaluation:
        return open_evaluation(self.app())


class InterventionResource(StoreResource):
    """The interventions of a store. An empty field takes the value of the settings."""

    def open(self) -> Interventions:
        return self.app().interventions
