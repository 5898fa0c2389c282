"""How a command speaks: results on stdout, everything else on stderr; one JSON document with `--json`."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import typer

EXIT_HALTED = 1
EXIT_WRONG = 2


def print_line(text: str = "") -> None:
    """A line of the result."""
    typer.echo(text)


def print_note(text: str) -> None:
    """A line beside the result: progress, hints."""
    typer.echo(text, err=True)


def display_path(path: str) -> str:
    """A path as a person types it: from the current folder where it lies below it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def print_json(value: Any) -> None:
    """The result as one JSON document."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def exit_with(code: int, message: str = "", hint: str = "") -> NoReturn:
    """End the command with `code` and, on stderr, one sentence and what to do."""
    if message:
        print_note(f"pandora: {message}")
    if hint:
        print_note(f"  {hint}")
    raise typer.Exit(code)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> None:
    """A table for people, as wide as the terminal; plain when it is piped."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*headers, title=title or None, title_justify="left", header_style="bold")
    for row in rows:
        table.add_row(*(str(value) for value in row))
    wide = None if sys.stdout.isatty() else 160
    Console(file=sys.stdout, width=wide, highlight=False, markup=False).print(table)


def print_markdown(text: str) -> None:
    """Markdown, rendered on a terminal and as it stands when it is piped."""
    if not sys.stdout.isatty():
        print_line(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))
