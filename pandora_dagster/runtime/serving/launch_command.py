"""The command and the environment that start a server of `runtime.yaml` with SGLang; nothing is started here.

Measured on SGLang 0.5.23: without --constrained-json-disable-any-whitespace a weak model fills its answer with white space, without
--enable-cache-report `usage` reports no cached tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pandora_dagster.documents.redaction.credentials import names_secret
from pandora_dagster.runtime.sglang.endpoints import Endpoints, Launch, Server

_ACCESS_LOG_OPTIONS = ("--uvicorn-access-log-exclude-prefixes", "/health", "/metrics")
"""Keep the requests out of the log that the supervisor makes every few seconds."""
_GENERATION_OPTIONS = ("--enable-cache-report", "--enable-metrics", "--constrained-json-disable-any-whitespace")
_WITHHELD_PREFIXES = ("PYTHON", "PANDORA_", "DAGSTER_", "VIRTUAL_ENV")
"""Prefixes of variables that concern this process's own interpreter and settings."""
_PASSED_CREDENTIALS = frozenset({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
"""The credential with which a server loads a model that Hugging Face gives only to registered users."""


@dataclass(frozen=True, slots=True)
class Service:
    """One server that is started on this machine. `command` lacks the memory fraction, which is added when it starts."""

    name: str
    server: Server
    launch: Launch
    layers: tuple[str, ...]
    gpus: tuple[int, ...]
    command: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that are added to the environment of this process."""


def services(
    endpoints: Endpoints, *, python: str, first_gpu: int = 0, program: tuple[str, ...] = ("-m", "sglang.launch_server")
) -> tuple[Service, ...]:
    """The servers of the chosen preset that have a `launch` block, in the file's order.

    `python` and `program`: the default interpreter and what it runs; `first_gpu`: the GPU of a server that names none.
    """
    return tuple(
        _service(name, server, server.launch, endpoints, (python, *program), first_gpu)
        for name, server in endpoints.servers.items()
        if server.launch is not None
    )


def _service(name: str, server: Server, launch: Launch, endpoints: Endpoints, program: tuple[str, ...], first_gpu: int) -> Service:
    layer_endpoints = endpoints.layers_of(name)
    is_embedding = not layer_endpoints and endpoints.embeddings is not None and endpoints.embeddings.server == server
    purpose_options = ("--is-embedding",) if is_embedding else _GENERATION_OPTIONS
    command = (
        *_program_words(launch, program),
        f"--model-path={_expand_home(launch.model_path or server.model)}",
        f"--served-model-name={server.model}",
        f"--host={server.host}",
        f"--port={server.port}",
        f"--context-length={server.context_length}",
        *_ACCESS_LOG_OPTIONS,
        *purpose_options,
        *((f"--tp-size={len(launch.gpus)}",) if len(launch.gpus) > 1 else ()),
        *launch.options,
    )
    layers = tuple(endpoint.layer.value for endpoint in layer_endpoints) or (("embeddings",) if is_embedding else ())
    return Service(name, server, launch, layers, launch.gpus or (first_gpu,), command, _gpu_variables(launch))


def _program_words(launch: Launch, program: tuple[str, ...]) -> tuple[str, ...]:
    if launch.command is not None:
        return tuple(_expand_home(word) for word in launch.command)
    return (_expand_home(launch.python or program[0]), *program[1:])


def _gpu_variables(launch: Launch) -> dict[str, str]:
    """The variables that limit the server to its GPUs."""
    if not launch.gpus:
        return {}
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, launch.gpus))}


def _expand_home(word: str) -> str:
    """The word with `~/` expanded to the home folder: `~/models/x` -> `/home/ann/models/x`."""
    return str(Path(word).expanduser()) if word.startswith("~/") else word


def full_command(service: Service, fraction: float | None) -> tuple[str, ...]:
    """The whole command; `fraction`: of the memory that is free when the server starts, None for SGLang's own choice."""
    return service.command if fraction is None else (*service.command, f"--mem-fraction-static={fraction:.3f}")


def server_environment(service: Service, process_environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of the server: without credentials of other services and variables of this interpreter."""
    passed = {name: value for name, value in process_environment.items() if name in _PASSED_CREDENTIALS or not _is_withheld(name)}
    program = Path(service.command[0])
    program_folder = [str(program.parent)] if program.is_absolute() else []
    return {**passed, "PATH": ":".join([*program_folder, passed.get("PATH", "")]).strip(":"), **service.variables}


def _is_withheld(variable: str) -> bool:
    return variable.startswith(_WITHHELD_PREFIXES) or names_secret(variable)
