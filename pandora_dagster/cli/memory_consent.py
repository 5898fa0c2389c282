"""Commands for what is remembered of a person across sessions: consent, erase, facts."""

from typing import Annotated

import typer

from pandora_dagster.cli.opened import app_of, app_of_existing_store
from pandora_dagster.cli.output import EXIT_WRONG, print_note, print_line, print_json, print_table, exit_with

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
    from pandora_dagster.phases.consent import give_consent, consent_status, withdraw_consent

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
    from pandora_dagster.phases.consent import erase_facts

    with app_of_existing_store(context) as app:
        who = user_id(user) if user else app.settings.user
        profile, of_sessions = erase_facts(app.dependencies, who, sessions=sessions)
    if as_json:
        print_json({"user_id": who, "profile_facts": profile, "session_facts": of_sessions})
        return
    print_line(f"{who}: {plural(profile, 'fact')} of the profile erased" + (f", {plural(of_sessions, 'fact')} of sessions" if sessions else ""))
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
