"""Health of a store, its recipes and its model servers, as `pandora doctor` reports it. Changes nothing."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from pandora_dagster.app.index_service import TURNS, IndexService
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.ports.record_storage import CallCounts, RecipeVersionStore
from pandora_dagster.contracts.ports.turn_storage import VectorIndex
from pandora_dagster.contracts.ports.user_storage import MemoryStore, NoteStore
from pandora_dagster.errors import PandoraError
from pandora_dagster.settings import Settings


@dataclass(frozen=True, slots=True)
class Finding:
    """The health of one part; `remedy` says what to do where the part fails, or could work better."""

    part: str
    ok: bool
    says: str
    remedy: str = ""


_NOTE_REMEDY = "correct the note (front matter in YAML, UTF-8, at most 1 MiB), or move it out of the folder: until then no turn can use it"


class ServerChecks(Protocol):
    """The checks of the model servers that a runtime calls."""

    @property
    def models_verified(self) -> bool:
        """Whether this process has verified the model names."""
        ...

    async def verify_models(self) -> None:
        """Compare the model names of the runtime file with the servers; raises ConfigurationError."""
        ...

    async def check(self, recipes: RecipeCatalog, calls: CallCounts) -> tuple[Finding, ...]:
        """Findings of each layer, then of each server that answers."""
        ...


@dataclass(frozen=True, slots=True)
class HealthService:
    """The health of one store and its runtime. `servers` is None for a runtime without servers, `vectors` where embeddings are off."""

    settings: Settings
    runtime: ModelRuntime
    catalog: RecipeCatalog
    versions: RecipeVersionStore
    indexes: IndexService
    calls: CallCounts
    notes: NoteStore
    memory: MemoryStore
    users: Callable[[], Iterable[UserId]]
    """The users of the store."""
    servers: ServerChecks | None
    vectors: VectorIndex | None

    async def check(self) -> tuple[Finding, ...]:
        """Every finding, in the order in which a user would act on them."""
        findings = [*_store(self.settings), *_dagster(self.settings), *_indexes(self.indexes), *_recipes(self.catalog)]
        findings += (Finding("recipe versions", False, fault) for fault in self.versions.faults())
        findings += _users(dict.fromkeys((self.settings.user, *self.users())), self.notes, self.memory)
        if self.servers:
            findings += await self.servers.check(self.catalog, self.calls)
        else:
            findings.append(Finding("runtime", True, f"{self.runtime.name}: embedded, no model; every record names it"))
        if self.vectors:
            findings.append(_embeddings(self.vectors))
        return (*findings, *_compressions(self.calls))

    @property
    def models_verified(self) -> bool:
        """Whether this process has verified the model names; true without servers."""
        return not self.servers or self.servers.models_verified

    async def verify_models(self) -> None:
        """Compare the model names of the runtime file with the servers, once per process; raises ConfigurationError."""
        if self.servers and not self.servers.models_verified:
            await self.servers.verify_models()


def _dagster(settings: Settings) -> Iterator[Finding]:
    """Blocks of the shipped `dagster.yaml` that an existing home does not have."""
    file = settings.dagster_home / "dagster.yaml"
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return
    missing_blocks = [effect for name, effect in _DAGSTER_BLOCKS.items() if name not in text]
    if missing_blocks:
        yield Finding("dagster", True, f"{file}: without {', '.join(missing_blocks)}", _DAGSTER_REMEDY)


_DAGSTER_BLOCKS = {
    "QueuedRunCoordinator": "the queue that backfills need (run_coordinator)",
    "ConsolidatedSqliteEventLogStorage": "one file of events (event_log_storage)",
}
_DAGSTER_REMEDY = (
    "It works. data/dagster.yaml of this version has both blocks. The first can be copied at any time; after the second, Dagster shows no "
    "events of earlier runs."
)


_COMPARED_TURNS = 20
"""Newest turns of each user whose rows are compared: those that simultaneous turns would have left wrong."""


def _indexes(service: IndexService) -> Iterator[Finding]:
    """Whether each existing index can be opened, and whether the newest turns agree; `pandora index verify` compares every row."""
    indexes = dict(service.files())
    existing = [name for name, file in indexes.items() if file.path.exists()]
    faults = {name: fault for name in existing if (fault := indexes[name].fault())}
    for name, fault in faults.items():
        yield Finding(f"index of {name}", False, str(fault), fault.hint)
    if sound := [name for name in existing if name not in faults]:
        yield Finding("indexes", True, f"{', '.join(sound)}: can be read")
    if TURNS in sound:
        yield _newest_turns(service)


def _newest_turns(service: IndexService) -> Finding:
    remedy = "pandora index verify compares all turns; pandora index rebuild makes the rows again"
    try:
        differences = service.compare_newest(_COMPARED_TURNS)
    except PandoraError as error:
        return Finding("index of turns", False, str(error), error.hint)
    if differences:
        return Finding("index of turns", False, f"{differences[0]}; {len(differences)} differences in all", remedy)
    return Finding("index of turns", True, f"agrees with the documents of the {_COMPARED_TURNS} newest turns of each user")


def _users(users: Iterable[UserId], notes: NoteStore, memory: MemoryStore) -> Iterator[Finding]:
    """Of each user: each unreadable note, the number of readable ones, and whether the memory can be read."""
    for user in users:
        listing = notes.listing(user)
        for notice in listing.notices:
            yield Finding(f"notes of {user}", False, notice, _NOTE_REMEDY)
        if listing.headers:
            yield Finding(f"notes of {user}", True, f"{len(listing.headers)} can be read")
        yield from _memory(user, memory)


def _memory(user: UserId, memory: MemoryStore) -> Iterator[Finding]:
    listing = memory.listing(user)
    for fault in listing.faults.values():
        yield Finding(f"memory of {user}", False, str(fault), fault.hint)
    if listing.entries:
        yield Finding(f"memory of {user}", True, f"{len(listing.entries)} can be read")


def _embeddings(vectors: VectorIndex) -> Finding:
    """Whether a vector can be made, and whether the stored vectors are of the same model."""
    try:
        length = vectors.check()
        vectors.check_stored_model()
    except PandoraError as error:
        return Finding("embeddings", False, f"{error}; search uses words only", error.hint)
    return Finding("embeddings", True, f"{vectors.name}: vectors of {length} values")


def _compressions(calls: CallCounts) -> Iterator[Finding]:
    """Sums over all compressions (specification 000, section 27); nothing before the first turn is completed."""
    if not calls.file.exists():
        return
    try:
        totals = calls.compressions()
    except PandoraError:  # the finding of the index of calls has it
        return
    time = f"{totals.latency_ms / 1_000:.1f} s (longest {totals.max_latency_ms:.0f} ms)"
    saved = f"{totals.tokens_saved:,} tokens saved (most at once {totals.max_tokens_saved:,})"
    counts = f"{totals.invocations} done, {totals.halted} halted"
    yield Finding("compression", True, f"{counts}; {saved}; {time}; {totals.overflow_warnings} overflows")


def _store(settings: Settings) -> Iterator[Finding]:
    folder = settings.root if settings.root.exists() else next(p for p in settings.root.parents if p.exists())
    if os.access(folder, os.W_OK):
        absent = "" if settings.root.exists() else ": no store there yet; pandora demo, ask and import create one"
        yield Finding("store", True, f"{settings.root}{absent}")
    else:
        yield Finding("store", False, f"{settings.root}: cannot be written", "set PANDORA_ROOT to a folder that you can write")


def _recipes(recipes: RecipeCatalog) -> Iterator[Finding]:
    broken = 0
    for name in recipes.names():
        try:
            recipes.load(name)
        except PandoraError as error:
            broken += 1
            yield Finding(f"recipe {name}", False, str(error), "pandora recipes check names every fault")
    if not broken:
        yield Finding("recipes", True, f"{len(recipes.names())} recipes load")
