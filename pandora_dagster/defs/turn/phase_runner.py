"""How Dagster's assets run phases: the resource `pandora` opens a turn, and the open turn runs its phases."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from pandora_dagster.app import App
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.defs.resources import AppResource
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow import turn_flow

ReportCallback = Callable[[PhaseReport], None]


def ignore_report(report: PhaseReport) -> None:
    """Do nothing: the callback of a caller that reads only the outcome of a run."""


@dataclass(slots=True)
class OpenTurn:
    """A locked turn that runs its phases in one Dagster run, and records the reports and the error of that run.

    It is also the `PhaseRunner` of that run: every phase gets this same turn.
    """

    key: TurnKey
    session: str
    phase: Callable[[str], PhaseReport]
    """Runs a phase by its name, or returns the report of one that ran before."""
    folder: Callable[[int], str]
    """The turn's folder by its revision."""
    on_report: ReportCallback = ignore_report
    reports: list[PhaseReport] = field(default_factory=list[PhaseReport])
    error: Exception | None = None

    def open(self, key: TurnKey) -> "AbstractContextManager[OpenTurn]":
        """This turn itself, which is open already."""
        return nullcontext(self)

    def run_phase(self, name: str) -> PhaseReport:
        """Run a phase and return its report; `on_report` receives it too, unless the phase was skipped."""
        try:
            report = self.phase(name)
        except Exception as error:
            self.error = error
            raise
        self.reports.append(report)
        if not report.skipped:
            self.on_report(report)
        return report


class PhaseRunner(Protocol):
    """The resource `pandora` as the assets of a turn use it."""

    def open(self, key: TurnKey) -> AbstractContextManager[OpenTurn]:
        """The turn under its lock. Raises PandoraError."""
        ...


class TurnStarter(PhaseRunner, Protocol):
    """The resource `pandora` as the job `new_turn` uses it."""

    def start(self, query: str, *, user: str, session: str, mode: str) -> TurnKey:
        """Create a turn for `query`. Raises PandoraError."""
        ...


@contextmanager
def open_app_turn(app: App, key: TurnKey) -> Generator[OpenTurn]:
    """Open a turn of the store under its lock; its folder is read once, however many phases run."""
    turns = app.dependencies.turns
    with turn_flow.open_turn(key, app.dependencies) as run:
        yield OpenTurn(
            key,
            turns.manifest(key).session_id,
            phase=lambda name: app.run(run.run_phase(name)),
            folder=lambda revision: turns.path(key, revision=revision),
        )


class TurnResource(AppResource):
    """Runs the phases of turns on a store. Empty fields take the values of the settings."""

    def start(self, query: str, *, user: str, session: str, mode: str) -> TurnKey:
        return self.app().start(query, user=user, session=session, mode=mode)

    def open(self, key: TurnKey) -> AbstractContextManager[OpenTurn]:
        return open_app_turn(self.app(), key)
