"""The house: every adapter of one store, open. Knows what belongs together; `building.py` knows the constructors."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pandora_dagster.app.compression_stack import CompressionStack
from pandora_dagster.app.health import Finding, check_health, check_users
from pandora_dagster.app.lineage_service import LineageService
from pandora_dagster.app.manual_answers import check_manual_answer, pending_vault_refs
from pandora_dagster.app.search_service import most_messages, search_filters
from pandora_dagster.archive.eligibility import local_day
from pandora_dagster.contracts.ids import TurnKey, UserId, session_id, user_id
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import AnswerListener
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.ports.record_storage import Interventions
from pandora_dagster.contracts.ports.turn_storage import TurnStore
from pandora_dagster.contracts.ports.user_storage import Sessions
from pandora_dagster.errors import ConfigurationError, DocumentError, InputError
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow import turn_flow
from pandora_dagster.phases.flow.halt_resolution import ManualAnswerExecutor, with_manual_answer
from pandora_dagster.phases.flow.turn_answer import TurnAnswer, read_answer
from pandora_dagster.retrieval.messages.message_relevance import neighbouring_messages, relevant_messages
from pandora_dagster.retrieval.messages.search_results import SearchResults, search_results
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import Settings
from pandora_dagster.shipped import shipped_folder
from pandora_dagster.stores.calls.call_index_rebuild import rebuild_calls, verify_calls
from pandora_dagster.stores.calls.call_log import IndexedCallLog
from pandora_dagster.stores.calls.metrics_file import MetricsFile
from pandora_dagster.stores.calls.vault_files import VaultFiles
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.disk.turn_directory import user_ids
from pandora_dagster.stores.records.first_day import FirstDay
from pandora_dagster.stores.records.recipe_version_files import RecipeVersionFiles
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_index_rebuild import Preambles, RebuildReport, document_rows, rebuild_turns, verify_turns
from pandora_dagster.stores.search.turn_vectors import TurnVectors
from pandora_dagster.stores.user.research_index import DuckResearchIndex
from pandora_dagster.stores.user.source_files import SourceFiles, rebuild_sources, verify_sources
from pandora_dagster.transfer.conversation_export import export_conversations, raise_fault
from pandora_dagster.transfer.conversation_import import ImportContext, ImportReport, import_conversations

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class App:
    """An open house, one a process. `run` carries its async work; `close` ends it."""

    settings: Settings
    dependencies: PhaseDependencies
    runtime: ModelRuntime
    vault: VaultFiles
    sessions: Sessions
    turn_index: DuckTurnIndex
    recording: ImportContext
    loop: asyncio.Runner
    compression: CompressionStack
    calls: IndexedCallLog
    sources: SourceFiles
    research_index: DuckResearchIndex
    vectors: TurnVectors | None
    """What messages mean, where embeddings are on."""
    metrics: MetricsFile
    versions: RecipeVersionFiles
    """Every version of a recipe that ran, and which one is in production."""
    lineage: LineageService
    checked_runtimes: set[str] = field(default_factory=set[str])
    """Runtimes whose servers were asked for their models: once a process."""

    @property
    def turns(self) -> TurnStore:
        return self.dependencies.turns

    @property
    def interventions(self) -> Interventions:
        return self.dependencies.interventions

    @property
    def cookbook(self) -> RecipeCatalog:
        return self.dependencies.cookbook

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run async work from sync code, always on the house's own loop."""
        return self.loop.run(work)

    def start(self, query: str, *, user: str = "", session: str = "", mode: str = "chat") -> TurnKey:
        """Open a turn; an empty user is PANDORA_USER, an empty session the day's.

        Raises InputError, ConfigurationError where a server does not have the model that the runtime file names.
        """
        if mode not in ("chat", "code"):
            raise InputError(f"mode {mode!r}: expected chat or code")
        self.check_models()
        who = user_id(user) if user else self.settings.user
        where = session_id(session or self.new_session())
        return turn_flow.start_turn(self.dependencies, query, user=who, session=where, mode=mode)

    def check_models(self) -> None:
        """Hold the model names of the runtime file against the servers, once a process; raises ConfigurationError.

        A server that can not be reached is for the call to find: it may be up by then, and is asked for its model before.
        """
        if not isinstance(self.runtime, SglangRuntime) or self.runtime.name in self.checked_runtimes:
            return
        for status in self.run(self.runtime.check()):
            if status.reachable and not status.right_model:
                raise ConfigurationError(f"{self.settings.runtime_file}: {status.layer.value}: {status.message}", hint=status.remedy)
        self.checked_runtimes.add(self.runtime.name)

    def with_listener(self, listener: AnswerListener) -> "App":
        """The same house, whose turns tell `listener` their answers while they are written."""
        return replace(self, dependencies=replace(self.dependencies, listener=listener))

    def with_manual_answer(self, intervention: Intervention, answer: str) -> tuple["App", ManualAnswerExecutor]:
        """The same house, in which the call that halted has a person's answer, and what tells whether it was given. Raises InputError
        where the answer does not pass."""
        deps, given = with_manual_answer(self.dependencies, intervention, answer)
        check_manual_answer(intervention, answer, self.dependencies.cookbook, self.calls.files, self.vault)
        return replace(self, dependencies=deps), given

    def delete_expired(self) -> None:
        """Delete kept packs and answers whose retention is over, at most once a day, but for those that open interventions are judged by.

        Raises StoreError, DocumentError for a damaged intervention: then nothing is deleted."""
        spared = partial(pending_vault_refs, self.interventions, self.calls.files)
        self.vault.sweep_daily(self.dependencies.clock(), days=self.settings.keep_packs_days, spared=spared)

    def new_session(self) -> str:
        """The session of turns that name none: one a day, in the configured time zone."""
        return f"day-{self.dependencies.clock().astimezone(self.settings.zone):%Y-%m-%d}"

    def pending_phases(self, key: TurnKey) -> tuple[str, ...]:
        """The phases of a turn that have not finished, in order."""
        return turn_flow.unfinished_phases(key, self.dependencies)

    def run_turn(self, key: TurnKey, *, on_report: Callable[[PhaseReport], None]) -> PhaseReport:
        """Run what is left of a turn without Dagster (chat)."""
        return self.run(turn_flow.run_turn(key, self.dependencies, on_report=on_report))

    def answer_of(self, key: TurnKey) -> TurnAnswer:
        return read_answer(self.dependencies, key)

    def import_conversations(
        self, lines: Iterable[bytes], *, where: str, progress: Callable[[ImportReport], None] = lambda report: None
    ) -> ImportReport:
        """Import conversations, one a line; faults are named in the report. Older ones than any before extend the store's first day."""
        report = import_conversations(lines, self.recording, where=where, progress=progress)
        if report.oldest:
            FirstDay(self.settings.root).extend(local_day(report.oldest.isoformat(), self.settings.zone), known=self.settings.first_day)
        return report

    def import_example(self) -> ImportReport:
        """The shipped example history."""
        path = shipped_folder() / "data" / "example" / "conversations.jsonl"
        with path.open("rb") as lines:
            return self.import_conversations(lines, where=path.name)

    def export_conversations(
        self, user: UserId | None, *, on_fault: Callable[[DocumentError], None] = raise_fault
    ) -> Iterator[dict[str, Any]]:
        """Conversations as they leave: imported ones as they came. `on_fault` is told of those that can not be read."""
        return export_conversations(self.turns, self.sessions, user, on_fault=on_fault)

    def rebuild_index(self, *, progress: Callable[[int], None] = lambda turns: None) -> RebuildReport:
        """Make the indexes again: of turns, calls, sources and lineage, from their documents and records; vectors where on.

        Raises StoreError."""
        report = rebuild_turns(self.turns, self.turn_index, Preambles(self.sessions), progress=progress)
        broken: list[str] = []
        count, aside = rebuild_calls(self.calls.files, self.calls.index, report=broken.append)
        sources, sources_aside = rebuild_sources(self.sources, self.research_index, report=broken.append)
        vectors = self.vectors.rebuild(document_rows(self.turns, Preambles(self.sessions))) if self.vectors else 0
        links, lineage_aside = self.lineage.rebuild(report=lambda fault: None)  # a turn that can not be read is told above
        made = replace(report, vectors=vectors, calls=count, calls_aside=aside, sources=sources, sources_aside=sources_aside)
        return replace(made, links=links, lineage_aside=lineage_aside, broken_lines=tuple(broken))

    def verify_index(self) -> tuple[str, ...]:
        """What the indexes do not say as documents and records do; vectors too where they are on. Raises StoreError."""
        calls = verify_calls(self.calls.files, self.calls.index, self.turns.manifest)
        turns = verify_turns(self.turns, self.turn_index, Preambles(self.sessions))
        vectors = self.vectors.verify(document_rows(self.turns, Preambles(self.sessions))) if self.vectors else ()
        return turns + calls + verify_sources(self.sources, self.research_index) + vectors + self.lineage.verify()

    def search(self, query: str, *, user: str = "", budget_tokens: int, **filters: str) -> SearchResults:
        """What the user's messages say about `query`, within `budget_tokens`; an empty filter is none. With vectors on, a message may
        bear on it without a word of it. Raises InputError."""
        who = user_id(user) if user else self.settings.user
        found = self.turn_index.messages(who, query, limit=most_messages(budget_tokens), filters=search_filters(filters))
        if self.vectors:
            return search_results(query, found, budget=budget_tokens, count=self.dependencies.counter.count)
        kept = relevant_messages(query, found, self.turn_index.reader, self.turn_index.today)
        near = neighbouring_messages(found, kept, self.turn_index.reader)
        return search_results(query, kept, budget=budget_tokens, count=self.dependencies.counter.count, beside=near)

    def unmatched_filters(self, user: str, filters: Mapping[str, str]) -> tuple[str, ...]:
        """One sentence for each filter's value that no turn of the user has; an empty filter is none. Raises InputError."""
        who = user_id(user) if user else self.settings.user
        unknown = self.turn_index.unmatched_filters(who, search_filters(filters))
        return tuple(f"{name} {value[:80]!r}: no turn of {who} has it: expected one that is there" for name, value in unknown.items())

    async def check_health(self) -> tuple[Finding, ...]:
        """What `pandora doctor` says."""
        indexes = {"turns": self.turn_index.file, "calls": self.calls.index.file, "research and visits": self.research_index.file}
        indexes["lineage"] = self.lineage.index.file
        indexes |= {"vectors": self.vectors.file} if self.vectors else {}
        everybody = dict.fromkeys((self.settings.user, *user_ids(Layout(self.settings.root))))
        people = check_users(everybody, self.dependencies.notes, self.dependencies.memory)
        versions = self.versions.faults()
        return await check_health(self.settings, self.runtime, self.cookbook, self.calls.index, indexes, self.vectors, people, versions)

    def folder(self, key: TurnKey) -> Path:
        return Path(self.turns.path(key))

    def close(self) -> None:
        """Close what holds connections."""
        self.loop.run(self.runtime.aclose())
        self.loop.close()
        self.metrics.flush()
