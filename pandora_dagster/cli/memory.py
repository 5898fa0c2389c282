"""Commands for what the assistant remembers of a person: preferences and facts."""

import re
from dataclasses import asdict
from typing import Annotated

import typer

from pandora_dagster.cli import memory_consent
from pandora_dagster.cli.opened import app_of, app_of_existing_store
from pandora_dagster.cli.output import EXIT_WRONG, print_note, print_line, print_json, print_table, exit_with
from pandora_dagster.cli.sources import user_of

memory = typer.Typer(name="memory", help="What is remembered of a person.", no_args_is_help=True, rich_markup_mode=None)
User = Annotated[str, typer.Option("--user", "-u", help="Whose it is; default PANDORA_USER.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
KINDS = ("preference", "fact")


def register(app: typer.Typer) -> None:
    memory_consent.register_consent(memory)
    app.add_typer(memory)


@memory.command("list")
def list_memory(context: typer.Context, user: User = "", as_json: AsJson = False) -> None:
    """List preferences and facts; where one was contradicted, what it said before stands beside it.

    Example: pandora memory list --user example
    """
    from pandora_dagster.phases.consent import consent_status

    with app_of_existing_store(context) as app:
        owner = user_of(app, user)
        entries, profile = app.dependencies.memory.entries(owner), consent_status(app.dependencies, owner)
    if as_json:
        print_json([asdict(entry) for entry in entries])
        return
    more = f"{profile.fact_count} facts more: pandora memory facts" if profile.given else "off (pandora memory consent)"
    print_note(f"profile of {owner}: {more}")
    if not entries:
        print_note(f"no preferences or facts of {owner} under keys; one is remembered by: pandora memory set KEY VALUE")
        return
    rows = [
        (
            e.key,
            _on_one_line(e.value),
            e.kind,
            f"{e.confidence:.2f}",
            e.source_turn or "",
            e.last_updated,
            "; ".join(f"{_on_one_line(o.value)} ({o.last_updated[:10]})" for o in e.earlier),
        )
        for e in entries
    ]
    print_table(("Key", "Value", "Kind", "Confidence", "Turn", "Updated", "Earlier"), rows)


@memory.command("set")
def set_memory(
    context: typer.Context,
    key: Annotated[str, typer.Argument(help="A short name in lower-case letters, digits and '_', e.g. budget.")],
    value: Annotated[str, typer.Argument(help="What to remember.")],
    kind: Annotated[str, typer.Option(help="preference or fact.")] = "preference",
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Remember a preference or a fact.

    Another value of the same key stays beside the new one, with its date; the newer one is current.

    Example: pandora memory set budget "$500-800" --user example
    """
    from pandora_dagster.contracts.remembered import MemoryEntry
    from pandora_dagster.text.dates import format_timestamp

    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", key):
        exit_with(EXIT_WRONG, f"key {key[:80]!r}: expected up to 64 lower-case letters, digits and '_', beginning with a letter")
    if kind not in KINDS:
        exit_with(EXIT_WRONG, f"--kind {kind}: expected preference or fact")
    if not value.strip() or len(value) > 2_000:
        exit_with(EXIT_WRONG, f"value of {len(value):,} characters: expected 1 to 2,000")
    with app_of(context) as app:
        owner = user_of(app, user)
        now = format_timestamp(app.dependencies.clock().replace(microsecond=0))
        app.dependencies.memory.put(owner, MemoryEntry(key, value, 1.0, None, now, kind))
    print_json({"user_id": owner, "key": key, "value": value, "kind": kind}) if as_json else print_line(f"{kind} {key} remembered for {owner}")


@memory.command("forget")
def forget_memory(
    context: typer.Context,
    key: Annotated[str, typer.Argument(help="A key as `pandora memory list` gives it.")],
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Forget a preference or fact, with all it said before; both where one key holds both.

    Turns keep what was said in them: a later question may still find it there.

    Example: pandora memory forget budget --user example
    """
    with app_of_existing_store(context) as app:
        owner = user_of(app, user)
        kinds = [e.kind for e in app.dependencies.memory.entries(owner) if e.key == key]
        found = app.dependencies.memory.forget(owner, key)
    if not found:
        exit_with(EXIT_WRONG, f"key {key[:80]!r}: not in the memory of {owner}: expected one that `pandora memory list` gives")
    print_json({"user_id": owner, "forgotten": key}) if as_json else print_line(f"{' and '.join(kinds)} {key} forgotten for {owner}")


def _on_one_line(value: object) -> str:
    """A value for a table; where it has several lines, a sign stands for each end, so that it can be told from one line."""
    from pandora_dagster.text.tables import cell

    return " ⏎ ".join(cell(line) for line in value.splitlines()) if isinstance(value, str) else cell(value)
