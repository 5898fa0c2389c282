"""What `pandora doctor` says of the model servers: each layer, each server, what is known of their tokens. Asks; changes nothing."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime, TokenRatios
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.ports.user_storage import MemoryStore, NoteStore
from pandora_dagster.errors import PandoraError
from pandora_dagster.execution.fit.served_tokens import FIRST_RATIO
from pandora_dagster.runtime.serving.server_supervisor import ServerState
from pandora_dagster.runtime.serving.serving_folder import ServerStatus, ServingFolder
from pandora_dagster.runtime.sglang.capability_probes import ServerProbes
from pandora_dagster.runtime.sglang.endpoints import Endpoint
from pandora_dagster.runtime.sglang.server_status import LayerStatus
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import Settings
from pandora_dagster.stores.calls.call_index import DuckCallIndex
from pandora_dagster.stores.calls.token_ratio_file import TokenRatioFile
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search.turn_vectors import TurnVectors

# What `pandora doctor` found of one part.


@dataclass(frozen=True, slots=True)
class Finding:
    """One part and how it stands; `remedy` says what to do where it does not, or where it could do better."""

    part: str
    ok: bool
    says: str
    remedy: str = ""


REFLEX_MS = 100
"""000 section 3: "Sub-100ms, always hot"."""
_EXPECTED_STATES = frozenset({ServerState.ASLEEP, ServerState.STARTING, ServerState.WAITS, ServerState.READY})


async def check_servers(
    runtime: SglangRuntime, cookbook: RecipeCatalog, ratios: TokenRatios, calls: DuckCallIndex, folder: ServingFolder
) -> tuple[Finding, ...]:
    """Each layer, then each server that answers. A server that several layers share is asked once; a cold one is not woken."""
    statuses = await runtime.check(timeout_s=3.0)
    well = [status.layer for status in statuses if status.ok]
    probed = await runtime.probe(well)
    took = {layer: server.latency_ms for server in probed for layer in server.layers}
    standings = folder.statuses()
    counted = _call_counts(calls)
    found, largest = [*_serving(standings, folder)], _largest_budgets(cookbook)
    for status in statuses:
        known = _calibration(status, ratios, counted.get((status.layer.value, status.model), 0)) if status.ok else ""
        if not status.ok:
            found.append(_unreachable_layer(status, runtime.endpoint(status.layer), standings))
        else:
            planned = runtime.context_limit(status.layer)
            found.append(_layer(status, planned, largest.get(status.layer, 0), took.get(status.layer), known))
    return (*found, *(finding for server in probed for finding in _server(server)))


def _serving(standings: Mapping[str, ServerStatus] | None, folder: ServingFolder) -> Iterator[Finding]:
    """The servers that `pandora serve` keeps, where it runs."""
    if standings is None:
        return
    lost = [name for name, standing in standings.items() if standing.state == ServerState.GIVEN_UP]
    says = ", ".join(f"{name} {standing.state}" for name, standing in standings.items())
    remedy = f"Look into {', '.join(str(folder.log(name)) for name in lost)}; then start pandora serve anew." if lost else ""
    yield Finding("serving", not lost, says, remedy)


def _layer(status: LayerStatus, planned: int | None, largest: int, latency_ms: float | None, calibration: str) -> Finding:
    """A layer whose server answers; `planned`: the context of runtime.yaml, which its calls are planned with and its server does not fall
    short of; `largest`: the largest total budget of its recipes."""
    part = f"layer {status.layer.value}"
    if planned is not None and planned < largest:
        says = f"{status.endpoint}: context {planned} is under the largest recipe budget {largest}"
        return Finding(part, False, says, f"{_more_context(status, planned)}, or expect the input of these calls to shrink.")
    slow = status.layer is ModelLayer.REFLEX and latency_ms is not None and latency_ms >= REFLEX_MS
    remedy = "" if not slow else "It works, slowly: a smaller model, a free GPU or fewer calls at once make the gates quick again."
    context = "" if status.context is None else f", context {status.context}"
    pace = "" if latency_ms is None else f", small calls {latency_ms:.0f} ms"
    against = f" against {REFLEX_MS} ms" if pace and status.layer is ModelLayer.REFLEX else ""
    return Finding(part, True, f"{status.endpoint}: {status.model}{context}{pace}{against}, {calibration}", remedy)


def _more_context(status: LayerStatus, planned: int) -> str:
    if status.context is not None and status.context > planned:
        return f"Raise context_length in runtime.yaml, up to the {status.context} that the server takes"
    return "Serve the model with a longer context, and raise context_length in runtime.yaml to it"


def _unreachable_layer(status: LayerStatus, endpoint: Endpoint, standings: Mapping[str, ServerStatus] | None) -> Finding:
    """A layer whose server does not answer as it should: what `pandora serve` has to do with it."""
    part, launch = f"layer {status.layer.value}", endpoint.server.launch
    if launch is None or status.reachable:
        return Finding(part, False, status.message, status.remedy)
    standing = (standings or {}).get(endpoint.name)
    if standing is None:
        says = f"{endpoint}: is started by the first call" if launch.cold else status.message
        return Finding(part, False, f"{says}, and no pandora serve runs", "Start pandora serve.")
    if launch.cold and standing.state in _EXPECTED_STATES:
        return Finding(part, True, f"{endpoint}: {standing.state}; the first call starts it")
    return Finding(part, False, f"{endpoint}: {standing.state}: {standing.says.partition(';')[0]}", "See serving above.")


def _calibration(status: LayerStatus, ratios: TokenRatios, calls: int) -> str:
    try:
        ratio = ratios.find(status.layer, status.model)
    except PandoraError as error:
        return f"its token ratio can not be read ({error}) and is learned anew"
    if ratio is None:
        return f"tokens not calibrated yet ({FIRST_RATIO:g} a planned one assumed)"
    return f"{ratio:.2f} tokens a planned one, {calls} calls"


def _call_counts(calls: DuckCallIndex) -> Mapping[tuple[str, str], int]:
    """Calls by layer and model; none where there is no index yet, or it can not be read (told elsewhere)."""
    if calls.file.path.exists():
        with suppress(PandoraError):
            return calls.calls_by_model()
    return {}


def _server(server: ServerProbes) -> Iterator[Finding]:
    """What it can do in one line, what it lacks in one line each."""
    part = f"server {server.name}"
    able = [probe.says for probe in server.probes if probe.ok]
    lacking = [probe for probe in server.probes if not probe.ok]
    if able:
        yield Finding(part, True, ", ".join(able))
    for probe in lacking:
        yield Finding(f"{part}: {probe.what}", False, f"{_layer_names(server.layers)}: {probe.says}", probe.remedy)


def _layer_names(layers: Iterable[ModelLayer]) -> str:
    return ", ".join(layer.value for layer in layers)


def _largest_budgets(cookbook: RecipeCatalog) -> Mapping[ModelLayer, int]:
    """The largest total budget of each layer's recipes; those that do not load are named elsewhere."""
    largest: dict[ModelLayer, int] = {}
    for name in cookbook.names():
        with suppress(PandoraError):
            loaded = cookbook.load(name)
            largest[loaded.layer] = max(loaded.recipe.token_budget.total, largest.get(loaded.layer, 0))
    return largest


# What `pandora doctor` looks at: the store, the cookbook, the runtime. Asks; changes nothing.

_NOTE_REMEDY = "mend the note (front matter in YAML, UTF-8, at most 1 MiB), or move it out of the folder: it is never offered as it is"


async def check_health(
    settings: Settings,
    runtime: ModelRuntime,
    cookbook: RecipeCatalog,
    calls: DuckCallIndex,
    indexes: Mapping[str, DuckDBFile],
    vectors: TurnVectors | None,
    people: Iterable[Finding],
    versions: Sequence[str],
) -> tuple[Finding, ...]:
    """Every finding, in the order in which a person would mend them. `indexes`: the file of each by what it is an index of;
    `people`: what was found of each person's own; `versions`: what is damaged of the kept versions of recipes."""
    found = [
        _store(settings),
        *_indexes(indexes),
        *_recipes(cookbook),
        *(Finding("recipe versions", False, v) for v in versions),
        *people,
    ]
    if isinstance(runtime, SglangRuntime):
        found += await check_servers(runtime, cookbook, TokenRatioFile(settings.root), calls, ServingFolder(settings.root))
    else:
        found.append(Finding("runtime", True, f"{runtime.name}: embedded, no model; every record says so"))
    return (*found, *([_embeddings(vectors)] if vectors else []), *_compressions(calls))


def _indexes(indexes: Mapping[str, DuckDBFile]) -> Iterator[Finding]:
    """Whether each index that is there can be opened; what it says is for `pandora index verify`."""
    there = [name for name, file in indexes.items() if file.path.exists()]
    faults = {name: fault for name in there if (fault := indexes[name].fault())}
    for name, fault in faults.items():
        yield Finding(f"index of {name}", False, str(fault), fault.hint)
    if sound := [name for name in there if name not in faults]:
        yield Finding("indexes", True, f"{', '.join(sound)}: can be read")


def check_users(users: Iterable[UserId], notes: NoteStore, memory: MemoryStore) -> Iterator[Finding]:
    """Of each person: a line for each note that no turn is offered, and how many are; whether their memory can be read."""
    for user in users:
        listing = notes.listing(user)
        for notice in listing.notices:
            yield Finding(f"notes of {user}", False, notice, _NOTE_REMEDY)
        if listing.headers:
            yield Finding(f"notes of {user}", True, f"{len(listing.headers)} can be read")
        yield from _memory(user, memory)


def _memory(user: UserId, memory: MemoryStore) -> Iterator[Finding]:
    try:
        entries = memory.entries(user)
    except PandoraError as error:
        yield Finding(f"memory of {user}", False, str(error), error.hint)
    else:
        if entries:
            yield Finding(f"memory of {user}", True, f"{len(entries)} can be read")


def _embeddings(vectors: TurnVectors) -> Finding:
    """Whether a vector can be made, by making one, and whether those that are kept are of the same model."""
    try:
        length = vectors.check()
        vectors.check_stored_model()
    except PandoraError as error:
        return Finding("embeddings", False, f"{error}; the search goes by words alone", error.hint)
    return Finding("embeddings", True, f"{vectors.name}: vectors of {length} values")


def _compressions(calls: DuckCallIndex) -> Iterator[Finding]:
    """What compression did so far (000 section 27); nothing before the first turn came to rest."""
    if not calls.file.path.exists():
        return
    try:
        done = calls.compressions()
    except PandoraError:  # told with the index of calls
        return
    took = f"{done.latency_ms / 1_000:.1f} s (longest {done.longest_latency_ms:.0f} ms)"
    saved = f"{done.tokens_saved:,} tokens saved (most at once {done.most_tokens_saved:,})"
    yield Finding(
        "compression", True, f"{done.invocations} done, {done.halted} halted; {saved}; {took}; {done.overflow_warnings} overflows"
    )


def _store(settings: Settings) -> Finding:
    there = settings.root if settings.root.exists() else next(p for p in settings.root.parents if p.exists())
    if os.access(there, os.W_OK):
        made = "" if settings.root.exists() else ": no store there yet; it begins with pandora demo, ask or import"
        return Finding("store", True, f"{settings.root}{made}")
    return Finding("store", False, f"{settings.root}: cannot be written", "set PANDORA_ROOT to a folder that you can write")


def _recipes(cookbook: RecipeCatalog) -> Iterator[Finding]:
    broken = 0
    for name in cookbook.names():
        try:
            cookbook.load(name)
        except PandoraError as error:
            broken += 1
            yield Finding(f"recipe {name}", False, str(error), "pandora recipes check names every fault")
    if not broken:
        yield Finding("recipes", True, f"{len(cookbook.names())} recipes load")
