"""The application of one command, and the arguments and options that several commands share."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.settings import Settings


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Values of the common options; empty where they are not given."""

    root: str = ""
    runtime: str = ""


def settings_of(context: typer.Context, *, embedded: bool = False, runtime: str = "") -> "Settings":
    """The settings of this command: the environment, overridden by the common options, overridden by the command's own `runtime`.

    `embedded` selects the embedded runtime unless an option names another.
    """
    from pandora_dagster.settings import load_settings, process_environment

    options: StoreOptions = context.obj or StoreOptions()
    runtime_name = runtime or options.runtime or ("extractive" if embedded else "")
    return load_settings(process_environment(PANDORA_ROOT=options.root, PANDORA_RUNTIME=runtime_name))


@contextmanager
def app_of(context: typer.Context, *, embedded: bool = False) -> "Generator[App]":
    """The open application; closed when the command ends."""
    from pandora_dagster.app import open_app

    app = open_app(settings_of(context, embedded=embedded))
    try:
        yield app
    finally:
        app.close()


@contextmanager
def app_of_existing_store(context: typer.Context) -> "Generator[App]":
    """The open application of a store that exists, for commands that read it. Raises InputError where there is none; creates none."""
    from pandora_dagster.errors import InputError

    root = settings_of(context).root
    if not any((root / part).is_dir() for part in ("users", "interventions")):
        raise InputError(
            f"{root}: no store there: expected the folder of a store (--root or PANDORA_ROOT)",
            hint="create a store with: pandora demo, pandora ask or pandora import",
        )
    with app_of(context) as app:
        yield app


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
User = Annotated[str, typer.Option("--user", "-u", help="User id; default PANDORA_USER.")]
OnlyUser = Annotated[str, typer.Option("--user", "-u", help="Only this user; default: all users.")]
Turn = Annotated[str, typer.Argument(help="<user>:turn_000811, or a short form that is unique.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
RecipeName = Annotated[str, typer.Argument(help="{category}/{name}, or a short form: reflection, planner_chat.")]
