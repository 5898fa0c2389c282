"""Commands for the indexes: rebuild and verify."""

from typing import Annotated

import typer

from pandora_dagster.cli.app_context import app_of_existing_store
from pandora_dagster.cli.output import EXIT_HALTED, print_json, print_line, print_note

index = typer.Typer(
    name="index", help="The DuckDB indexes of turns, calls and sources, over the documents.", no_args_is_help=True, rich_markup_mode=None
)


def register(app: typer.Typer) -> None:
    app.add_typer(index)


@index.command("rebuild")
def rebuild(context: typer.Context) -> None:
    """Make the indexes again: of turns and their lineage from their documents, of calls, research and visits from their records.

    A damaged one is kept aside, and turns that Dagster does not know become known to it. A turn whose documents cannot be
    read is named, the others are indexed, and the exit code is 1.

    Example: pandora index rebuild
    """
    from pandora_dagster.defs.turn.turn_run import add_partitions

    with app_of_existing_store(context) as app:
        report = app.indexes.rebuild(progress=lambda done: print_note(f"{done} turns") if done % 1000 == 0 else None)
        add_partitions(app, app.turns.keys())
    print_line(f"{report.turns} turns, {report.calls} calls and {report.sources} sources indexed; {report.links} links of lineage")
    if report.vectors:
        print_line(f"{report.vectors} vectors of messages")
    for aside in filter(None, (report.aside, report.calls_aside, report.sources_aside, report.lineage_aside)):
        print_note(f"the damaged index is kept as {aside}")
    for fault in (*report.faults, *report.broken_lines):
        print_note(f"pandora: {fault}")
    if report.faults:
        raise typer.Exit(EXIT_HALTED)


@index.command("verify")
def verify(context: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False) -> None:
    """Compare the indexes of turns, calls, sources and lineage with the documents.

    Each difference is one line. Exit code 1 where they differ.

    Example: pandora index verify
    """
    with app_of_existing_store(context) as app:
        differences = app.indexes.verify()
    if as_json:
        print_json({"differences": list(differences)})
    else:
        for difference in differences:
            print_line(difference)
        print_line(f"{len(differences)} differences" if differences else "indexes and documents agree")
    if differences:
        raise typer.Exit(EXIT_HALTED)
