"""The `pandora` program: its commands, its two common options, its exit codes."""

import sys
from typing import Annotated

import typer

from pandora_dagster.cli.app_context import StoreOptions
from pandora_dagster.cli.archive import archive_commands, digest_commands, prune_commands
from pandora_dagster.cli.ask import batch_commands, intervention_commands, search_commands, turn_commands
from pandora_dagster.cli.documents import compression_commands, lineage_commands, memory_commands, source_commands, transfer_commands
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, print_note
from pandora_dagster.cli.recipes import recipe_commands, recipe_score_commands, recipe_test_commands
from pandora_dagster.cli.serve import serve_commands
from pandora_dagster.cli.store import call_commands, forget_commands, index_commands, store_commands
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
turn_commands.register(command_line)
batch_commands.register(command_line)
search_commands.register(command_line)
transfer_commands.register(command_line)
index_commands.register(command_line)
recipe_commands.register(command_line)
recipe_commands.register_versions(recipe_commands.recipes)
recipe_test_commands.register(recipe_commands.recipes)
recipe_score_commands.register_scores(recipe_commands.recipes)
recipe_score_commands.register_lessons(command_line, recipe_commands.recipes)
intervention_commands.register(command_line)
store_commands.register(command_line)
serve_commands.register(command_line)
call_commands.register(command_line)
compression_commands.register(command_line)
source_commands.register(command_line)
memory_commands.register(command_line)
archive_commands.register(command_line)
prune_commands.register(command_line)
forget_commands.register(command_line)
lineage_commands.register(command_line)
digest_commands.register(command_line)


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
    context.obj = StoreOptions(root, runtime)


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
