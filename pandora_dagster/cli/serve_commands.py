"""Commands that run until Ctrl-C: the model servers, the chat API, Dagster, the archive pages."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from shlex import join
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import app_of, settings_of
from pandora_dagster.cli.output import EXIT_USAGE, exit_with, live_table, print_json, print_json_line, print_line, print_note, print_rows

if TYPE_CHECKING:
    from pandora_dagster.runtime.serving.memory_plan import ServerMemory
    from pandora_dagster.runtime.serving.model_servers import ModelServers
    from pandora_dagster.runtime.serving.serving_folder import ServerStatus

_BYTES_PER_GB = 10**9


def serve(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show memory and commands; start nothing.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the plan as one JSON document, then one JSON line for each change.")
    ] = False,
) -> None:
    """Start and supervise model servers until Ctrl-C.

    It starts the servers of the runtime file that have a launch block (docs/guides/connect-sglang.md); cold servers start with the first
    call. If the servers do not fit the memory of the GPUs, nothing starts, and the exit code is 2.

    Example: pandora serve --dry-run
    """
    from pandora_dagster.runtime.serving.model_servers import open_model_servers
    from pandora_dagster.settings import process_environment

    settings = settings_of(context)
    serving = open_model_servers(settings.runtime_file, settings.root, python=settings.sglang_python, environ=process_environment())
    _print_plan(serving, as_json=as_json, commands=dry_run)
    if serving.plan.faults:
        exit_with(EXIT_USAGE, "\n".join(serving.plan.faults))
    if settings.runtime != "sglang":
        print_note("  calls still go to the embedded runtime: PANDORA_RUNTIME=sglang sends them to these servers")
    if not dry_run:
        _run_servers(serving, as_json=as_json)


def _print_plan(serving: "ModelServers", *, as_json: bool, commands: bool) -> None:
    if as_json:
        print_json(_plan_document(serving))
        return
    for gpu in serving.gpus:
        print_line(f"GPU {gpu.index}: {gpu.name}, {gpu.free / _BYTES_PER_GB:.1f} of {gpu.total / _BYTES_PER_GB:.1f} GB free")
    print_rows(
        serving.plan.rows,
        {
            "Server": lambda r: r.service.name,
            "Model": lambda r: r.service.server.model,
            "Layers": lambda r: ", ".join(r.service.layers) or "none",
            "GPU": lambda r: ", ".join(map(str, r.service.gpus)),
            "Share": lambda r: "automatic" if r.share is None else f"{r.share:.0%}",
            "Weights": lambda r: "unknown" if r.weights is None else f"{r.weights / _BYTES_PER_GB:.1f} GB",
            "KV cache": _kv_cache,
            "Start": lambda r: f"by a call, ends after {r.service.launch.idle_s:g} s" if r.service.launch.cold else "now",
        },
    )
    for note in serving.plan.notes:
        print_note(f"  {note}")
    if commands:
        for service in serving.services:
            print_line(f"\n{service.name}\n  {join(serving.command(service))}")


def _kv_cache(row: "ServerMemory") -> str:
    return "unknown" if row.cache_tokens is None else f"{'about ' if row.share is None else ''}{row.cache_tokens:,} tokens"


def _plan_document(serving: "ModelServers") -> dict[str, object]:
    servers = [
        {
            "server": row.service.name,
            "model": row.service.server.model,
            "base_url": row.service.server.base_url,
            "layers": list(row.service.layers),
            "gpus": list(row.service.gpus),
            "memory_fraction": row.share,
            "weights_bytes": row.weights,
            "weights_from": row.weights_source,
            "kv_cache_tokens": row.cache_tokens,
            "cold": row.service.launch.cold,
            "command": list(serving.command(row.service)),
        }
        for row in serving.plan.rows
    ]
    gpus = [{"index": gpu.index, "name": gpu.name, "total_bytes": gpu.total, "free_bytes": gpu.free} for gpu in serving.gpus]
    return {"gpus": gpus, "servers": servers, "faults": list(serving.plan.faults), "notes": list(serving.plan.notes)}


def api(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on; a public one needs PANDORA_API_KEY.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any free port.", min=0, max=65535)] = 8400,
) -> None:
    """Serve an OpenAI-compatible chat API until Ctrl-C.

    Routes: /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/models, /health. The headers X-Pandora-Session and X-Pandora-User
    name session and user, or the field `user` names the user (docs/reference/http-api.md).

    Example: pandora api --port 8400
    """
    from pandora_dagster.api.guard import KEY_NAME, Guard
    from pandora_dagster.api.server import serve as serve_api
    from pandora_dagster.settings import process_environment

    guard = Guard(host, process_environment().get(KEY_NAME, "").strip())
    with app_of(context) as app:
        description = (
            f"runtime {app.dependencies.runtime}, {'with' if guard.key else 'without'} a key, store {app.settings.root}; Ctrl-C stops it"
        )
        serve_api(app, guard, port=port, on_ready=lambda address: print_note(f"pandora api on {address}: {description}"))


def ui(
    context: typer.Context,
    port: Annotated[int, typer.Option(help="Port of the web UI.", min=1, max=65535)] = 3000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Serve Dagster's web UI and its daemon until Ctrl-C.

    It shows the turns of `pandora ask`, `demo`, `chat` and `api` as runs. The daemon runs sensors and schedules: files of queries in
    <root>/inbox are processed automatically.

    Example: pandora ui --port 3001
    """
    from pandora_dagster.defs.turn.turn_run import ui_commands
    from pandora_dagster.settings import process_environment

    settings = settings_of(context)
    _require_free_port(host, port, "--port")
    if settings.pages_port:
        _require_free_port("127.0.0.1", settings.pages_port, "PANDORA_PAGES_PORT")
    (settings.root / "inbox").mkdir(parents=True, exist_ok=True)
    commands, environment = ui_commands(settings, host=host, port=port)
    print_note(
        f"Dagster on http://{host}:{port}, store {settings.root}; the graph: http://{host}:{port}/locations/pandora_dagster/asset-groups/turn"
    )
    if code := run_process_group(commands, process_environment(**environment)):
        exit_with(EXIT_USAGE, f"a process of Dagster ended with exit code {code}: expected it to run: see its messages above")


def _require_free_port(host: str, port: int, setting: str) -> None:
    """End the command where a server listens on the port already: otherwise three programs would start and fail one after the other."""
    with suppress(OSError), socket.create_connection((host, port), timeout=1.0):
        exit_with(EXIT_USAGE, f"{host}:{port}: the port is in use: expected a free port", f"choose another: {setting}")


def pages(
    context: typer.Context,
    port: Annotated[int | None, typer.Option(help="Port; 0 for any free port; default PANDORA_PAGES_PORT.", min=0, max=65535)] = None,
    dagster: Annotated[str, typer.Option(help="Address of Dagster's web UI, to whose runs the pages link.")] = "",
) -> None:
    """Serve web pages of the archive until Ctrl-C.

    The pages show the days of the archive, their documents and the lineage of each, on this machine only. `pandora ui` serves the same
    pages, and Dagster links to them.

    Example: pandora pages --port 8401
    """
    from pandora_dagster.api.guard import Guard
    from pandora_dagster.api.server import serve_pages

    with app_of(context) as app:
        chosen_port = app.settings.pages_port if port is None else port
        description = f"the archive of {app.settings.root}; Ctrl-C stops it"
        guard = Guard("127.0.0.1")
        serve_pages(
            app,
            guard,
            port=chosen_port,
            dagster=dagster.rstrip("/"),
            on_ready=lambda address: print_note(f"pandora pages on {address}: {description}"),
        )


def _run_servers(serving: "ModelServers", *, as_json: bool) -> None:
    if as_json or not sys.stderr.isatty():
        serving.run(_StatusLines(as_json=as_json).report)
        return
    print_note(f"Logs in {serving.folder.path}; Ctrl-C stops all servers.")
    with live_table("Server", "", "Detail") as show:
        serving.run(lambda statuses: show(_status_row(name, status) for name, status in statuses.items()))
    print_note("All servers are stopped.")


def _status_row(name: str, status: "ServerStatus") -> tuple[tuple[str, str], ...]:
    colour = {"ready": "green", "given up": "red", "restarts": "yellow", "silent": "yellow"}.get(status.state, "")
    return (name, ""), (status.state, colour), (status.says, "")


class _StatusLines:
    """Prints one line for each server whose state changed: for pipes and logs."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json, self._last_states = as_json, dict[str, str]()

    def report(self, statuses: "Mapping[str, ServerStatus]") -> None:
        for name, status in statuses.items():
            if self._last_states.get(name) == status.state:
                continue
            self._last_states[name] = status.state
            if self._as_json:
                print_json_line({"server": name, "state": status.state, "says": status.says})
            else:
                print_note(f"{name}: {status.state}{': ' + status.says if status.says else ''}")


_POLL_INTERVAL_S = 0.2
_TERMINATION_WAIT_S = 20.0
"""Seconds after SIGTERM until a process gets SIGKILL."""
_MIN_WAIT_S = 0.1
"""Seconds that a process still gets after the deadline."""
_END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_process_group(commands: Sequence[Sequence[str]], environment: Mapping[str, str]) -> int:
    """Run the commands until one ends or this process gets a signal to end; then end all.

    Returns 0 after a signal, else the exit code of the program that ended by itself.
    """
    signals: list[int] = []

    def on_signal(number: int, _: FrameType | None) -> None:
        signals.append(number)

    previous_handlers = {number: signal.signal(number, on_signal) for number in _END_SIGNALS}
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            # each in its own process group: Ctrl-C reaches this process only, which ends them in order
            processes.append(subprocess.Popen(command, env=environment, start_new_session=True))  # noqa: S603 - programs of this environment
        while not signals and all(process.poll() is None for process in processes):
            time.sleep(_POLL_INTERVAL_S)
        return 0 if signals else next((code for process in processes if (code := process.poll()) is not None), 0)
    finally:
        _end_processes(processes)
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _end_processes(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Send SIGTERM to all running processes, and SIGKILL to those that do not end in time."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + _TERMINATION_WAIT_S
    for process in processes:
        try:
            process.wait(max(_MIN_WAIT_S, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
