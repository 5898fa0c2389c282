"""The command `digest`: a user's digest, a session's narrative."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import AsJson, User, app_of_existing_store
from pandora_dagster.cli.output import EXIT_USAGE, exit_with, print_json, print_line, print_note, print_rows, print_table
from pandora_dagster.language.word_forms import counted

if TYPE_CHECKING:
    from pandora_dagster.archive.level_runs import LevelContext
    from pandora_dagster.contracts.ids import UserId
    from pandora_dagster.contracts.user.summary_levels import SessionNarrative, UserDigest

_MAX_SESSIONS = 20
"""Sessions that a message names."""


def digest(
    context: typer.Context,
    user: User = "",
    session: Annotated[str, typer.Option("--session", help="Show the narrative of this session instead.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show the digest of a user's archived conversations.

    Archival writes a narrative for each session and a digest of these. Each item names the sessions that support it, each fact its turn;
    contradicted facts are listed with both dates. Later questions are not given this text.

    Example: pandora digest --user example

    Example: pandora digest --user example --session chair
    """
    from pandora_dagster.app.archive_service import open_levels
    from pandora_dagster.contracts.ids import SessionId

    with app_of_existing_store(context) as app:
        owner, ctx = app.owner(user), open_levels(app)
        if session:
            narrative = ctx.levels.narrative(owner, SessionId(session))
            if narrative is None:
                exit_with(EXIT_USAGE, f"session {session[:80]!r} of {owner}: no narrative: expected one of {_list_sessions(ctx, owner)}")
            _print_narrative(narrative, as_json=as_json)
            return
        user_digest = ctx.levels.digest(owner)
        if user_digest is None:
            hint = f"narratives: {_list_sessions(ctx, owner)}; create more with: pandora archive"
            exit_with(EXIT_USAGE, f"{owner}: no digest: expected one, made of narratives of archived conversations", hint)
        _print_digest(user_digest, list(ctx.levels.narratives(owner)), as_json=as_json)


def _list_sessions(ctx: "LevelContext", owner: "UserId") -> str:
    return ", ".join(ctx.levels.sessions(owner)[:_MAX_SESSIONS]) or "none"


def _print_narrative(narrative: "SessionNarrative", *, as_json: bool) -> None:
    if as_json:
        print_json({**narrative.model_dump(mode="json"), "text": narrative.text, "sha": narrative.sha})
        return
    print_line(narrative.text)
    rows = [(f"turn_{link.turn:06d}", link.at[:10], link.sha[:12], part.made.runtime) for part in narrative.parts for link in part.links]
    print_table(("Turn", "Day", "Entry sha256", "Runtime"), rows)
    left_out = sum(part.left_out for part in narrative.parts)
    left = f"{counted(left_out, 'statement')} of their entries left out"
    print_note(f"{counted(len(rows), 'turn')}, {narrative.tokens_before} to {narrative.tokens} tokens, {left}")


def _print_digest(digest: "UserDigest", narratives: "Sequence[SessionNarrative]", *, as_json: bool) -> None:
    from pandora_dagster.archive.digest_reading import HEADINGS, digest_items

    if as_json:
        print_json({**digest.model_dump(mode="json"), "sha": digest.sha})
        return
    for name, items in groupby(digest_items(digest, narratives), key=lambda item: item.field):
        print_line(f"{HEADINGS[name]}:")
        for item in items:
            print_line(f"- {item.text}" + (f"  [session {', '.join(item.sessions)}]" if item.sessions else ""))
    ended = {fact.id: (fact.superseded_at or "")[:10] for fact in digest.facts.facts}
    facts = [(f.fact, f.stated_at[:10], "" if f.is_current else f"until {ended[f.id]}", f"turn_{f.turn:06d}") for f in digest.facts.facts]
    if facts:
        print_table(("Stated", "Day", "No longer current", "Turn"), facts)
    print_rows(
        digest.narratives, {"Session": "session_id", "Parts": lambda link: len(link.parts), "Narrative sha256": lambda link: link.sha[:12]}
    )
    print_note(f"{counted(len(digest.narratives), 'narrative')}, {digest.tokens_before} to {digest.tokens} tokens")
