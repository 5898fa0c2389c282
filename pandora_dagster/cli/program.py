"""The `pandora` program: its commands by panel, the two common options, the exit codes."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import getdoc
from typing import Annotated, Any

import typer
import typer.core

from pandora_dagster.cli import serve_commands, store_commands
from pandora_dagster.cli.app_context import StoreOptions
from pandora_dagster.cli.archive import archive_commands, digest_commands, prune_commands
from pandora_dagster.cli.ask import chat_command, intervention_commands, search_commands, tool_commands, turn_commands
from pandora_dagster.cli.documents import (
    compression_commands,
    lineage_commands,
    memory_commands,
    research_commands,
    source_commands,
    transfer_commands,
    verification_commands,
    visit_commands,
)
from pandora_dagster.cli.output import EXIT_FAILED, EXIT_USAGE, print_line, print_note
from pandora_dagster.cli.recipes import evaluation_commands, recipe_commands
from pandora_dagster.errors import HaltError, PandoraError

_HELP = """Conversation turns as documents, model calls as recipes, on Dagster.

Exit codes: 0 success; 1 a turn halted or a check failed; 2 a wrong command line, file or configuration.
"""


CommandFunction = Callable[..., None]
_HELP_MARGINS = 6
"""Columns of a help line beside the name and the text of a command, as in click's own listing."""


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """Commands under one name."""

    name: str
    help: str
    commands: Sequence[CommandFunction]


_INTERVENTIONS = CommandGroup(
    "interventions",
    "List, show and resolve interventions of halted turns.",
    (intervention_commands.list_interventions, intervention_commands.show_intervention, intervention_commands.resolve_intervention),
)
_TOOLS = CommandGroup("tools", "List what a turn may call.", (tool_commands.list_tools,))
_RESEARCH = CommandGroup(
    "research",
    "Find out on the web; add, list and show cached research.",
    (
        research_commands.run_research,
        research_commands.topics_research,
        source_commands.add_research,
        source_commands.list_research,
        source_commands.show_research,
    ),
)
_VISIT = CommandGroup(
    "visit",
    "Read pages of the web; add, list and show visited pages.",
    (visit_commands.read_visit, source_commands.add_visit, source_commands.list_visits, visit_commands.show_visit),
)
_MEMORY = CommandGroup(
    "memory",
    "Show and change what is stored about a user.",
    (
        *(memory_commands.list_memory, memory_commands.set_memory, memory_commands.forget_memory),
        *(memory_commands.consent, memory_commands.erase, memory_commands.facts),
    ),
)
_RECIPES = CommandGroup(
    "recipes",
    "Inspect, test, score, roll back and assign recipes.",
    (
        *(recipe_commands.check, recipe_commands.list_recipes, recipe_commands.show, recipe_commands.history, recipe_commands.diff),
        *(recipe_commands.rollback, recipe_commands.assign, evaluation_commands.test, evaluation_commands.record),
        *(evaluation_commands.replay, evaluation_commands.scores, evaluation_commands.lessons),
    ),
)
_COLD = CommandGroup("cold", "Manage the originals of archived turns.", (prune_commands.prune,))
_INDEX = CommandGroup("index", "Rebuild and verify the indexes.", (store_commands.rebuild, store_commands.verify))
PANELS: Mapping[str, Sequence[CommandFunction | CommandGroup]] = {
    "Ask": (
        *(store_commands.demo, turn_commands.ask, chat_command.chat, turn_commands.resume, turn_commands.turns, turn_commands.show),
        *(search_commands.search, transfer_commands.batch, _INTERVENTIONS, _TOOLS),
    ),
    "Document": (
        *(
            transfer_commands.import_file,
            transfer_commands.export,
            compression_commands.compress,
            verification_commands.verify,
            lineage_commands.lineage,
        ),
        *(_RESEARCH, _VISIT, _MEMORY),
    ),
    "Recipe": (_RECIPES, evaluation_commands.correct, store_commands.calls),
    "Archive": (
        *(archive_commands.archive, archive_commands.restore, archive_commands.pin, archive_commands.unpin),
        *(digest_commands.digest, _COLD),
    ),
    "Server": (serve_commands.serve, serve_commands.api, serve_commands.ui, serve_commands.pages),
    "Store": (store_commands.doctor, _INDEX, store_commands.forget),
}
"""The panels of `pandora --help`. The name of a command is the first word of its function's name: `list_memory` is `memory list`."""


class _PanelList(typer.core.TyperGroup):
    """A group that lists its commands by panel, as plain text."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        limit = formatter.width - _HELP_MARGINS - max(map(len, self.commands))
        for panel, commands in PANELS.items():
            names = [_command_name(command) for command in commands]
            with formatter.section(f"{panel} commands"):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(limit)) for name in names])


def _command_name(command: CommandFunction | CommandGroup) -> str:
    return command.name if isinstance(command, CommandGroup) else command.__name__.partition("_")[0]


def _add_command(app: typer.Typer, command: CommandFunction | CommandGroup, panel: str | None = None) -> None:
    """Add a command or a group; the examples at the end of a docstring are shown after the options."""
    if isinstance(command, CommandGroup):
        group = typer.Typer(help=command.help, no_args_is_help=True, rich_markup_mode=None)
        for function in command.commands:
            _add_command(group, function)
        app.add_typer(group, name=command.name, rich_help_panel=panel)
    else:
        text, *examples = (getdoc(command) or "").split("\n\nExample: ")
        epilog = "\b\n" + "\n".join(f"Example: {example}" for example in examples)
        app.command(_command_name(command), help=text, epilog=epilog, rich_help_panel=panel)(command)


command_line = typer.Typer(
    name="pandora",
    cls=_PanelList,
    help=_HELP,
    epilog="Example: pandora demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)
for _panel, _commands in PANELS.items():
    for _command in _commands:
        _add_command(command_line, _command, _panel)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        print_line(f"pandora {version('pandora-dagster')}")
        raise typer.Exit


@command_line.callback()
def common(
    context: typer.Context,
    root: Annotated[str, typer.Option("--root", help="Store root; default PANDORA_ROOT or data/panda-system-docs.")] = "",
    runtime: Annotated[str, typer.Option("--runtime", help="extractive, sglang, sglang-offline or openai; default PANDORA_RUNTIME.")] = "",
    verbose: Annotated[bool, typer.Option("--verbose", help="Print what is compressed and other events, as lines on stderr.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    context.obj = StoreOptions(root, runtime)
    _print_log(verbose=verbose)
    from pandora_dagster.settings import process_environment, removed_settings

    for notice in removed_settings(process_environment()):
        print_note(f"pandora: {notice}")


def _print_log(*, verbose: bool) -> None:
    """Print the warnings of Pandora on stderr; with `verbose` all its log lines, those of compressions (000, section 27) among them."""
    import logging

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            print_note(record.getMessage())

    logger = logging.getLogger("pandora_dagster")
    logger.handlers = [Notes()]
    if verbose:
        logger.setLevel(logging.INFO)
        logger.propagate = False


def run() -> None:
    """Run the program; every expected failure is reported as one sentence on stderr with its exit code."""
    try:
        command_line(prog_name="pandora")
    except PandoraError as error:
        print_note(f"pandora: {error}")
        if error.hint:
            print_note(f"  {error.hint}")
        sys.exit(EXIT_FAILED if isinstance(error, HaltError) else EXIT_USAGE)
    except OSError as error:
        print_note(f"pandora: {error.filename or 'the disk'}: {error.strerror or error}")
        sys.exit(EXIT_USAGE)
