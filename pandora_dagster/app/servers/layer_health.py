"""Health of the model servers that a runtime calls: their layers, contexts, capabilities and token ratios. Changes nothing."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pandora_dagster.app.health import Finding
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ports.model_runtime import TokenRatios
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.ports.record_storage import CallCounts
from pandora_dagster.contracts.recipe_schema import TokenBudget
from pandora_dagster.errors import ConfigurationError, PandoraError
from pandora_dagster.execution.fit.call_budget import FIRST_RATIO, can_be_served
from pandora_dagster.runtime.serving.server_supervisor import ServerState
from pandora_dagster.runtime.serving.serving_folder import ServerStatus, ServingFolder
from pandora_dagster.runtime.sglang.capability_probes import ServerProbes
from pandora_dagster.runtime.sglang.endpoints import Endpoint
from pandora_dagster.runtime.sglang.server_status import LayerStatus
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime

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


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """The model servers of the runtimes `sglang` and `openai`, and what is known of their tokens."""

    runtime: SglangRuntime
    runtime_file: Path
    ratios: TokenRatios
    folder: ServingFolder
    _verified: set[str] = field(default_factory=set[str])
    """Runtimes whose model names were verified by this process."""

    @property
    def models_verified(self) -> bool:
        """Whether this process has verified the model names."""
        return self.runtime.name in self._verified

    async def verify_models(self) -> None:
        """Compare the model names of the runtime file with the servers; raises ConfigurationError.

        An unreachable server passes: it may run by the time of the call, which verifies its model again.
        """
        for status in await self.runtime.check():
            if status.reachable and not status.right_model:
                raise ConfigurationError(f"{self.runtime_file}: {status.layer.value}: {status.message}", hint=status.remedy)
        self._verified.add(self.runtime.name)

    async def check(self, recipes: RecipeCatalog, calls: CallCounts) -> tuple[Finding, ...]:
        """Findings of each layer, then of each server that answers."""
        return await check_servers(self.runtime, recipes, self.ratios, calls, self.folder)
