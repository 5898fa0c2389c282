"""Arguments and options that several commands share."""

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
User = Annotated[str, typer.Option("--user", "-u", help="User id; default PANDORA_USER.")]
OnlyUser = Annotated[str, typer.Option("--user", "-u", help="Only this user; default: all users.")]
Turn = Annotated[str, typer.Argument(help="<user>:turn_000811, or a short form that is unique.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
RecipeName = Annotated[str, typer.Argument(help="{category}/{name}, or a short form: reflection, planner_chat.")]
