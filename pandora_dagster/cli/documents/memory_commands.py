"""Commands for the stored preferences and facts of a user, and for the profile that the user consented to."""

import re
from typing import Annotated

import typer

from pandora_dagster.cli.app_context import AsJson, User, app_of, app_of_existing_store
from pandora_dagster.cli.output import EXIT_USAGE, exit_with, print_json, print_line, print_note, print_rows

KINDS = ("preference", "fact")
_MAX_VALUE_CHARACTERS = 2_000
_KEYED_MEMORY_NOTE = "preferences and facts under keys are not part of it: pandora memory list, pandora memory forget KEY"


def list_memory(context: typer.Context, user: User = "", as_json: AsJson = False) -> None:
    """List preferences and facts with their earlier values.

    Example: pandora memory list --user example
    """
    with app_of_existing_store(context) as app:
        owner = app.owner(user)
        entries, profile = app.dependencies.memory.entries(owner), app.dependencies.facts.profile(owner)
    if not as_json:
        state = f"{len(profile.facts)} more facts: pandora memory facts" if profile else "off (pandora memory consent)"
        print_note(f"profile of {owner}: {state}")
    print_rows(
        entries,
        {
            "Key": "key",
            "Value": lambda e: _on_one_line(e.value),
            "Kind": "kind",
            "Confidence": lambda e: f"{e.confidence:.2f}",
            "Turn": lambda e: e.source_turn or "",
            "Updated": "last_updated",
            "Until": "until",
            "Earlier": lambda e: "; ".join(f"{_on_one_line(o.value)} ({o.last_updated[:10]})" for o in e.earlier),
        },
        as_json=as_json,
        empty=f"no preferences or facts of {owner} under keys; add one with: pandora memory set KEY VALUE",
    )


def set_memory(
    context: typer.Context,
    key: Annotated[str, typer.Argument(help="A short name in lower-case letters, digits and '_', e.g. budget.")],
    value: Annotated[str, typer.Argument(help="The value to store.")],
    kind: Annotated[str, typer.Option(help="preference or fact.")] = "preference",
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Store a preference or a fact.

    An earlier value of the key is stored beside the new one, each with its date; the newest is current.

    Example: pandora memory set budget "$500-800" --user example
    """
    from pandora_dagster.contracts.user.user_memory import MemoryEntry

    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", key):
        exit_with(EXIT_USAGE, f"key {key[:80]!r}: expected up to 64 lower-case letters, digits and '_', beginning with a letter")
    if kind not in KINDS:
        exit_with(EXIT_USAGE, f"--kind {kind}: expected preference or fact")
    if not value.strip() or len(value) > _MAX_VALUE_CHARACTERS:
        exit_with(EXIT_USAGE, f"value of {len(value):,} characters: expected 1 to {_MAX_VALUE_CHARACTERS:,}")
    with app_of(context) as app:
        owner = app.owner(user)
        now = app.dependencies.now
        app.dependencies.memory.put(owner, MemoryEntry(key, value, 1.0, None, now, kind))
    if as_json:
        print_json({"user_id": owner, "key": key, "value": value, "kind": kind})
    else:
        print_line(f"{kind} {key} stored for {owner}")


def forget_memory(
    context: typer.Context,
    key: Annotated[str, typer.Argument(help="A key that `pandora memory list` shows.")],
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Delete a preference or fact with its earlier values.

    If the key has both, both are deleted. Turns are not changed: a later question may still find the value there.

    Example: pandora memory forget budget --user example
    """
    with app_of_existing_store(context) as app:
        owner = app.owner(user)
        kinds = [e.kind for e in app.dependencies.memory.entries(owner) if e.key == key]
        was_deleted = app.dependencies.memory.forget(owner, key)
    if not was_deleted:
        exit_with(EXIT_USAGE, f"key {key[:80]!r}: not in the memory of {owner}: expected one that `pandora memory list` shows")
    print_json({"user_id": owner, "forgotten": key}) if as_json else print_line(f"{' and '.join(kinds)} {key} deleted for {owner}")


def consent(
    context: typer.Context,
    action: Annotated[str, typer.Argument(help="on, off or show.")] = "show",
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Give, withdraw or show consent to a user profile.

    A profile holds facts that the user states, across sessions. It is off by default and holds only what is stated after the consent;
    withdrawal deletes it. Keys of `pandora memory list` are not part of it: `pandora memory forget KEY` deletes these.

    Example: pandora memory consent on --user example
    """
    from pandora_dagster.phases.steps.session_facts import give_consent

    if action not in ("on", "off", "show"):
        exit_with(EXIT_USAGE, f"consent {action}: expected on, off or show")
    with (app_of if action == "on" else app_of_existing_store)(context) as app:
        owner = app.owner(user)
        deleted = 0
        if action == "on":
            give_consent(app.dependencies, owner)
        elif action == "off":
            deleted = app.dependencies.facts.withdraw(owner)
        profile = app.dependencies.facts.profile(owner)
    since, count = (profile.consented_at, len(profile.facts)) if profile else ("", 0)
    if as_json:
        print_json({"user_id": owner, "consent": profile is not None, "since": since, "facts": count, "deleted": deleted})
        return
    if profile:
        print_line(f"{owner}: on since {since}: a profile of {_format_facts(count)} (pandora memory facts)")
    else:
        print_line(f"{owner}: off: no profile is stored across sessions" + (f"; {_format_facts(deleted)} deleted" if deleted else ""))
    print_note(_KEYED_MEMORY_NOTE)


def erase(
    context: typer.Context,
    user: User = "",
    sessions: Annotated[bool, typer.Option("--sessions", help="Also erase the facts of single sessions.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase the facts of the profile, and their audit.

    Consent does not change, and erased facts do not return. Turns and the keys of `pandora memory list` are not changed.

    Example: pandora memory erase --user example --sessions
    """
    from pandora_dagster.phases.steps.session_facts import erase_facts

    with app_of_existing_store(context) as app:
        owner = app.owner(user)
        profile_facts, session_facts = erase_facts(app.dependencies, owner, sessions=sessions)
    if as_json:
        print_json({"user_id": owner, "profile_facts": profile_facts, "session_facts": session_facts})
        return
    of_sessions_too = f", {_format_facts(session_facts)} of sessions" if sessions else ""
    print_line(f"{owner}: {_format_facts(profile_facts)} of the profile erased{of_sessions_too}")
    print_note(_KEYED_MEMORY_NOTE)


def facts(
    context: typer.Context,
    session: Annotated[str, typer.Option("--session", "-s", help="The facts of this session; default: of the profile.")] = "",
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """List the facts of the profile or of a session.

    Example: pandora memory facts --user example --session s1
    """
    from pandora_dagster.contracts.ids import session_id

    with app_of_existing_store(context) as app:
        owner = app.owner(user)
        ledger = app.dependencies.facts.session(owner, session_id(session)) if session else app.dependencies.facts.profile(owner)
    reason = "nothing was stated since consent was given" if ledger else "there is no consent (pandora memory consent on)"
    print_rows(
        ledger.facts if ledger else (),
        {
            "Fact": "id",
            "Category": "category",
            "Text": "fact",
            "Stated": lambda f: f.stated_at[:10],
            "Turn": "turn",
            "Current": lambda f: "yes" if f.is_current else f"until {f.superseded_at}",
        },
        as_json=as_json,
        empty=f"no facts of {f'session {session}' if session else f'{owner} across sessions: {reason}'}",
    )


def _format_facts(number: int) -> str:
    """`1 fact`, `2 facts`."""
    return f"{number} fact" + ("" if number == 1 else "s")


def _on_one_line(value: object) -> str:
    """A value for a table cell; the sign ⏎ marks the line ends of a value of several lines."""
    from pandora_dagster.documents.markdown import cell

    return " ⏎ ".join(cell(line) for line in value.splitlines()) if isinstance(value, str) else cell(value)
