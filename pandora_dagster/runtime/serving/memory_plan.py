"""Whether the chosen models fit the GPUs: the shares of their memory, and what the weights leave of a share for the KV cache.

SGLang 0.5.23 takes `--mem-fraction-static` of the memory that is free when it starts, not of the GPU's: of two servers that are
started with 0.4 one takes 0.4 and the other 0.24. `memory_fraction` in `runtime.yaml` is a share of the whole GPU;
`static_memory_fraction` converts it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.runtime.serving.launch_command import Service

GB = 10**9
_ESTIMATE_SHARE = 0.8
"""The assumed share of a GPU where a server chooses its own; SGLang chooses between 0.75 and 0.9."""
_RESERVED_BYTES = 3 * GB // 2
"""Memory that a server takes besides its share: the context and graphs of CUDA, activations."""
_MAX_FRACTION = 0.98
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU of this machine; bytes."""

    index: int
    name: str
    total: int
    free: int


@dataclass(frozen=True, slots=True)
class ModelSize:
    """A model's size, as far as it is known: bytes of its weights, and of the keys and values of one token."""

    weights: int | None = None
    token: int | None = None
    source: str = ""
    """The folder it was read from."""


@dataclass(frozen=True, slots=True)
class ServerMemory:
    """One server's memory; bytes and tokens over all its GPUs, None where they are unknown."""

    service: Service
    share: float | None
    weights: int | None
    cache_tokens: int | None
    """Tokens that its KV cache holds."""
    weights_source: str


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What each server would take. `faults`: why the plan does not fit, each with a remedy."""

    rows: tuple[ServerMemory, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]


def memory_plan(services: Sequence[Service], sizes: Mapping[str, ModelSize], gpus: Sequence[Gpu]) -> MemoryPlan:
    """The plan of all servers at once, cold ones included: they run beside the others."""
    by_index = {gpu.index: gpu for gpu in gpus}
    rows = tuple(_server_memory(service, sizes.get(service.name, ModelSize()), by_index) for service in services)
    if not gpus:
        return MemoryPlan(rows, (), ("no GPU found by nvidia-smi: whether the models fit was not checked",))
    faults = [
        *_missing_gpu_faults(services, by_index),
        *_share_faults(services, by_index),
        *(fault for row in rows for fault in _size_faults(row)),
    ]
    return MemoryPlan(rows, tuple(faults), (*_unknown_size_notes(rows), *_reserve_notes(services, gpus)))


def static_memory_fraction(share: float | None, gpu: Gpu | None) -> float | None:
    """`--mem-fraction-static` for a share of the whole GPU, from what is free on it now; at most 0.98."""
    if share is None or gpu is None:
        return share
    return min(_MAX_FRACTION, share * gpu.total / max(1, gpu.free))


def _server_memory(service: Service, size: ModelSize, gpus: Mapping[int, Gpu]) -> ServerMemory:
    stated_share = service.launch.memory_fraction
    weights = size.weights if size.weights is not None else _stated_weights(service)
    weights_source = size.source if size.weights is not None else ("weights_gb" if weights is not None else "weights unknown")
    own_gpus = [gpus[index] for index in service.gpus if index in gpus]
    if len(own_gpus) < len(service.gpus):
        return ServerMemory(service, stated_share, weights, None, weights_source)
    share = _ESTIMATE_SHARE if stated_share is None else stated_share
    cache_bytes = sum(int(gpu.total * share) for gpu in own_gpus) - (weights or 0)
    cache_tokens = None
    if weights is not None and (cache_bytes <= 0 or size.token is not None):
        cache_tokens = max(0, cache_bytes // (size.token or 1))
    return ServerMemory(service, stated_share, weights, cache_tokens, weights_source)


def _stated_weights(service: Service) -> int | None:
    """Bytes of the weights by the launch block."""
    size_gb = service.launch.weights_gb
    return None if size_gb is None else int(size_gb * GB)


def _missing_gpu_faults(services: Sequence[Service], gpus: Mapping[int, Gpu]) -> Iterator[str]:
    for service in services:
        for index in service.gpus:
            if index not in gpus:
                yield f"{service.name}: gpus: {index}: this machine has {', '.join(map(str, gpus))}: name one of them"


def _share_faults(services: Sequence[Service], gpus: Mapping[int, Gpu]) -> Iterator[str]:
    """Shares of a GPU that are missing, are over 1 together, or are more than is free on it."""
    for gpu in gpus.values():
        sharing = [service for service in services if gpu.index in service.gpus]
        without_share = [service.name for service in sharing if service.launch.memory_fraction is None]
        if len(sharing) > 1 and without_share:
            yield (
                f"GPU {gpu.index}: {', '.join(s.name for s in sharing)} share it, and {', '.join(without_share)} would take what is free: "
                "give each a memory_fraction in its launch block"
            )
            continue
        shares = sum(service.launch.memory_fraction or 0 for service in sharing)
        if shares > 1 + _ROUNDING:
            parts = " + ".join(f"{s.name} {s.launch.memory_fraction:g}" for s in sharing)
            yield f"GPU {gpu.index}: {parts} = {shares:.2f} of its memory: lower memory_fraction to 1 together, or use another GPU"
        elif shares * gpu.total > gpu.free:
            yield (
                f"GPU {gpu.index}: {gpu.free / GB:.1f} of {gpu.total / GB:.1f} GB are free, {shares * gpu.total / GB:.1f} are asked for: "
                "end what else runs there, or lower memory_fraction"
            )


def _size_faults(row: ServerMemory) -> Iterator[str]:
    """Weights that leave too little memory for one request of the server's context length."""
    name, context = row.service.name, row.service.server.context_length
    if row.cache_tokens is None or row.weights is None:
        return
    if row.cache_tokens == 0:
        yield f"{name}: {row.weights / GB:.1f} GB of weights are over its share: raise memory_fraction, take a smaller model, or more GPUs"
    elif row.cache_tokens < context:
        capacity = f"{row.cache_tokens:,} tokens"
        yield f"{name}: its KV cache holds {capacity}, a request {context:,}: lower context_length or raise memory_fraction"


def _reserve_notes(services: Sequence[Service], gpus: Sequence[Gpu]) -> Iterator[str]:
    """GPUs whose shares leave less than the servers take besides their shares."""
    for gpu in gpus:
        sharing = [service for service in services if gpu.index in service.gpus and service.launch.memory_fraction is not None]
        unshared_bytes = gpu.total * (1 - sum(service.launch.memory_fraction or 0 for service in sharing))
        if sharing and 0 <= unshared_bytes < _RESERVED_BYTES * len(sharing):
            yield (
                f"GPU {gpu.index}: the shares leave {unshared_bytes / GB:.1f} GB for CUDA and the work of {len(sharing)} servers, "
                f"which take about {_RESERVED_BYTES / GB:g} GB each: lower memory_fraction if one runs out of memory"
            )


def _unknown_size_notes(rows: Sequence[ServerMemory]) -> Iterator[str]:
    for row in rows:
        if row.weights is None:
            yield f"{row.service.name}: its weights are not on this machine yet: give their size as weights_gb in its launch block"
        elif row.cache_tokens is None:
            yield f"{row.service.name}: its config.json does not state the size of a token: the size of its KV cache was not checked"
