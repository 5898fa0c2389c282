"""The house, opened for one command with its common options."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.settings import Settings


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What the common options say; empty where they are not given."""

    root: str = ""
    runtime: str = ""


def settings_of(context: typer.Context, *, embedded: bool = False, runtime: str = "") -> "Settings":
    """The settings of this command: the environment, with the common options over it, and the command's own `runtime` over these.

    `embedded` asks for the embedded runtime unless an option names another.
    """
    from pandora_dagster.settings import load_settings, process_environment

    given: StoreOptions = context.obj or StoreOptions()
    chosen = runtime or given.runtime or ("extractive" if embedded else "")
    return load_settings(process_environment(PANDORA_ROOT=given.root, PANDORA_RUNTIME=chosen))


@contextmanager
def app_of(context: typer.Context, *, embedded: bool = False) -> "Generator[App]":
    """The open house; closed when the command ends."""
    from pandora_dagster.app import open_app

    app = open_app(settings_of(context, embedded=embedded))
    try:
        yield app
    finally:
        app.close()


@contextmanager
def app_of_existing_store(context: typer.Context) -> "Generator[App]":
    """The open house of a store that is there, for commands that read it; raises InputError where there is none, and makes none."""
    from pandora_dagster.errors import InputError

    root = settings_of(context).root
    if not any((root / part).is_dir() for part in ("users", "interventions")):
        raise InputError(
            f"{root}: no store there: expected the folder of one (--root, else PANDORA_ROOT)",
            hint="a store begins with: pandora demo, pandora ask or pandora import",
        )
    with app_of(context) as app:
        yield app
