"""The command `forget`: erasure of a user."""

from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import settings_of
from pandora_dagster.cli.command_options import AsJson, Yes
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, exit_with, fields_of, print_json, print_line, print_note, print_table

if TYPE_CHECKING:
    from pandora_dagster.contracts.erasure import ErasureReport, UserDataCounts


def forget(
    context: typer.Context,
    user: Annotated[str, typer.Argument(help="Id of the user to erase.")],
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be erased, and erase nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a user everywhere, and verify the erasure.

    It erases turns, sessions, memory, research, stored prompt packs, originals in cold storage, index rows, interventions, lines of batches
    and logs, and Dagster's partitions, runs and events. Every file of the store and of Dagster's storage is then searched for texts that
    only this user's documents had. The exit code is 1 if one was found; its place is printed, not its text. The same command completes an
    interrupted erasure; until then, no turn of the user can start.

    Example: pandora forget ann --dry-run
    """
    from pandora_dagster.app.erasure_service import ErasureService
    from pandora_dagster.contracts.ids import user_id
    from pandora_dagster.defs.run_records import DagsterRunEraser

    settings = settings_of(context)
    owner = user_id(user)
    if not settings.root.is_dir():
        exit_with(EXIT_WRONG, f"{settings.root}: no store there: expected the folder of a store (--root or PANDORA_ROOT)")
    erasure = ErasureService(settings, DagsterRunEraser(settings), on_step=lambda step: print_note(f"erasing {owner}: {step}"))
    found = erasure.find(owner)
    if not found.anything:
        exit_with(EXIT_WRONG, f"user {owner}: the store has nothing of this user: expected a user with documents")
    if not (as_json and (yes or dry_run)):
        _print_found(found)
    if dry_run:
        if as_json:
            print_json({"user": owner, "dry_run": True, "found": dict(found.counts), "notices": list(found.notices)})
        return
    if not yes and not typer.confirm(f"Erase {owner} for good?", err=True):
        exit_with(EXIT_WRONG, "nothing was erased")
    erased = erasure.erase(owner)
    _print_proof(erased, as_json=as_json)
    if not erased.proof.clean:
        raise typer.Exit(EXIT_HALTED)


def _print_found(found: "UserDataCounts") -> None:
    print_table(("What", "How many"), [(name.replace("_", " "), count) for name, count in found.counts.items() if count])
    for notice in found.notices:
        print_note(notice)


def _print_proof(erased: "ErasureReport", *, as_json: bool) -> None:
    proof = erased.proof
    for notice in erased.notices:
        print_note(notice)
    if as_json:
        searched = fields_of(proof, ("files", "bytes_read", "facts", "facts_in_documents", "hits"))
        print_json({"user": erased.found.user, "found": dict(erased.found.counts), "proof": searched})
        return
    facts = f"{proof.facts} facts that only {erased.found.user} had (of {proof.facts_in_documents})"
    print_line(f"{proof.files} files searched, {proof.bytes_read:,} bytes, for the id and {facts}: {len(proof.hits)} hits")
    for hit in proof.hits:
        print_note(f"pandora: {hit}")
    if not proof.facts_in_documents:
        print_note("the documents were erased before: only the id could be searched for")
