"""The command that erases a person: forget."""

from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import settings_of
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, exit_with, print_json, print_line, print_note, print_table

if TYPE_CHECKING:
    from pandora_dagster.contracts.erasure import ErasureReport, UserDataCounts


def register(app: typer.Typer) -> None:
    app.command("forget")(forget)


def forget(
    context: typer.Context,
    user: Annotated[str, typer.Argument(help="Whom to erase.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what there is, and erase nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Erase one person everywhere, for good, and prove it.

    Turns, sessions, memory, research, kept packs, originals in cold storage, rows of every index, interventions, lines of batches and logs,
    and Dagster's partitions, runs and events. Then every file of the store and of Dagster's storage is searched for what only this person's
    documents said. Exit code 1 where anything was found; what was found is not shown, only where. A run that was cut off is finished by the
    same command; until then no turn of theirs begins.

    Example: pandora forget ann --dry-run
    """
    from pandora_dagster.app.erasure_service import ErasureService
    from pandora_dagster.contracts.ids import user_id
    from pandora_dagster.defs.run_records import DagsterRunEraser

    settings = settings_of(context)
    who = user_id(user)
    if not settings.root.is_dir():
        exit_with(EXIT_WRONG, f"{settings.root}: no store there: expected the folder of one (--root, else PANDORA_ROOT)")
    erasure = ErasureService(settings, DagsterRunEraser(settings), on_step=lambda step: print_note(f"erasing {who}: {step}"))
    found = erasure.find(who)
    if not found.anything:
        exit_with(EXIT_WRONG, f"user {who}: nothing of theirs is in this store: expected a user who has something")
    if not (as_json and (yes or dry_run)):
        _print_found(found)
    if dry_run:
        if as_json:
            print_json({"user": who, "dry_run": True, "found": dict(found.counts), "notices": list(found.notices)})
        return
    if not yes and not typer.confirm(f"Erase {who} for good?", err=True):
        exit_with(EXIT_WRONG, "nothing was erased")
    erased = erasure.erase(who)
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
        told = {name: getattr(proof, name) for name in ("files", "bytes_read", "facts", "facts_in_documents")}
        print_json({"user": erased.found.user, "found": dict(erased.found.counts), "proof": {**told, "hits": list(proof.hits)}})
        return
    of = f"{proof.facts} facts that only {erased.found.user} had (of {proof.facts_in_documents})"
    print_line(f"{proof.files} files searched, {proof.bytes_read:,} bytes, for the id and {of}: {len(proof.hits)} hits")
    for hit in proof.hits:
        print_note(f"pandora: {hit}")
    if not proof.facts_in_documents:
        print_note("the documents were gone before: nothing but the id could be looked for")
