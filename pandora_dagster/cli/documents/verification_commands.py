"""The command `verify`: what became of the facts of a text in a shorter one, whoever shortened it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pandora_dagster.cli.app_context import AsJson
from pandora_dagster.cli.documents.text_input import read_text
from pandora_dagster.cli.output import EXIT_FAILED, EXIT_USAGE, exit_with, print_json, print_line, print_note, shorten_line, write_page
from pandora_dagster.language.word_forms import counted

_MAX_ENTRIES, _MAX_CHARACTERS = 20, 160
"""Entries of a list that the report shows, and characters of each; `--json` has all."""
_LISTS = ("changed", "invented", "missing", "left_out", "for_review", "kept")


def verify(
    original: Annotated[str, typer.Argument(help="The original, a UTF-8 text file; - for stdin.")],
    shortened: Annotated[str, typer.Argument(help="The shortened text, a UTF-8 text file; - for stdin.")],
    as_json: AsJson = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write both texts side by side as an HTML page to this file.")] = None,
) -> None:
    """Verify a shortened text against its original.

    The report lists what is kept, missing, changed, left out and invented, each with its line in both texts. Statements that are not
    verbatim are listed for review beside the units that they were made from: whether rewording changes the meaning is not judged. Text that
    only counts what was left out is no statement.

    The exit code is 1 where a fact is missing or changed or something is invented, 2 for invalid input.

    Example: pandora verify notes.md summary.md
    """
    if original == shortened == "-":
        exit_with(EXIT_USAGE, "verify: both texts are stdin: expected one file at least")
    texts = read_text(original), read_text(shortened)

    from pandora_dagster.app.verification_service import verify_texts

    report, page = verify_texts(*texts), ""
    if html:
        from pandora_dagster.api.pages.html_pages import verification_page

        page = write_page(html, verification_page(*texts, names=(original, shortened)))
    if as_json:
        print_json(report)
    else:
        _print_report(report)
    if page and not as_json:
        print_note(f"pandora: {page}")
    if report["missing"] or report["changed"] or report["invented"]:
        raise typer.Exit(EXIT_FAILED)


def _print_report(report: dict[str, Any]) -> None:
    counts = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in report["facts"].items() if number and name != "total")
    print_line(f"{counted(report['facts']['total'], 'fact')}: {counts or 'none'}; {counted(len(report['left_out']), 'unit')} left out")
    for name in _LISTS:
        entries = _without_parts(report[name])
        if entries:
            parts = len(report[name]) - len(entries)
            parts_note = f", and {parts} {'value' if parts == 1 else 'values'} in them" if parts else ""
            print_line(f"\n{name.replace('_', ' ')} ({len(entries)}{parts_note})")
        for entry in entries[:_MAX_ENTRIES]:
            print_line(f"  {_format_lines(entry)}: {shorten_line(_describe(entry), _MAX_CHARACTERS)}")
        if len(entries) > _MAX_ENTRIES:
            print_line(f"  and {len(entries) - _MAX_ENTRIES} more; --json has all")


def _without_parts(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries without the values that are part of a statement which is an entry itself."""
    statements = {entry["of"] for entry in entries if entry.get("of") and entry["of"].endswith(entry["fact"])}
    return [e for e in entries if e.get("of") not in statements or e["of"].endswith(e["fact"]) or e.get("instead")]


def _format_lines(entry: dict[str, Any]) -> str:
    """The lines of an entry in both texts: `3 -> 1`, with `-` where there is none."""
    positions = entry.get("original") or next((s["original"] for s in entry.get("sources", ())), None), entry.get("shortened")
    return " -> ".join(str(position["line"]) if position else "-" for position in positions)


def _describe(entry: dict[str, Any]) -> str:
    if "text" in entry:
        differences = "; ".join(entry.get("differences", ()))
        return f"{entry['text']} ({differences})" if differences else entry["text"]
    fact = entry.get("fact", "")
    instead = f"{' -> ' if fact else ''}{entry['instead']}" if entry.get("instead") else ""
    reason = f" ({entry['reason']})" if entry.get("reason") else ""
    statement = f", in: {entry['of']}" if entry.get("of") and not entry["of"].endswith(fact) and not instead else ""
    return f"{fact}{instead}{reason}{statement}"
