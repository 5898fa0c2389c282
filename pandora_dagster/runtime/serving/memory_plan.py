"""Whether the chosen models fit the GPUs: shares of their memory, what weights leave of them. Pure; measures nothing.

SGLang 0.5.23 takes `--mem-fraction-static` of the memory that is free when it starts, not of the GPU's: of two servers that are
started with 0.4 one takes 0.4 and the other 0.24. `memory_fraction` in `runtime.yaml` is a share of the whole GPU;
`static_memory_fraction` converts it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.runtime.serving.launch_command import Service

GB = 10**9
_ESTIMATE_SHARE = 0.8
"""Of a GPU that a server has to itself, when it chooses its share; SGLang's own choice lies between 0.75 and 0.9."""


_RESERVED_BYTES = 3 * GB // 2
"""Bytes that a server takes besides its share: CUDA's context, its graphs, activations."""


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
    """Where it was read."""


@dataclass(frozen=True, slots=True)
class ServerMemory:
    """One server's memory; bytes and tokens over all its GPUs, None where they are unknown."""

    service: Service
    share: float | None
    weights: int | None
    room: int | None
    """Tokens that its KV cache holds."""
    says: str


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What each server would take. `faults`: why the plan does not fit, each with a remedy."""

    rows: tuple[ServerMemory, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]


def memory_plan(services: Sequence[Service], sizes: Mapping[str, ModelSize], gpus: Sequence[Gpu]) -> MemoryPlan:
    """The plan of all servers at once, cold ones among them: they are started beside the others."""
    by_index = {gpu.index: gpu for gpu in gpus}
    rows = tuple(_server_memory(service, sizes.get(service.name, ModelSize()), by_index) for service in services)
    if not gpus:
        return MemoryPlan(rows, (), ("no GPU found by nvidia-smi: whether the models fit was not checked",))
    faults = [*_missing_gpu_faults(services, by_index), *_shares(services, by_index), *(fault for row in rows for fault in _too_large(row))]
    return MemoryPlan(rows, tuple(faults), (*_unknown_size_notes(rows), *_tight_memory_faults(services, gpus)))


def static_memory_fraction(share: float | None, gpu: Gpu | None) -> float | None:
    """`--mem-fraction-static` for a share of the whole GPU, from what is free on it now; at most 0.98."""
    if share is None or gpu is None:
        return share
    return min(0.98, share * gpu.total / max(1, gpu.free))


def _server_memory(service: Service, size: ModelSize, gpus: Mapping[int, Gpu]) -> ServerMemory:
    fraction = service.launch.memory_fraction
    weights = size.weights if size.weights is not None else _stated_weights(service)
    source = size.source if size.weights is not None else ("weights_gb" if weights is not None else "weights unknown")
    there = [gpus[index] for index in service.gpus if index in gpus]
    if len(there) < len(service.gpus):
        return ServerMemory(service, fraction, weights, None, source)
    share = _ESTIMATE_SHARE if fraction is None else fraction
    left = sum(int(gpu.total * share) for gpu in there) - (weights or 0)
    room = None
    if weights is not None and (left <= 0 or size.token is not None):
        room = max(0, left // (size.token or 1))
    return ServerMemory(service, fraction, weights, room, source)


def _stated_weights(service: Service) -> int | None:
    size_gb = service.launch.weights_gb
    return None if size_gb is None else int(size_gb * GB)


def _missing_gpu_faults(services: Sequence[Service], gpus: Mapping[int, Gpu]) -> Iterator[str]:
    for service in services:
        for index in service.gpus:
            if index not in gpus:
                yield f"{service.name}: gpus: {index}: this machine has {', '.join(map(str, gpus))}: name one of them"


def _shares(services: Sequence[Service], gpus: Mapping[int, Gpu]) -> Iterator[str]:
    """Servers that share a GPU, and what others than they hold of it."""
    for gpu in gpus.values():
        here = [service for service in services if gpu.index in service.gpus]
        unsaid = [service.name for service in here if service.launch.memory_fraction is None]
        if len(here) > 1 and unsaid:
            yield (
                f"GPU {gpu.index}: {', '.join(s.name for s in here)} share it, and {', '.join(unsaid)} would take what is free: "
                "give each a memory_fraction in its launch block"
            )
            continue
        shares = sum(service.launch.memory_fraction or 0 for service in here)
        if shares > 1 + 1e-9:
            parts = " + ".join(f"{s.name} {s.launch.memory_fraction:g}" for s in here)
            yield f"GPU {gpu.index}: {parts} = {shares:.2f} of its memory: lower memory_fraction to 1 together, or use another GPU"
        elif shares * gpu.total > gpu.free:
            yield (
                f"GPU {gpu.index}: {gpu.free / GB:.1f} of {gpu.total / GB:.1f} GB are free, {shares * gpu.total / GB:.1f} are asked for: "
                "end what else runs there, or lower memory_fraction"
            )


def _too_large(row: ServerMemory) -> Iterator[str]:
    """Weights that do not leave room for one request of the promised length."""
    name, context = row.service.name, row.service.server.context_length
    if row.room is None or row.weights is None:
        return
    if row.room == 0:
        yield f"{name}: {row.weights / GB:.1f} GB of weights are over its share: raise memory_fraction, take a smaller model, or more GPUs"
    elif row.room < context:
        yield f"{name}: its KV cache holds {row.room:,} tokens, a request {context:,}: lower context_length or raise memory_fraction"


def _tight_memory_faults(services: Sequence[Service], gpus: Sequence[Gpu]) -> Iterator[str]:
    """What the shares leave for what no share holds."""
    for gpu in gpus:
        here = [service for service in services if gpu.index in service.gpus and service.launch.memory_fraction is not None]
        left = gpu.total * (1 - sum(service.launch.memory_fraction or 0 for service in here))
        if here and 0 <= left < _RESERVED_BYTES * len(here):
            yield (
                f"GPU {gpu.index}: the shares leave {left / GB:.1f} GB for CUDA and the work of {len(here)} servers, "
                f"which take about {_RESERVED_BYTES / GB:g} GB each: lower memory_fraction if one runs out of memory"
            )


def _unknown_size_notes(rows: Sequence[ServerMemory]) -> Iterator[str]:
    for row in rows:
        if row.weights is None:
            yield f"{row.service.name}: its weights are not on this machine yet: weights_gb in its launch block says how large they are"
        elif row.room is None:
            yield f"{row.service.name}: its config.json does not state the size of a token: the room of its KV cache was not checked"
