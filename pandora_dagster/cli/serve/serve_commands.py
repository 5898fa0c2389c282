"""`pandora serve`: the model servers of the runtime file, started and kept up. `pandora api`: the pipeline as a server of its own."""

import sys
from collections.abc import Mapping
from shlex import join
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import app_of, settings_of
from pandora_dagster.cli.output import EXIT_WRONG, exit_with, print_json, print_line, print_note, print_table

if TYPE_CHECKING:
    from rich.table import Table

    from pandora_dagster.app.model_servers import ModelServers
    from pandora_dagster.runtime.serving.memory_plan import ServerMemory
    from pandora_dagster.runtime.serving.serving_folder import ServerStatus

_GB = 10**9


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)
    app.command("api")(api)
    app.command("pages")(pages)


def serve(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the memory and the commands; start nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The plan as one JSON document; then one JSON line for each change.")] = False,
) -> None:
    """Start the model servers of the runtime file and keep them up until Ctrl-C.

    Those with a launch block are started (docs/serving.md), cold ones by the first call. What does not fit the memory of the GPUs is
    said before, with what to do (exit code 2).

    Example: pandora serve --dry-run
    """
    from pandora_dagster.app.model_servers import open_model_servers

    settings = settings_of(context)
    serving = open_model_servers(settings)
    _print_plan(serving, as_json=as_json, commands=dry_run)
    if serving.plan.faults:
        exit_with(EXIT_WRONG, "\n".join(serving.plan.faults))
    if settings.runtime != "sglang":
        print_note("  calls still go to the embedded runtime: PANDORA_RUNTIME=sglang sends them to these servers")
    if not dry_run:
        _run(serving, as_json=as_json)


def _print_plan(serving: "ModelServers", *, as_json: bool, commands: bool) -> None:
    if as_json:
        print_json(_plan_document(serving))
        return
    for gpu in serving.gpus:
        print_line(f"GPU {gpu.index}: {gpu.name}, {gpu.free / _GB:.1f} of {gpu.total / _GB:.1f} GB free")
    headers = ("Server", "Model", "Layers", "GPU", "Share", "Weights", "KV cache", "Start")
    print_table(headers, [_row(row) for row in serving.plan.rows])
    for fact in serving.plan.notes:
        print_note(f"  {fact}")
    if commands:
        for service in serving.services:
            print_line(f"\n{service.name}\n  {join(serving.command(service))}")


def _row(row: "ServerMemory") -> tuple[object, ...]:
    service = row.service
    return (
        service.name,
        service.server.model,
        ", ".join(service.layers) or "none",
        ", ".join(map(str, service.gpus)),
        "its own choice" if row.share is None else f"{row.share:.0%}",
        "unknown" if row.weights is None else f"{row.weights / _GB:.1f} GB",
        "unknown" if row.room is None else f"{'about ' if row.share is None else ''}{row.room:,} tokens",
        f"by a call, ends after {service.launch.idle_s:g} s" if service.launch.cold else "now",
    )


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
            "weights_from": row.says,
            "kv_cache_tokens": row.room,
            "cold": row.service.launch.cold,
            "command": list(serving.command(row.service)),
        }
        for row in serving.plan.rows
    ]
    found = [{"index": gpu.index, "name": gpu.name, "total_bytes": gpu.total, "free_bytes": gpu.free} for gpu in serving.gpus]
    return {"gpus": found, "servers": servers, "faults": list(serving.plan.faults), "notes": list(serving.plan.notes)}


def api(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address it listens on; others than this machine's need PANDORA_API_KEY.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.", min=0, max=65535)] = 8400,
) -> None:
    """Answer chat clients over HTTP, as OpenAI's API does, until Ctrl-C.

    POST /v1/chat/completions (whole or streamed), GET /v1/models, GET /health. The headers X-Pandora-Session and X-Pandora-User say
    which conversation and whose (docs/serving.md).

    Example: pandora api --port 8400
    """
    from pandora_dagster.api.guard import KEY_NAME, Guard
    from pandora_dagster.api.server import serve as serve_api
    from pandora_dagster.settings import process_environment

    guard = Guard(host, process_environment().get(KEY_NAME, "").strip())
    with app_of(context) as app:
        about = f"runtime {app.dependencies.runtime}, {'with' if guard.key else 'without'} a key, over {app.settings.root}; Ctrl-C ends it"
        serve_api(app, guard, port=port, on_ready=lambda address: print_note(f"pandora api on {address}: {about}"))


def pages(
    context: typer.Context,
    port: Annotated[int | None, typer.Option(help="Port; 0 for any that is free; default PANDORA_PAGES_PORT.", min=0, max=65535)] = None,
) -> None:
    """Show the archive in a browser on this machine, until Ctrl-C: its days, their documents, and where each of them comes from.

    `pandora ui` serves the same pages, and Dagster leads to them.

    Example: pandora pages --port 8401
    """
    from pandora_dagster.api.guard import Guard
    from pandora_dagster.api.server import serve_pages

    with app_of(context) as app:
        wanted = app.settings.pages_port if port is None else port
        about = f"the archive of {app.settings.root}; Ctrl-C ends it"
        serve_pages(app, Guard("127.0.0.1"), port=wanted, on_ready=lambda address: print_note(f"pandora pages on {address}: {about}"))


def _run(serving: "ModelServers", *, as_json: bool) -> None:
    if as_json or not sys.stderr.isatty():
        serving.run(_StatusLines(as_json=as_json).report)
        return
    from rich.console import Console
    from rich.live import Live

    print_note(f"Logs in {serving.folder.path}; Ctrl-C ends all servers.")
    with Live(console=Console(stderr=True), refresh_per_second=4, transient=False) as live:
        serving.run(lambda standings: live.update(_status_table(standings)))
    print_note("All servers are stopped.")


def _status_table(standings: "Mapping[str, ServerStatus]") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table("Server", "", "Says", header_style="bold")
    for name, standing in standings.items():
        colour = {"ready": "green", "given up": "red", "restarts": "yellow", "silent": "yellow"}.get(standing.state, "")
        table.add_row(Text(name), Text(standing.state, style=colour), Text(standing.says))
    return table


class _StatusLines:
    """One line for each server that came to stand otherwise: for pipes and logs."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json, self._known = as_json, dict[str, str]()

    def report(self, standings: "Mapping[str, ServerStatus]") -> None:
        import json

        for name, standing in standings.items():
            if self._known.get(name) == standing.state:
                continue
            self._known[name] = standing.state
            if self._as_json:
                print_line(json.dumps({"server": name, "state": standing.state, "says": standing.says}, ensure_ascii=False))
            else:
                print_note(f"{name}: {standing.state}{': ' + standing.says if standing.says else ''}")
