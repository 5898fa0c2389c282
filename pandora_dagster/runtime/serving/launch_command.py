"""A server of `runtime.yaml` -> the command that starts it. Pure: knows SGLang's arguments; starts nothing.

Measured on SGLang 0.5.23: without --constrained-json-disable-any-whitespace a weak model fills its answer with white space, without
--enable-cache-report `usage` reports no cached tokens, and a thinking budget holds under --enable-strict-thinking alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pandora_dagster.documents.redaction.credentials import names_secret
from pandora_dagster.runtime.sglang.endpoints import Endpoints, Launch, Server

_QUIET = ("--uvicorn-access-log-exclude-prefixes", "/health", "/metrics")
"""Who keeps it up asks for these every few seconds; its log is for other things."""
_ALWAYS = ("--enable-cache-report", "--enable-metrics", "--constrained-json-disable-any-whitespace")
_NOT_FOR_A_SERVER = ("PYTHON", "PANDORA_", "DAGSTER_", "VIRTUAL_ENV")
"""What is meant for this process's own interpreter and settings."""
_FOR_MODELS = frozenset({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
"""The one credential that a server has a use for: a model that Hugging Face gives only to known users is loaded with it."""


@dataclass(frozen=True, slots=True)
class Service:
    """One server that is started here. `command` lacks the memory fraction, which is added when it starts."""

    name: str
    server: Server
    launch: Launch
    layers: tuple[str, ...]
    gpus: tuple[int, ...]
    command: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """What it finds in its environment besides this process's."""


def services(
    endpoints: Endpoints, *, python: str, first_gpu: int = 0, program: tuple[str, ...] = ("-m", "sglang.launch_server")
) -> tuple[Service, ...]:
    """The servers of the chosen preset that have a `launch` block, in the file's order.

    `python`: the default interpreter, and what it runs; `first_gpu`: the GPU of a server that names none.
    """
    return tuple(
        _service(name, server, server.launch, endpoints, (python, *program), first_gpu)
        for name, server in endpoints.servers.items()
        if server.launch is not None
    )


def _service(name: str, server: Server, launch: Launch, endpoints: Endpoints, program: tuple[str, ...], first_gpu: int) -> Service:
    uses = endpoints.layers_of(name)
    embeds = not uses and endpoints.embeddings is not None and endpoints.embeddings.server == server
    purpose = ("--is-embedding",) if embeds else (*_ALWAYS, *_thinking(launch, any(use.thinking for use in uses)))
    command = (
        *_program(launch, program),
        f"--model-path={_expand_home(launch.model_path or server.model)}",
        f"--served-model-name={server.model}",
        f"--host={server.host}",
        f"--port={server.port}",
        f"--context-length={server.context_length}",
        *_QUIET,
        *purpose,
        *((f"--tp-size={len(launch.gpus)}",) if len(launch.gpus) > 1 else ()),
        *launch.options,
    )
    layers = tuple(use.layer.value for use in uses) or (("embeddings",) if embeds else ())
    return Service(name, server, launch, layers, launch.gpus or (first_gpu,), command, _variables(launch))


def _program(launch: Launch, program: tuple[str, ...]) -> tuple[str, ...]:
    if launch.command is not None:
        return tuple(_expand_home(word) for word in launch.command)
    return (_expand_home(launch.python or program[0]), *program[1:])


def _thinking(launch: Launch, may_think: bool) -> tuple[str, ...]:
    """The options that separate thoughts from the answer and bound them; without a named parser SGLang finds the model's."""
    if not may_think:
        return ()
    has_parser = any(word.partition("=")[0] == "--reasoning-parser" for word in launch.options)
    return ("--enable-strict-thinking", *(() if has_parser else ("--reasoning-parser=auto",)))


def _variables(launch: Launch) -> dict[str, str]:
    if not launch.gpus:
        return {}
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, launch.gpus))}


def _expand_home(word: str) -> str:
    """`~/models/x` as the shell would read it."""
    return str(Path(word).expanduser()) if word.startswith("~/") else word


def full_command(service: Service, fraction: float | None) -> tuple[str, ...]:
    """The whole command; SGLang's fraction is one of the memory that is free when it starts."""
    return service.command if fraction is None else (*service.command, f"--mem-fraction-static={fraction:.3f}")


def environment(service: Service, own: Mapping[str, str]) -> dict[str, str]:
    """What the server finds in its environment: no credential of another service, nothing of this interpreter's."""
    kept = {name: value for name, value in own.items() if name in _FOR_MODELS or not _is_withheld(name)}
    program = Path(service.command[0])
    beside = [str(program.parent)] if program.is_absolute() else []
    return {**kept, "PATH": ":".join([*beside, kept.get("PATH", "")]).strip(":"), **service.variables}


def _is_withheld(variable: str) -> bool:
    return variable.startswith(_NOT_FOR_A_SERVER) or names_secret(variable)
