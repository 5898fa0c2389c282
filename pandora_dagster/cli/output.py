"""Output of a command: results on stdout, everything else on stderr; one JSON document with `--json`."""

import json
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import typer

from pandora_dagster.documents.redaction.printable_text import CONTROLS, printable

EXIT_FAILED = 1
"""Exit code where a turn halted or a check failed."""
EXIT_USAGE = 2
"""Exit code for a wrong command line, file or configuration."""
MAX_ROWS = 20
"""Rows of a long table; `--json` prints all."""
_PIPED_TABLE_WIDTH = 160
_ERASE_LINE = "\r\x1b[K"

Row = TypeVar("Row")
Columns = Mapping[str, str | Callable[[Row], object]]
"""Header -> the name of a field, or the function that gives the cell of a row."""


def print_text(text: str) -> None:
    """Print a part of the result without a line end."""
    typer.echo(printable(text), nl=False)


def print_line(text: str = "") -> None:
    """Print a line of the result."""
    typer.echo(printable(text))


def print_note(text: str) -> None:
    """Print a line beside the result: progress, hints, warnings."""
    typer.echo(printable(text), err=True)


def replace_note(text: str) -> None:
    """Replace the last, unfinished line on stderr, which is a terminal, by `text`; "" removes it."""
    sys.stderr.write(f"{_ERASE_LINE}{printable(text)}")
    sys.stderr.flush()


def shorten_line(text: str, limit: int) -> str:
    """Shorten a text to one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}\u2026"


def display_path(path: str) -> str:
    """A path as a user types it: relative to the current folder where it is below it."""
    cwd = Path.cwd()
    return str(Path(path).relative_to(cwd)) if Path(path).is_relative_to(cwd) else path


def write_page(path: Path, page: str) -> str:
    """Write the page of `--html`, whole or not at all; returns its path as a user types it. Raises StoreError."""
    from pandora_dagster.app.adapters.store_adapters import write_page as write_file

    if not path.parent.is_dir():
        exit_with(EXIT_USAGE, f"--html {path}: no folder {path.parent}: expected an existing one")
    write_file(path, page)
    return display_path(str(path.absolute()))


def print_json(value: object) -> None:
    """Print the result as one JSON document; dataclasses and pydantic models are written as their fields."""
    typer.echo(_json_text(value, indent=2))


def print_json_line(value: object) -> None:
    """Print a value as one line of JSON."""
    typer.echo(_json_text(value))


def _json_text(value: object, *, indent: int | None = None) -> str:
    """JSON in which every control character is escaped, as JSON itself escapes only those under U+0020."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=to_plain)
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def to_plain(value: object) -> object:
    """The fields of a dataclass or a pydantic model; any other value as text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    dump: Callable[..., object] | None = getattr(value, "model_dump", None)  # without importing pydantic for `--help`
    return dump(mode="json") if dump else str(value)


def fields_of(value: object, names: Iterable[str]) -> dict[str, Any]:
    """The named fields of an object."""
    return {name: getattr(value, name) for name in names}


def exit_with(code: int, message: str = "", hint: str = "") -> NoReturn:
    """End the command with `code`; print the message and the hint on stderr."""
    if message:
        print_note(f"pandora: {message}")
    if hint:
        print_note(f"  {hint}")
    raise typer.Exit(code)


def print_rows(rows: Sequence[Row], columns: Columns[Row], *, as_json: bool = False, limit: int | None = None, empty: str = "") -> None:
    """Print rows of a model, a dataclass or a mapping: one JSON list with `as_json`, else a table.

    `limit`: the most rows that the table shows, None for all. `empty`: the note that replaces a table without rows.
    """
    if as_json:
        print_json(rows)
    elif empty and not rows:
        print_note(empty)
    else:
        print_table(tuple(columns), [[_cell(row, cell) for cell in columns.values()] for row in rows], limit=limit)


def _cell(row: Row, cell: str | Callable[[Row], object]) -> object:
    if callable(cell):
        return cell(row)
    value = cast("Mapping[str, object]", row)[cell] if isinstance(row, Mapping) else getattr(row, cell)
    return "" if value is None else value


def print_table(headers: Sequence[str], rows: Collection[Sequence[object]], *, limit: int | None = None) -> None:
    """Print a table as wide as the terminal, or _PIPED_TABLE_WIDTH characters when piped; a note counts the rows over `limit`.

    Where a terminal is too narrow for the words of a row, each row is a paragraph that begins with its first cell.
    """
    from rich.console import Console
    from rich.table import Table

    cells = [[printable(str(value)) for value in row] for row in list(rows)[:limit]]
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _PIPED_TABLE_WIDTH, highlight=False, markup=False)
    has_words, is_wide = _measure(headers, cells, console.width)
    if is_wide and sys.stdout.isatty():
        _print_paragraphs(headers, cells, console.width)
    else:
        table = Table(header_style="bold")
        for header, is_word in zip(headers, has_words, strict=True):
            table.add_column(header, overflow="fold", no_wrap=is_word and not is_wide)
        for row in cells:
            table.add_row(*row)
        console.print(table)
    if limit is not None:
        _print_omitted(len(rows) - limit)


def _measure(headers: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> tuple[list[bool], bool]:
    """Which columns hold single words, such as ids, and whether a table that breaks none of them is wider than `width`."""
    columns = [(header, [row[number] for row in rows]) for number, header in enumerate(headers)]
    has_words = [not any(" " in cell for cell in cells) for _, cells in columns]
    needed = sum(
        max(map(len, (header, *cells)))
        if is_word
        else min(_PROSE_CHARACTERS, max(len(word) for text in (header, *cells) for word in text.split() or [""]))
        for (header, cells), is_word in zip(columns, has_words, strict=True)
    )
    return has_words, needed + _BORDER_CHARACTERS * len(columns) + 1 > width


def _print_paragraphs(headers: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> None:
    from textwrap import fill

    for first, *others in rows:
        named = "; ".join(f"{header}: {cell}" if header else cell for header, cell in zip(headers[1:], others, strict=True) if cell)
        print_line(fill(first, width, break_on_hyphens=False))
        print_line(fill(named, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))


_BORDER_CHARACTERS, _PROSE_CHARACTERS = 3, 24
"""Characters of a table beside the text of a column, and the least width of a column of prose."""


@contextmanager
def live_table(*headers: str) -> Generator[Callable[[Iterable[Sequence[tuple[str, str]]]], None]]:
    """A table on stderr, which is a terminal. The function replaces its rows; a cell is a text and its colour, "" for none."""
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    with Live(console=Console(stderr=True), refresh_per_second=4, transient=False) as live:

        def show(rows: Iterable[Sequence[tuple[str, str]]]) -> None:
            table = Table(*headers, header_style="bold")
            for row in rows:
                table.add_row(*(Text(printable(text), style=colour) for text, colour in row))
            live.update(table)

        yield show


def print_notes(notes: Sequence[str], *, limit: int = MAX_ROWS) -> None:
    """Print notes on stderr, and how many are omitted over `limit`."""
    for note in notes[:limit]:
        print_note(note)
    _print_omitted(len(notes) - limit)


def _print_omitted(number: int) -> None:
    if number > 0:
        print_note(f"{number} more are not shown; --json lists all")


def print_markdown(text: str) -> None:
    """Print Markdown: rendered on a terminal, as it is when piped."""
    if not sys.stdout.isatty():
        print_line(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(printable(text)))


@contextmanager
def progress_bar(description: str, unit: str) -> Generator[Callable[[int, int], None]]:
    """A progress bar on stderr that appears with the first call of the function; it takes the number done and the total."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    text = (TextColumn("{task.description}"), BarColumn(), TextColumn(f"{{task.completed}}/{{task.total}} {unit}"))
    bar = Progress(*text, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True))
    tasks: list[TaskID] = []

    def advance(done: int, total: int) -> None:
        if not tasks:
            tasks.append(bar.add_task(description))
            bar.start()
        bar.update(tasks[0], completed=done, total=total)

    try:
        yield advance
    finally:
        if tasks:
            bar.stop()
