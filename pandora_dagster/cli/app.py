"""The `pandora` program: its commands, its two common options, its exit codes."""

import sys
from typing import Annotated

import typer

from pandora_dagster.cli import (
    archive,
    batch,
    calls,
    cold,
    compression,
    digest,
    documents,
    forget,
    governance,
    interventions,
    lineage,
    memory,
    recipe_lessons,
    recipe_scores,
    recipe_tests,
    recipe_versions,
    search,
    service,
    serving,
    sources,
    transfer,
    turns,
)
from pandora_dagster.cli.opened import Overrides
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, note
from pandora_dagster.errors import HaltError, PandoraError

_HELP = """Conversation turns as documents, model calls as recipes, on Dagster.

Exit codes: 0 done; 1 the work halted or a check failed; 2 the command line, a file or the configuration is wrong.

Example: pandora demo
"""

app = typer.Typer(
    name="pandora",
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)
turns.register(app)
batch.register(app)
search.register(app)
transfer.register(app)
documents.register(app)
governance.register(app)
recipe_versions.register(governance.recipes)
recipe_tests.register(governance.recipes)
recipe_scores.register(governance.recipes)
recipe_lessons.register(app, governance.recipes)
interventions.register(app)
service.register(app)
serving.register(app)
calls.register(app)
compression.register(app)
sources.register(app)
memory.register(app)
archive.register(app)
cold.register(app)
forget.register(app)
lineage.register(app)
digest.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"pandora {version('pandora-dagster')}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    root: Annotated[str, typer.Option("--root", help="Store root; default PANDORA_ROOT or data/panda-system-docs.")] = "",
    runtime: Annotated[str, typer.Option("--runtime", help="extractive, sglang or sglang-offline; default PANDORA_RUNTIME.")] = "",
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    context.obj = Overrides(root, runtime)


def run() -> None:
    """Run the program; every expected failure becomes one sentence on stderr and its exit code."""
    try:
        app(prog_name="pandora")
    except PandoraError as error:
        note(f"pandora: {error}")
        if error.hint:
            note(f"  {error.hint}")
        sys.exit(EXIT_HALTED if isinstance(error, HaltError) else EXIT_WRONG)
    except OSError as error:
        note(f"pandora: {error.filename or 'the disk'}: {error.strerror or error}")
        sys.exit(EXIT_WRONG)
