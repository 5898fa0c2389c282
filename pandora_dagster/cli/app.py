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
from pandora_dagster.cli.opened import CommonOptions
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, print_note
from pandora_dagster.errors import HaltError, PandoraError

_HELP = """Conversation turns as documents, model calls as recipes, on Dagster.

Exit codes: 0 done; 1 the work halted or a check failed; 2 the command line, a file or the configuration is wrong.

Example: pandora demo
"""

command_line = typer.Typer(
    name="pandora",
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)
turns.register(command_line)
batch.register(command_line)
search.register(command_line)
transfer.register(command_line)
documents.register(command_line)
governance.register(command_line)
recipe_versions.register_versions(governance.recipes)
recipe_tests.register(governance.recipes)
recipe_scores.register_scores(governance.recipes)
recipe_lessons.register_lessons(command_line, governance.recipes)
interventions.register(command_line)
service.register(command_line)
serving.register(command_line)
calls.register(command_line)
compression.register(command_line)
sources.register(command_line)
memory.register(command_line)
archive.register(command_line)
cold.register(command_line)
forget.register(command_line)
lineage.register(command_line)
digest.register(command_line)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"pandora {version('pandora-dagster')}")
        raise typer.Exit


@command_line.callback()
def common(
    context: typer.Context,
    root: Annotated[str, typer.Option("--root", help="Store root; default PANDORA_ROOT or data/panda-system-docs.")] = "",
    runtime: Annotated[str, typer.Option("--runtime", help="extractive, sglang or sglang-offline; default PANDORA_RUNTIME.")] = "",
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    context.obj = CommonOptions(root, runtime)


def run() -> None:
    """Run the program; every expected failure becomes one sentence on stderr and its exit code."""
    try:
        command_line(prog_name="pandora")
    except PandoraError as error:
        print_note(f"pandora: {error}")
        if error.hint:
            print_note(f"  {error.hint}")
        sys.exit(EXIT_HALTED if isinstance(error, HaltError) else EXIT_WRONG)
    except OSError as error:
        print_note(f"pandora: {error.filename or 'the disk'}: {error.strerror or error}")
        sys.exit(EXIT_WRONG)
