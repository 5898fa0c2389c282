"""The command that shows what archived conversations came to: a person's digest, a session's narrative."""

from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.opened import stored
from pandora_dagster.cli.output import EXIT_WRONG, note, say, say_json, say_table, stop
from pandora_dagster.cli.sources import whose

if TYPE_CHECKING:
    from pandora_dagster.contracts.ids import UserId
    from pandora_dagster.contracts.levels import SessionNarrative, UserDigest
    from pandora_dagster.phases.levels import LevelDesk

_HEADINGS = {
    "key_decisions": "Decided",
    "tools_used": "Tools",
    "errors_encountered": "Errors",
    "open_questions": "Open",
}


def register(app: typer.Typer) -> None:
    app.command("digest")(digest)


def digest(
    context: typer.Context,
    user: Annotated[str, typer.Option("--user", "-u", help="Whose it is; default PANDORA_USER.")] = "",
    session: Annotated[str, typer.Option("--session", help="The narrative of this session instead.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Show what a person's archived conversations came to, with every turn that it was made from.

    Made after archival: a narrative for each session, and of these a digest. A fact that a later one contradicts stays, with both
    dates. Nothing of it is offered to a later question.

    Example: pandora digest --user example

    Example: pandora digest --user example --session chair
    """
    from pandora_dagster.contracts.ids import SessionId
    from pandora_dagster.wiring import open_levels

    with stored(context) as house:
        owner, desk = whose(house, user), open_levels(house)
        if session:
            narrative = desk.levels.narrative(owner, SessionId(session))
            if narrative is None:
                stop(EXIT_WRONG, f"session {session[:80]!r} of {owner}: no narrative: expected one of {_sessions(desk, owner)}")
            _tell_narrative(narrative, as_json=as_json)
            return
        found = desk.levels.digest(owner)
        if found is None:
            hint = f"narratives so far: {_sessions(desk, owner)}; more come with: pandora archive"
            stop(EXIT_WRONG, f"{owner}: no digest: expected one, made of narratives of archived conversations", hint)
        _tell_digest(found, as_json=as_json)


def _sessions(desk: "LevelDesk", owner: "UserId") -> str:
    return ", ".join(desk.levels.sessions(owner)[:20]) or "none"


def _tell_narrative(narrative: "SessionNarrative", *, as_json: bool) -> None:
    if as_json:
        say_json({**narrative.model_dump(mode="json"), "text": narrative.text, "sha": narrative.sha})
        return
    say(narrative.text)
    rows = [(f"turn_{link.turn:06d}", link.at[:10], link.sha[:12], part.made.runtime) for part in narrative.parts for link in part.links]
    say_table(("Turn", "Day", "Entry sha256", "Runtime"), rows)
    note(f"{len(rows)} turns, {narrative.tokens_before} to {narrative.tokens} tokens")


def _tell_digest(found: "UserDigest", *, as_json: bool) -> None:
    if as_json:
        say_json({**found.model_dump(mode="json"), "sha": found.sha})
        return
    if found.fields.progress_toward_goal:
        say(f"So far: {found.fields.progress_toward_goal}")
    for name, heading in _HEADINGS.items():
        if items := getattr(found.fields, name):
            say(f"{heading}:")
            for item in items:
                say(f"- {item}")
    ended = {fact.id: (fact.superseded_at or "")[:10] for fact in found.facts.facts}
    facts = [(f.fact, f.stated_at[:10], "" if f.current else f"until {ended[f.id]}", f"turn_{f.turn:06d}") for f in found.facts.facts]
    if facts:
        say_table(("Stated", "Day", "No longer current", "Turn"), facts)
    say_table(("Session", "Parts", "Narrative sha256"), [(link.session_id, len(link.parts), link.sha[:12]) for link in found.narratives])
    note(f"{len(found.narratives)} narratives, {found.tokens_before} to {found.tokens} tokens")
