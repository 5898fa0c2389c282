"""The `pandora` program: its commands, its two common options, its exit codes."""

import sys
from typing import Annotated

import typer

from pandora_dagster.cli import documents, governance, search, service, transfer, turns
from pandora_dagster.cli.opened import Overrides
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, note
from pandora_dagster.errors import HaltError, PandoraError

app = typer.Typer(
    name="pandora",
    help="Conversation turns as documents, model calls as recipes, on Dagster.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)
turns.register(app)
search.register(app)
transfer.register(app)
documents.register(app)
governance.register(app)
service.register(app)


@app.callback()
def common(
    context: typer.Context,
    root: Annotated[str, typer.Option("--root", help="Store root; default PANDORA_ROOT or data/panda-system-docs.")] = "",
    runtime: Annotated[str, typer.Option("--runtime", help="extractive or sglang; default PANDORA_RUNTIME.")] = "",
) -> None:
    context.obj = Overrides(root, runtime)


def run() -> None:
    """Run the program; every expected failure becomes one sentence on stderr and its exit code."""
    try:
        app()
    except PandoraError as error:
        note(f"pandora: {error}")
        if error.hint:
            note(f"  {error.hint}")
        sys.exit(EXIT_HALTED if isinstance(error, HaltError) else EXIT_WRONG)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
