"""The application container: the ports of one open store, and the services over them. `composition` builds it."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from pandora_dagster.app.adapters.service_ports import ArchivePorts, RecordPorts
from pandora_dagster.app.services import Services
from pandora_dagster.contracts.ids import TurnKey, UserId, session_id, turn_number, user_id
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import AnswerListener
from pandora_dagster.contracts.ports.model_runtime import EmbeddingModel, ModelRuntime
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.ports.record_storage import (
    CallHistory,
    ExpiringRuns,
    ExpiringVault,
    Interventions,
    RecipeVersionStore,
)
from pandora_dagster.contracts.ports.turn_storage import SearchIndex, TurnStore, VectorIndex
from pandora_dagster.contracts.ports.user_storage import Continuations, Sessions
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.errors import InputError
from pandora_dagster.execution.fit.compression_log import EMBEDDED
from pandora_dagster.execution.fit.section_budgets import SectionBudgets
from pandora_dagster.execution.fit.summarization_engine import SummarizationEngine
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow import turn_flow
from pandora_dagster.phases.flow.turn_answer import TurnAnswer, read_answer
from pandora_dagster.phases.steps.manual_pages import decide_page
from pandora_dagster.phases.steps.write_approval import decide_call
from pandora_dagster.settings import Settings

if TYPE_CHECKING:
    from pandora_dagster.app.health import HealthService
    from pandora_dagster.app.index_service import IndexService
    from pandora_dagster.app.lineage_service import LineageService
    from pandora_dagster.app.search_service import SearchService
    from pandora_dagster.app.transfer_service import TransferService
    from pandora_dagster.phases.flow.halt_resolution import ManualAnswerExecutor

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CompressionStack:
    """The compression of an application."""

    engine: SummarizationEngine
    """Compresses any text."""
    sections: SectionBudgets
    """Compresses the sections of a turn that are over their budgets."""


@dataclass(frozen=True, slots=True)
class App:
    """An open application, one per process. `run` executes its async work; `close` ends it."""

    settings: Settings
    dependencies: PhaseDependencies
    runtime: ModelRuntime
    vault: ExpiringVault
    research_runs: ExpiringRuns
    sessions: Sessions
    continuations: Continuations
    turn_index: SearchIndex
    loop: asyncio.Runner
    compression: CompressionStack
    calls: CallHistory
    vectors: VectorIndex | None
    """The vectors of messages; None where embeddings are off."""
    embedder: EmbeddingModel | None
    """The model that makes vectors; None where embeddings are off."""
    archive: ArchivePorts
    records: RecordPorts
    versions: RecipeVersionStore
    """Every version of a recipe that ran, and the one in production."""
    services: Services
    """Search, lineage, import and export, indexes and health."""
    on_close: Callable[[], None]
    """Writes the metrics that are not stored yet."""

    @property
    def turns(self) -> TurnStore:
        return self.dependencies.turns

    @property
    def indexes(self) -> "IndexService":
        return self.services.indexes

    @property
    def transfer(self) -> "TransferService":
        return self.services.transfer

    @property
    def health(self) -> "HealthService":
        return self.services.health

    @property
    def lineage(self) -> "LineageService":
        return self.services.lineage

    @property
    def search(self) -> "SearchService":
        return self.services.search

    @property
    def interventions(self) -> Interventions:
        return self.dependencies.interventions

    @property
    def recipes(self) -> RecipeCatalog:
        return self.dependencies.recipes

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run async work from sync code, always on the application's own event loop."""
        return self.loop.run(work)

    def verify_models(self) -> None:
        """Ask the servers for their models, once per process and before an event loop runs; raises ConfigurationError."""
        if self.runtime.name != EMBEDDED and not self.health.models_verified:
            self.run(self.health.verify_models())

    def owner(self, user: str) -> UserId:
        """The user that a command names, else PANDORA_USER. Raises BadIdError."""
        return user_id(user) if user else self.settings.user

    def start(
        self,
        query: str,
        *,
        user: str = "",
        session: str = "",
        mode: str = "chat",
        metadata: Mapping[str, str] = MappingProxyType({}),
    ) -> TurnKey:
        """Open a turn; an empty user is PANDORA_USER, an empty session the day's; `metadata` is the client's.

        Raises InputError, and ConfigurationError where a server does not have the model that the runtime file names, or where a recipe of
        the turn is broken.
        """
        if mode not in ("chat", "code"):
            raise InputError(f"mode {mode!r}: expected chat or code")
        turn_flow.check_recipes(self.recipes, mode)
        self.verify_models()
        turn_session = session_id(session or self.new_session())
        return turn_flow.start_turn(self.dependencies, query, user=self.owner(user), session=turn_session, mode=mode, metadata=metadata)

    def with_listener(self, listener: AnswerListener) -> "App":
        """The same application, which passes the answers of turns to `listener` while they are written."""
        return replace(self, dependencies=replace(self.dependencies, listener=listener))

    def decide_call(self, intervention: Intervention, *, approved: bool, note: str = "") -> None:
        """Approve or refuse the tool call that a halted turn asks about, and resolve its intervention; the turn can then go on."""
        decide_call(self.dependencies, intervention, approved=approved)
        self.interventions.resolve(intervention.id, note, how="approved" if approved else "refused")

    def decide_page(self, intervention: Intervention, text: str, *, note: str = "") -> None:
        """Give the text of the page that a halted turn asks for, "" to go on without it, and resolve its intervention."""
        decide_page(self.dependencies, intervention, text)
        self.interventions.resolve(intervention.id, note, how="by_hand" if text.strip() else "refused")

    def with_manual_answer(self, intervention: Intervention, answer: str) -> "tuple[App, ManualAnswerExecutor]":
        """The same application, in which the halted call has the user's answer, and the executor that records whether it was given.

        Raises InputError where the answer does not pass the recipe's checks."""
        from pandora_dagster.governance.manual_answers import check_manual_answer
        from pandora_dagster.phases.flow.halt_resolution import with_manual_answer

        deps, executor = with_manual_answer(self.dependencies, intervention, answer)
        check_manual_answer(intervention, answer, self.dependencies.recipes, self.calls, self.vault)
        return replace(self, dependencies=deps), executor

    def delete_expired(self) -> None:
        """Delete prompt packs, raw answers, checkpoints of research and unclaimed continuations after their retention, at most once a day;
        those of open interventions stay.

        Raises StoreError, and DocumentError for a damaged intervention: then nothing is deleted."""
        from pandora_dagster.governance.manual_answers import pending_vault_refs

        now, days = self.dependencies.clock(), self.settings.keep_packs_days
        if self.vault.sweep_daily(now, days=days, spared=partial(pending_vault_refs, self.interventions, self.calls)) is not None:
            waiting = [record for record in self.interventions.list(state="open") if record.turn_id]
            spared = [TurnKey(user_id(record.user_id), turn_number(record.turn_id)) for record in waiting]
            self.research_runs.sweep(before=(now - timedelta(days=days)).timestamp(), spared=spared)
            for user in self.turns.users():
                self.continuations.expire(user, now - timedelta(days=days))

    def new_session(self) -> str:
        """The session of turns that name none: one a day, in the configured time zone."""
        return f"day-{self.dependencies.clock().astimezone(self.settings.zone):%Y-%m-%d}"

    def pending_phases(self, key: TurnKey) -> tuple[str, ...]:
        """The phases of a turn that have not finished, in order."""
        return turn_flow.unfinished_phases(key, self.dependencies)

    def run_turn(self, key: TurnKey, *, on_report: Callable[[PhaseReport], None]) -> PhaseReport:
        """Run the pending phases of a turn without Dagster (chat)."""
        return self.run(turn_flow.run_turn(key, self.dependencies, on_report=on_report))

    def answer_of(self, key: TurnKey, turn: Turn | None = None) -> TurnAnswer:
        """The answer of a turn; `turn`, where the caller has loaded it, is not read again."""
        return read_answer(self.dependencies, key, turn)

    def folder(self, key: TurnKey) -> Path:
        """The folder of a turn's documents."""
        return Path(self.turns.path(key))

    def close(self) -> None:
        """Close the connections and the event loop."""
        self.loop.run(self.runtime.aclose())
        self.loop.close()
        self.on_close()
