"""The command `lineage`: the sources of a document, and the verification of links."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pandora_dagster.cli.app_context import AsJson, app_of_existing_store
from pandora_dagster.cli.output import EXIT_FAILED, EXIT_USAGE, exit_with, print_json, print_line, print_note, progress_bar, write_page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pandora_dagster.app import App
    from pandora_dagster.archive.lineage_tree import Branch
    from pandora_dagster.contracts.lineage import DocumentId

_MAX_FAULTS = 200
"""Broken links that are printed; `--json` prints all."""


def lineage(
    context: typer.Context,
    document: Annotated[
        str, typer.Argument(help="A document id, a turn (for its context.md), or a short form; `digest` for that of PANDORA_USER.")
    ] = "",
    depth: Annotated[int | None, typer.Option("--depth", min=0, help="Levels below the document; default: all.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write an HTML page to this file: texts side by side, facts by verdict.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Verify every link by hash; without a document, all links of the store.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a document was made from, and verify it.

    The tree has hashes, recipe, prompt, model, tokens and verdicts. A document is `ben:turn_000004/context.md`, its original
    `ben:turn_000004/cold/context.md`, a section `ben:turn_000004/context.md#5`, `ben:turn_000004/summary`, `ben:session/conv-1` or
    `ben:digest`. With --verify, the exit code is 1 if a link is broken.

    Example: pandora lineage example:turn_000002
    """
    if not document and not verify:
        exit_with(EXIT_USAGE, "lineage: no document: expected one such as example:turn_000002, or --verify")
    if html and (verify or as_json):
        exit_with(EXIT_USAGE, "--html: expected it without --verify and --json")
    with app_of_existing_store(context) as app:
        with progress_bar("lineage", "turns") as advance:
            is_new = app.lineage.ensure_index(report=lambda text: print_note(f"pandora: {text}"), progress=lambda done: advance(done, done))
        document_id = app.lineage.resolve(document, user=app.settings.user) if document else None
        if verify:
            if is_new and app.lineage.index.owners():
                print_note("pandora: the rows were made from the documents just now: that they agree proves nothing about the rows before")
            _verify_links(app, document_id, as_json=as_json)
        elif document_id and html:
            from pandora_dagster.api.pages.html_pages import lineage_page

            print_line(write_page(html, lineage_page(app.lineage, document_id)))
        elif document_id:
            _print_tree(app.lineage.tree(document_id, depth=depth)[0], as_json=as_json)


def _print_tree(branches: "Iterable[Branch]", *, as_json: bool) -> None:
    from pandora_dagster.archive.lineage_tree import describe_branch, draw_tree

    if as_json:
        print_json([_branch_object(branch) for branch in branches])
        return
    for before, branch in draw_tree(branches):
        print_line(f"{before}{branch.document}  {describe_branch(branch)}".rstrip())


def _branch_object(branch: "Branch") -> dict[str, Any]:
    links = [edge.model_dump(mode="json", exclude={"user_id"}) for edge in branch.edges]
    fields = {"level": branch.level, "document": branch.document, "sha256": branch.sha, "links": links}
    return {**fields, "told_above": branch.is_again, "sources_below": branch.hidden}


def _verify_links(app: "App", document: "DocumentId | None", *, as_json: bool) -> None:
    from pandora_dagster.archive.lineage_proof import LinkCheck

    verified = without_hash = deleted = 0
    broken: dict[str, None] = {}
    with progress_bar("verify", "documents") as advance:
        for check in app.lineage.prove(document, on_step=advance):
            if isinstance(check, LinkCheck) and check.is_deleted:
                deleted += 1
            elif isinstance(check, LinkCheck) and not check.fault:
                verified, without_hash = verified + 1, without_hash + check.is_unhashed
            else:
                broken[check.fault if isinstance(check, LinkCheck) else check] = None
    if as_json:
        print_json({"proved": verified, "without_a_hash": without_hash, "deleted_by_rule": deleted, "broken": list(broken)})
    else:
        for sentence in list(broken)[:_MAX_FAULTS]:
            print_line(sentence)
        if len(broken) > _MAX_FAULTS:
            print_note(f"{len(broken) - _MAX_FAULTS} more are not shown; --json lists all")
        exempt = f", {without_hash} of them to sources that may change at any time" if without_hash else ""
        exempt += f"; {deleted} to originals that were deleted by rule" if deleted else ""
        print_line(f"{verified} links verified{exempt}" + (f"; {len(broken)} faults" if broken else ""))
    if broken:
        raise typer.Exit(EXIT_FAILED)
