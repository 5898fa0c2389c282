"""The command that searches what was said: one question, or a file of them."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pandora_dagster.cli.app_context import app_of_existing_store
from pandora_dagster.cli.output import EXIT_WRONG, exit_with, print_json, print_line, print_note

if TYPE_CHECKING:
    from pandora_dagster.retrieval.messages.search_results import SearchResults

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

    Days that the query names (yesterday, last week, on 29 October) are counted from today. Each line of --jsonl gives one line, in
    order; one that can not be read gives {"line": its number, "error": why}, the others are answered, and the exit code is 2.

    Example: pandora search "Which desk did we order?" --user example
    """
    if jsonl is not None and query:
        exit_with(EXIT_WRONG, "search: a query and --jsonl: expected one of them")
    if jsonl is None and not query.strip():
        exit_with(EXIT_WRONG, "search: the query is empty: expected what to look for", 'pandora search "Which desk did we order?"')
    asked = [_Question(user, query)] if jsonl is None else _questions(jsonl)
    filters = {"session": session, "since": since, "until": until, "intent": intent, "topic": topic, "state": state}
    with app_of_existing_store(context) as app:
        for one in asked:
            if one.fault:
                print_note(f"pandora: {jsonl}:{one.line}: {one.fault}")
                print_line(json.dumps({"line": one.line, "error": one.fault}, ensure_ascii=False))
                continue
            found = app.search(one.query, user=one.user, budget_tokens=budget_tokens, **filters)
            if found.least_tokens:
                where = f"{jsonl}:{one.line}: " if jsonl is not None else ""
                print_note(
                    f"pandora: {where}--budget-tokens {budget_tokens}: no room for the best hit: expected at least {found.least_tokens}"
                )
            for notice in () if found.results or found.least_tokens else app.unmatched_filters(one.user, filters):
                print_note(f"pandora: {notice}")
            if jsonl is not None:
                print_line(json.dumps(_as_object(found), ensure_ascii=False))
            elif as_json:
                print_json(_as_object(found))
            else:
                _print_results(found)
    if any(one.fault for one in asked):
        raise typer.Exit(EXIT_WRONG)


@dataclass(frozen=True, slots=True)
class _Question:
    """A question and whose messages it is put to; of a line that can not be read, its number and why."""

    user: str = ""
    query: str = ""
    line: int = 0
    fault: str = ""


def _print_results(found: "SearchResults") -> None:
    if not found.results:
        print_note("nothing was shown" if found.least_tokens else "nothing was found")
        return
    print_line(found.text)
    print_note(f"{len(found.results)} messages, {found.tokens} tokens; the best is in {found.results[0].turn_id}")


def _as_object(found: "SearchResults") -> dict[str, Any]:
    return {"query": found.query, "tokens": found.tokens, "results": [asdict(r) for r in found.results]}


def _questions(jsonl: Path) -> list[_Question]:
    if not jsonl.is_file():
        exit_with(EXIT_WRONG, f'{jsonl}: not a file; expected JSON lines with "user_id" and "query"')
    return [_question(line, number) for number, line in enumerate(jsonl.read_bytes().splitlines(), 1) if line.strip()]


def _question(line: bytes, number: int) -> _Question:
    from pandora_dagster.contracts.ids import user_id
    from pandora_dagster.errors import BadIdError

    try:
        value: Any = json.loads(line)
        user, query = value["user_id"], value["query"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return _Question(line=number, fault='expected an object with "user_id" and "query"')
    if not isinstance(user, str) or not isinstance(query, str):
        return _Question(line=number, fault="user_id and query: expected strings")
    if not query.strip():
        return _Question(line=number, fault="query: empty: expected what to look for")
    try:
        return _Question(user_id(user), query, number)
    except BadIdError as error:
        return _Question(line=number, fault=str(error))
