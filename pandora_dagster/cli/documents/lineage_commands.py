"""The command that shows where a document comes from, and proves it."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pandora_dagster.cli.app_context import app_of_existing_store
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, display_path, exit_with, print_json, print_line, print_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pandora_dagster.app import App
    from pandora_dagster.contracts.lineage import DocumentId
    from pandora_dagster.retrieval.lineage_tree import Branch

_SHOWN = 200
"""Sentences of broken links for people; --json has all."""


def register(app: typer.Typer) -> None:
    app.command("lineage")(lineage)


def lineage(
    context: typer.Context,
    document: Annotated[
        str, typer.Argument(help="A document id, a turn (its context.md), or its short form; `digest` is a person's.")
    ] = "",
    depth: Annotated[int | None, typer.Option("--depth", min=0, help="Levels below the document; default all.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page for a browser here: texts side by side, facts by verdict.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Prove every link by hash; without a document, those of the store.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Show what a document was made from, down to its sources: with hashes, recipe and prompt, model, tokens, verdicts.

    A document is `ben:turn_000004/context.md`, its original `ben:turn_000004/cold/context.md`, a section `ben:turn_000004/context.md#5`,
    `ben:turn_000004/summary`, `ben:session/conv-1` or `ben:digest`. With --verify, exit code 1 where a link is broken.

    Example: pandora lineage example:turn_000002
    """
    if not document and not verify:
        exit_with(EXIT_WRONG, "lineage: no document: expected one such as example:turn_000002, or --verify")
    if html and (verify or as_json):
        exit_with(EXIT_WRONG, "--html: expected it without --verify and --json")
    with app_of_existing_store(context) as app:
        with _progress("lineage", "turns") as step:
            app.lineage.ensure_index(report=lambda said: print_note(f"pandora: {said}"), progress=lambda done: step(done, done))
        found = app.lineage.resolve(document, user=app.settings.user) if document else None
        if verify:
            _verify(app, found, as_json=as_json)
        elif found and html:
            _write(app, found, html)
        elif found:
            _show(app.lineage.tree(found, depth=depth)[0], as_json=as_json)


def _show(branches: "Iterable[Branch]", *, as_json: bool) -> None:
    from pandora_dagster.retrieval.lineage_tree import describe_branch, draw_tree

    if as_json:
        print_json([_row(branch) for branch in branches])
        return
    for before, branch in draw_tree(branches):
        print_line(f"{before}{branch.document}  {describe_branch(branch)}".rstrip())


def _row(branch: "Branch") -> dict[str, Any]:
    rows = [edge.model_dump(mode="json", exclude={"user_id"}) for edge in branch.edges]
    told = {"level": branch.level, "document": branch.document, "sha256": branch.sha, "links": rows}
    return {**told, "told_above": branch.is_again, "sources_below": branch.hidden}


def _write(app: "App", document: "DocumentId", path: Path) -> None:
    from pandora_dagster.stores.disk.files import write_atomic

    if not path.parent.is_dir():
        exit_with(EXIT_WRONG, f"--html {path}: no folder {path.parent}: expected one that is there")
    write_atomic(path, app.lineage.page(document).encode(), durable=False)
    print_line(display_path(str(path.absolute())))


def _verify(app: "App", document: "DocumentId | None", *, as_json: bool) -> None:
    from pandora_dagster.archive.lineage_proof import LinkCheck

    proved = open_ends = deleted = 0
    broken: list[str] = []
    with _progress("verify", "documents") as step:
        for found in app.lineage.prove(document, on_step=step):
            if isinstance(found, LinkCheck) and found.is_deleted:
                deleted += 1
            elif isinstance(found, LinkCheck) and not found.fault:
                proved, open_ends = proved + 1, open_ends + found.is_open
            else:
                broken.append(found.fault if isinstance(found, LinkCheck) else found)
    broken = list(dict.fromkeys(broken))
    if as_json:
        print_json({"proved": proved, "without_a_hash": open_ends, "deleted_by_rule": deleted, "broken": broken})
    else:
        for sentence in broken[:_SHOWN]:
            print_line(sentence)
        if len(broken) > _SHOWN:
            print_note(f"{len(broken) - _SHOWN} more; --json lists all")
        free = f", {open_ends} of them to sources that may change at any time" if open_ends else ""
        free += f"; {deleted} to originals that were deleted by rule" if deleted else ""
        print_line(f"{proved} links proved{free}; {len(broken)} faults" if broken else f"{proved} links proved{free}")
    if broken:
        raise typer.Exit(EXIT_HALTED)


@contextmanager
def _progress(what: str, unit: str) -> "Generator[Callable[[int, int], None]]":
    """A bar on stderr that is there once a first step is told; the function is told of each step."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    shown = (TextColumn("{task.description}"), BarColumn(), TextColumn(f"{{task.completed}}/{{task.total}} {unit}"), TimeElapsedColumn())
    bar = Progress(*shown, console=Console(stderr=True), transient=True)
    tasks: list[TaskID] = []

    def step(done: int, of: int) -> None:
        if not tasks:
            tasks.append(bar.add_task(what))
            bar.start()
        bar.update(tasks[0], completed=done, total=of)

    try:
        yield step
    finally:
        if tasks:
            bar.stop()
