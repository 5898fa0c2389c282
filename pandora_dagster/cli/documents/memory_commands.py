"""Commands for what is remembered of a person across sessions: consent, erase, facts."""

import re
from dataclasses import asdict
from typing import Annotated

import typer

from pandora_dagster.cli.app_context import app_of, app_of_existing_store
from pandora_dagster.cli.documents import memory_commands
from pandora_dagster.cli.documents.source_commands import user_of
from pandora_dagster.cli.output import EXIT_WRONG, exit_with, print_json, print_line, print_note, print_table

ProfileUser = Annotated[str, typer.Option("--user", "-u", help="Whose memory; default PANDORA_USER.")]
ProfileAsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


KEYED_MEMORY_NOTE = "preferences and facts under keys are not part of it: pandora memory list, pandora memory forget KEY"


def register_consent(memory: typer.Typer) -> None:
    """Add the commands to the sub-app `memory`."""
    memory.command("consent")(consent)
    memory.command("erase")(erase)
    memory.command("facts")(facts)


def consent(
    context: typer.Context,
    wish: Annotated[str, typer.Argument(help="on, off or show.")] = "show",
    user: ProfileUser = "",
    as_json: ProfileAsJson = False,
) -> None:
    """Whether a profile of you is kept across sessions: facts out of what you say.

    Off until you say on; what you stated before stays out. Off deletes the profile. What `pandora memory list` shows under keys is
    no part of it: that stays until `pandora memory forget KEY`.

    Example: pandora memory consent on --user example
    """
    from pandora_dagster.contracts.ids import user_id
    from pandora_dagster.phases.steps.profile_consent import consent_status, give_consent, withdraw_consent

    if wish not in ("on", "off", "show"):
        exit_with(EXIT_WRONG, f"consent {wish}: expected on, off or show")
    with (app_of if wish == "on" else app_of_existing_store)(context) as app:
        who = user_id(user) if user else app.settings.user
        gone = 0
        if wish == "on":
            give_consent(app.dependencies, who)
        elif wish == "off":
            gone = withdraw_consent(app.dependencies, who)
        now = consent_status(app.dependencies, who)
    if as_json:
        print_json({"user_id": who, "consent": now.given, "since": now.since, "facts": now.fact_count, "deleted": gone})
        return
    told = f"on since {now.since}: a profile of {plural(now.fact_count, 'fact')} out of what you say (pandora memory facts)"
    print_line(
        f"{who}: {told}"
        if now.given
        else f"{who}: off: no profile is kept across sessions" + (f"; {plural(gone, 'fact')} deleted" if gone else "")
    )
    print_note(KEYED_MEMORY_NOTE)


def plural(number: int, noun: str) -> str:
    """`1 fact`, `2 facts`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def erase(
    context: typer.Context,
    user: ProfileUser = "",
    sessions: Annotated[bool, typer.Option("--sessions", help="Also the facts that single sessions keep.")] = False,
    as_json: ProfileAsJson = False,
) -> None:
    """Erase the profile: the facts kept across sessions, and their audit.

    Consent stays as it is; what is erased does not come back. Turns are not touched, nor what `pandora memory list` shows under keys.

    Example: pandora memory erase --user example --sessions
    """
    from pandora_dagster.contracts.ids import user_id
    from pandora_dagster.phases.steps.profile_consent import erase_facts

    with app_of_existing_store(context) as app:
        who = user_id(user) if user else app.settings.user
        profile, of_sessions = erase_facts(app.dependencies, who, sessions=sessions)
    if as_json:
        print_json({"user_id": who, "profile_facts": profile, "session_facts": of_sessions})
        return
    print_line(
        f"{who}: {plural(profile, 'fact')} of the profile erased" + (f", {plural(of_sessions, 'fact')} of sessions" if sessions else "")
    )
    print_note(KEYED_MEMORY_NOTE)


def facts(
    context: typer.Context,
    session: Annotated[str, typer.Option("--session", "-s", help="The facts of this session; default: those kept across sessions.")] = "",
    user: ProfileUser = "",
    as_json: ProfileAsJson = False,
) -> None:
    """List the facts that a session keeps, or with consent all sessions.

    Example: pandora memory facts --user example --session s1
    """
    from pandora_dagster.contracts.ids import session_id, user_id

    with app_of_existing_store(context) as app:
        who = user_id(user) if user else app.settings.user
        ledger = app.dependencies.facts.session(who, session_id(session)) if session else app.dependencies.facts.profile(who)
    found = ledger.facts if ledger else ()
    if as_json:
        print_json([f.model_dump(mode="json") for f in found])
        return
    if not found:
        consented = "nothing was stated since consent was given" if ledger else "there is no consent (pandora memory consent on)"
        print_note(f"no facts of {f'session {session}' if session else f'{who} across sessions: {consented}'}")
        return
    rows = [(f.id, f.category, f.fact, f.stated_at[:10], str(f.turn), "yes" if f.current else f"until {f.superseded_at}") for f in found]
    print_table(("Fact", "Category", "Words", "Said", "Turn", "Holds"), rows)


# Commands for what the assistant remembers of a person: preferences and facts.

memory = typer.Typer(name="memory", help="What is remembered of a person.", no_args_is_help=True, rich_markup_mode=None)
User = Annotated[str, typer.Option("--user", "-u", help="Whose it is; default PANDORA_USER.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
KINDS = ("preference", "fact")


def register(app: typer.Typer) -> None:
    memory_commands.register_consent(memory)
    app.add_typer(memory)


@memory.command("list")
def list_memory(context: typer.Context, user: User = "", as_json: AsJson = False) -> None:
    """List preferences and facts; where one was contradicted, what it said before stands beside it.

    Example: pandora memory list --user example
    """
    from pandora_dagster.phases.steps.profile_consent import consent_status

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
    from pandora_dagster.contracts.user.user_memory import MemoryEntry
    from pandora_dagster.documents.timestamps import format_timestamp

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
    print_json({"user_id": owner, "key": key, "value": value, "kind": kind}) if as_json else print_line(
        f"{kind} {key} remembered for {owner}"
    )


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
    from pandora_dagster.documents.markdown import cell

    return " ⏎ ".join(cell(line) for line in value.splitlines()) if isinstance(value, str) else cell(value)
