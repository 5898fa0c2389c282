"""`pandora serve` over one store: the servers to start, their memory plan, and the supervisor that runs them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.errors import ConfigurationError
from pandora_dagster.runtime.serving.launch_command import Service, full_command, services
from pandora_dagster.runtime.serving.machine_inventory import gpus, model_size
from pandora_dagster.runtime.serving.memory_plan import Gpu, MemoryPlan, memory_plan, static_memory_fraction
from pandora_dagster.runtime.serving.server_supervisor import ServingSupervisor
from pandora_dagster.runtime.serving.serving_folder import ServerStatus, ServingFolder
from pandora_dagster.runtime.sglang.endpoints import Endpoints
from pandora_dagster.runtime.sglang.runtime_file import load_endpoints

_LAUNCH_HINT = "Give a server a launch block; docs/reference/runtime-file.md shows the form."


@dataclass(frozen=True, slots=True)
class ModelServers:
    """The servers of the chosen preset on this machine."""

    endpoints: Endpoints
    services: tuple[Service, ...]
    gpus: tuple[Gpu, ...]
    plan: MemoryPlan
    folder: ServingFolder
    environ: Mapping[str, str]

    def command(self, service: Service) -> tuple[str, ...]:
        """The full command, by the memory that was free on the service's GPU when the plan was made."""
        return _command(service, self.gpus)

    def run(self, on_change: Callable[[Mapping[str, ServerStatus]], None]) -> None:
        """Serve until SIGINT or SIGTERM. Raises StoreError, ConfigurationError."""
        ServingSupervisor(
            self.services,
            self.folder,
            command=lambda service: _command(service, gpus() if self.gpus else ()),
            environ=self.environ,
            gpus=[gpu.index for gpu in self.gpus],
            on_change=on_change,
        ).run()


def open_model_servers(runtime_file: Path, root: Path, *, python: str, environ: Mapping[str, str]) -> ModelServers:
    """The servers of the chosen preset and their plan; `python` runs SGLang, `root` is the store.

    Raises ConfigurationError for a preset without servers to start.
    """
    endpoints = load_endpoints(runtime_file)
    preset_services = services(endpoints, python=python, first_gpu=_first_visible(environ.get("CUDA_VISIBLE_DEVICES", "")))
    if not preset_services:
        fault = f"{runtime_file}: preset {endpoints.preset}: no server has a launch block: expected one that is started here"
        raise ConfigurationError(fault, hint=_LAUNCH_HINT)
    machine_gpus = gpus()
    sizes = {service.name: model_size(service, home=Path.home(), variables=environ) for service in preset_services}
    return ModelServers(
        endpoints, preset_services, machine_gpus, memory_plan(preset_services, sizes, machine_gpus), ServingFolder(root), environ
    )


def _first_visible(devices: str) -> int:
    """The first GPU of CUDA_VISIBLE_DEVICES; 0 where the variable is empty or has names instead of numbers."""
    first = devices.partition(",")[0].strip()
    return int(first) if first.isdigit() else 0


def _command(service: Service, machine_gpus: tuple[Gpu, ...]) -> tuple[str, ...]:
    """The full command, whose memory fraction follows from the GPU of the service with the least free memory."""
    service_gpus = [gpu for gpu in machine_gpus if gpu.index in service.gpus]
    least_free = min(service_gpus, key=lambda gpu: gpu.free, default=None)
    return full_command(service, static_memory_fraction(service.launch.memory_fraction, least_free))
