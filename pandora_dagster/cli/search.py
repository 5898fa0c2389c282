"""The command that searches what was said: one question, or a file of them."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pandora_dagster.cli.opened import stored
from pandora_dagster.cli.output import EXIT_WRONG, note, say, say_json, stop

if TYPE_CHECKING:
    from pandora_dagster.selection.search_results import SearchResults

BUDGET_TOKENS = 1_000


def register(app: typer.Typer) -> None:
    app.command("search")(search)


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What to look for.")] = "",
    user: Annotated[str, typer.Option("--user", "-u", help="Whose messages; default PANDORA_USER.")] = "",
    budget_tokens: Annotated[int, typer.Option("--budget-tokens", help="The found texts together stay within it.", min=1)] = BUDGET_TOKENS,
    session: Annotated[str, typer.Option("--session", "-s", help="Only this session.")] = "",
    since: Annotated[str, typer.Option(help="Only turns from this ISO time on, e.g. 2026-01-04.")] = "",
    until: Annotated[str, typer.Option(help="Only turns before this ISO time.")] = "",
    intent: Annotated[str, typer.Option(help="Only turns of this intent.")] = "",
    topic: Annotated[str, typer.Option(help="Only turns with this topic.")] = "",
    state: Annotated[str, typer.Option(help="Only turns in this state.")] = "",
    jsonl: Annotated[
        Path | None, typer.Option("--jsonl", help='A file of {"user_id": ..., "query": ...}; answers one object a line.')
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Find what was said, packed into a token budget: best first with --json, else in the order in which it was said.

    Example: pandora search "Which desk did we order?" --user example
    """
    asked = _questions(jsonl, query)
    filters = {"session": session, "since": since, "until": until, "intent": intent, "topic": topic, "state": state}
    with stored(context) as house:
        for who, words in asked:
            found = house.search(words, user=who or user, budget_tokens=budget_tokens, **filters)
            if jsonl is not None:
                say(json.dumps(_as_object(found), ensure_ascii=False))
            elif as_json:
                say_json(_as_object(found))
            else:
                _shown(found)


def _shown(found: "SearchResults") -> None:
    if not found.results:
        note("nothing was found")
        return
    say(found.text)
    note(f"{len(found.results)} messages, {found.tokens} tokens; the best is in {found.results[0].turn_id}")


def _as_object(found: "SearchResults") -> dict[str, Any]:
    return {"query": found.query, "tokens": found.tokens, "results": [asdict(r) for r in found.results]}


def _questions(jsonl: Path | None, query: str) -> list[tuple[str, str]]:
    if jsonl is None:
        return [("", query)]
    if not jsonl.is_file():
        stop(EXIT_WRONG, f'{jsonl}: not a file; expected JSON lines with "user_id" and "query"')
    lines = jsonl.read_bytes().splitlines()
    return [_question(line, f"{jsonl}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def _question(line: bytes, where: str) -> tuple[str, str]:
    try:
        value: Any = json.loads(line)
        user, query = value["user_id"], value["query"]
    except (ValueError, KeyError, TypeError, RecursionError):
        stop(EXIT_WRONG, f'{where}: expected an object with "user_id" and "query"')
    if not isinstance(user, str) or not isinstance(query, str) or not user:
        stop(EXIT_WRONG, f"{where}: user_id and query: expected strings, a user's id first")
    return user, query
