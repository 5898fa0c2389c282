"""Health of a store, its recipes and its model servers, as `pandora doctor` reports it. Changes nothing."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pandora_dagster.app.index_service import TURNS, IndexService
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime, TokenRatios
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.ports.record_storage import CallCounts, RecipeVersionStore
from pandora_dagster.contracts.ports.turn_storage import VectorIndex
from pandora_dagster.contracts.ports.user_storage import MemoryStore, NoteStore
from pandora_dagster.contracts.recipe_schema import TokenBudget
from pandora_dagster.errors import ConfigurationError, PandoraError
from pandora_dagster.execution.fit.call_budget import FIRST_RATIO, can_be_served
from pandora_dagster.runtime.serving.server_supervisor import ServerState
from pandora_dagster.runtime.serving.serving_folder import ServerStatus, ServingFolder
from pandora_dagster.runtime.sglang.capability_probes import ServerProbes
from pandora_dagster.runtime.sglang.endpoints import Endpoint
from pandora_dagster.runtime.sglang.server_status import LayerStatus
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import Settings


@dataclass(frozen=True, slots=True)
class Finding:
    """The health of one part; `remedy` says what to do where the part fails, or could work better."""

    part: str
    ok: bool
    says: str
    remedy: str = ""


MAX_REFLEX_LATENCY_MS = 100
"""Specification 000, section 3: "Sub-100ms, always hot"."""
_EXPECTED_COLD_STATES = frozenset({ServerState.ASLEEP, ServerState.STARTING, ServerState.WAITS, ServerState.READY})


async def check_servers(
    runtime: SglangRuntime, recipes: RecipeCatalog, ratios: TokenRatios, calls: CallCounts, folder: ServingFolder
) -> tuple[Finding, ...]:
    """Findings of each layer, then of each server that answers. A server of several layers is asked once; a cold server is not started."""
    statuses = await runtime.check(timeout_s=3.0)
    probed = await runtime.probe([status.layer for status in statuses if status.ok])
    latencies = {layer: server.latency_ms for server in probed for layer in server.layers}
    states = folder.statuses()
    counts = _call_counts(calls)
    findings, budgets = [*_serving(states, folder)], _token_budgets(recipes)
    for status in statuses:
        calibration = _calibration(status, ratios, counts.get((status.layer.value, status.model), 0)) if status.ok else ""
        if not status.ok:
            findings.append(_unreachable_layer(status, runtime.endpoints[status.layer], states))
        else:
            planned, needs = runtime.context_limit(status.layer), budgets.get(status.layer, {})
            if not runtime.has_sglang_api and status.context is None and not runtime.endpoints[status.layer].server.states_context:
                calibration += f"; the server does not say its context: {planned} assumed"
            finding = _layer(status, latencies.get(status.layer), calibration)
            findings.append(_with_small_context(finding, status, planned, needs, shrinks=not runtime.has_sglang_api))
    return (*findings, *(finding for server in probed for finding in _server(server)))


def _serving(states: Mapping[str, ServerStatus] | None, folder: ServingFolder) -> Iterator[Finding]:
    """The servers that `pandora serve` supervises, where it runs."""
    if states is None:
        return
    failed_servers = [name for name, status in states.items() if status.state == ServerState.GIVEN_UP]
    says = ", ".join(f"{name} {status.state}" for name, status in states.items())
    remedy = f"See {', '.join(str(folder.log(name)) for name in failed_servers)}; then start pandora serve again." if failed_servers else ""
    yield Finding("serving", not failed_servers, says, remedy)


def _with_small_context(
    finding: Finding, status: LayerStatus, planned: int | None, budgets: Mapping[str, TokenBudget], *, shrinks: bool
) -> Finding:
    """`finding`, or what the context length by which calls are planned means for the layer's recipes.

    SGLang's is in the runtime file, so a small one is a fault. Elsewhere (`shrinks`) it is one only for recipes whose prompt does not fit.
    """
    largest = max((budget.total for budget in budgets.values()), default=0)
    if planned is None or planned >= largest:
        return finding
    says = f"{status.endpoint}: context {planned} is under the largest recipe budget {largest}"
    if not shrinks:
        return Finding(finding.part, False, says, f"{_more_context(status, planned)}, or expect the input of these calls to shrink.")
    if unfit := [name for name, budget in budgets.items() if not can_be_served(budget, planned)]:
        return Finding(finding.part, False, f"{says}: {', '.join(unfit)} cannot run", _LONGER_CONTEXT)
    return replace(finding, remedy=f"It works, with shorter inputs and answers: the largest recipe budget is {largest}. {_LONGER_CONTEXT}")


_LONGER_CONTEXT = (
    "Start the server with a longer context (Ollama: OLLAMA_CONTEXT_LENGTH=16384, llama.cpp: --ctx-size 16384); where it does not say its "
    "length, set PANDORA_OPENAI_CONTEXT or context_length."
)


def _layer(status: LayerStatus, latency_ms: float | None, calibration: str) -> Finding:
    """A layer whose server answers."""
    part = f"layer {status.layer.value}"
    is_slow = status.layer is ModelLayer.REFLEX and latency_ms is not None and latency_ms >= MAX_REFLEX_LATENCY_MS
    remedy = "" if not is_slow else "It works, slowly: a smaller model, a free GPU or fewer calls at once make its calls quick again."
    context = "" if status.context is None else f", context {status.context}"
    pace = "" if latency_ms is None else f", small calls {latency_ms:.0f} ms"
    limit = f" against {MAX_REFLEX_LATENCY_MS} ms" if pace and status.layer is ModelLayer.REFLEX else ""
    return Finding(part, True, f"{status.endpoint}: {status.model}{context}{pace}{limit}, {calibration}", remedy)


def _more_context(status: LayerStatus, planned: int) -> str:
    if status.context is not None and status.context > planned:
        return f"Raise context_length in runtime.yaml, up to the {status.context} that the server takes"
    return "Serve the model with a longer context, and raise context_length in runtime.yaml to it"


def _unreachable_layer(status: LayerStatus, endpoint: Endpoint, states: Mapping[str, ServerStatus] | None) -> Finding:
    """A layer whose server does not answer correctly, with the state that `pandora serve` reports."""
    part, launch = f"layer {status.layer.value}", endpoint.server.launch
    if launch is None or status.reachable:
        return Finding(part, False, status.message, status.remedy)
    server = (states or {}).get(endpoint.name)
    if server is None:
        says = f"{endpoint}: is started by the first call" if launch.cold else status.message
        return Finding(part, False, f"{says}, and no pandora serve runs", "Start pandora serve.")
    if launch.cold and server.state in _EXPECTED_COLD_STATES:
        return Finding(part, True, f"{endpoint}: {server.state}; the first call starts it")
    return Finding(part, False, f"{endpoint}: {server.state}: {server.says.partition(';')[0]}", "See serving above.")


def _calibration(status: LayerStatus, ratios: TokenRatios, calls: int) -> str:
    try:
        ratio = ratios.find(status.layer, status.model)
    except PandoraError as error:
        return f"its token ratio cannot be read ({error}) and is measured again"
    if ratio is None:
        return f"token ratio not measured yet ({FIRST_RATIO:g} counted tokens per planned token assumed)"
    return f"{ratio:.2f} counted tokens per planned token, {calls} calls"


def _call_counts(calls: CallCounts) -> Mapping[tuple[str, str], int]:
    """Calls by layer and model; none where the index does not exist, or cannot be read (a finding of its own)."""
    if calls.file.exists():
        with suppress(PandoraError):
            return calls.calls_by_model()
    return {}


def _server(server: ServerProbes) -> Iterator[Finding]:
    """One finding of all capabilities, one of each that is missing."""
    part = f"server {server.name}"
    working = [probe.says for probe in server.probes if probe.ok]
    missing = [probe for probe in server.probes if not probe.ok]
    if working:
        yield Finding(part, True, ", ".join(working))
    for probe in missing:
        says, instead = f"{_layer_names(server.layers)}: {probe.says}", probe.instead
        yield Finding(f"{part}: {probe.what}", bool(instead), says, f"Instead: {instead}." if instead else probe.remedy)


def _layer_names(layers: Iterable[ModelLayer]) -> str:
    return ", ".join(layer.value for layer in layers)


def _token_budgets(recipes: RecipeCatalog) -> Mapping[ModelLayer, Mapping[str, TokenBudget]]:
    """The budgets of each layer's recipes by name; recipes that do not load have findings of their own."""
    budgets: dict[ModelLayer, dict[str, TokenBudget]] = {}
    for name in recipes.names():
        with suppress(PandoraError):
            loaded = recipes.load(name)
            budgets.setdefault(loaded.layer, {})[name] = loaded.recipe.token_budget
    return budgets


_NOTE_REMEDY = "correct the note (front matter in YAML, UTF-8, at most 1 MiB), or move it out of the folder: until then no turn can use it"


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """The model servers of the runtimes `sglang` and `openai`, and what is known of their tokens."""

    runtime: SglangRuntime
    ratios: TokenRatios
    folder: ServingFolder
    verified: set[str] = field(default_factory=set[str])
    """Runtimes whose model names were verified by this process."""


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
    servers: ServerHealth | None
    vectors: VectorIndex | None

    async def check(self) -> tuple[Finding, ...]:
        """Every finding, in the order in which a user would act on them."""
        findings = [*_store(self.settings), *_dagster(self.settings), *_indexes(self.indexes), *_recipes(self.catalog)]
        findings += (Finding("recipe versions", False, fault) for fault in self.versions.faults())
        findings += _users(dict.fromkeys((self.settings.user, *self.users())), self.notes, self.memory)
        if self.servers:
            findings += await check_servers(self.servers.runtime, self.catalog, self.servers.ratios, self.calls, self.servers.folder)
        else:
            findings.append(Finding("runtime", True, f"{self.runtime.name}: embedded, no model; every record names it"))
        if self.vectors:
            findings.append(_embeddings(self.vectors))
        return (*findings, *_compressions(self.calls))

    @property
    def models_verified(self) -> bool:
        """Whether this process has verified the model names; true without servers."""
        return not self.servers or self.runtime.name in self.servers.verified

    async def verify_models(self) -> None:
        """Compare the model names of the runtime file with the servers, once per process; raises ConfigurationError.

        An unreachable server passes: it may run by the time of the call, which verifies its model again.
        """
        if not self.servers or self.models_verified:
            return
        for status in await self.servers.runtime.check():
            if status.reachable and not status.right_model:
                raise ConfigurationError(f"{self.settings.runtime_file}: {status.layer.value}: {status.message}", hint=status.remedy)
        self.servers.verified.add(self.runtime.name)


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
