"""What `pandora doctor` says of the model servers: each layer, each server, what is known of their tokens. Asks; changes nothing."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from pandora_dagster.contracts.ports import RecipeCatalog, TokenRatios
from pandora_dagster.contracts.words import ModelLayer
from pandora_dagster.errors import PandoraError
from pandora_dagster.execution.correction import FIRST_RATIO
from pandora_dagster.runtime.serving.folder import ServingFolder, ServerStatus
from pandora_dagster.runtime.serving.keeper import ServerState
from pandora_dagster.runtime.sglang.check import LayerStatus
from pandora_dagster.runtime.sglang.endpoints import Endpoint
from pandora_dagster.runtime.sglang.probes import ServerProbes
from pandora_dagster.runtime.sglang.runtime import SglangRuntime
from pandora_dagster.stores.call_index import DuckCallIndex
from pandora_dagster.wiring.finding import Finding

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
