"""The command `search`: one query over stored messages, or a file of queries."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pandora_dagster.cli.app_context import AsJson, User, app_of_existing_store
from pandora_dagster.cli.output import EXIT_USAGE, exit_with, fields_of, print_json, print_json_line, print_line, print_note
from pandora_dagster.language.word_forms import counted

if TYPE_CHECKING:
    from pandora_dagster.retrieval.messages.search_results import SearchResults

DEFAULT_TOKENS = 1_000
_MAX_NAMED_FIELDS = 10


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="The text to search for.")] = "",
    user: User = "",
    budget_tokens: Annotated[int, typer.Option("--budget-tokens", help="Token limit of all results together.", min=1)] = DEFAULT_TOKENS,
    session: Annotated[str, typer.Option("--session", "-s", help="Only this session.")] = "",
    since: Annotated[str, typer.Option(help="Only turns from this ISO time on, e.g. 2026-01-04.")] = "",
    until: Annotated[str, typer.Option(help="Only turns before this ISO time.")] = "",
    intent: Annotated[str, typer.Option(help="Only turns of this intent.")] = "",
    topic: Annotated[str, typer.Option(help="Only turns with this topic.")] = "",
    state: Annotated[str, typer.Option(help="Only turns in this state.")] = "",
    jsonl: Annotated[
        Path | None, typer.Option("--jsonl", help='A file with one {"user_id": ..., "query": ...} a line; prints one object a line.')
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Search stored messages within a token budget.

    Results are in the order of the conversation; with --json, the best is first. Days in the query (yesterday, last week, on 29 October)
    are relative to today. --jsonl prints one line for each line of the file, in order; an invalid line gives
    {"line": its number, "error": the reason}, and the exit code is then 2. Other fields than user_id and query are not used, and are named.

    Example: pandora search "Which desk did we order?" --user example
    """
    if jsonl is not None and query:
        exit_with(EXIT_USAGE, "search: a query and --jsonl: expected one of them")
    if jsonl is None and not query.strip():
        exit_with(EXIT_USAGE, "search: the query is empty: expected a text", 'pandora search "Which desk did we order?"')
    questions = [_Question(user, query)] if jsonl is None else _read_questions(jsonl)
    if unused := dict.fromkeys(name for question in questions for name in question.unused_fields):
        names = ", ".join(" ".join(name.split())[:80] for name in list(unused)[:_MAX_NAMED_FIELDS])
        print_note(f"pandora: {jsonl}: fields that are not used: {names}: expected user_id and query; filters are options of the command")
    filters = {"session": session, "since": since, "until": until, "intent": intent, "topic": topic, "state": state}
    with app_of_existing_store(context) as app:
        for question in questions:
            where = f"{jsonl}:{question.line}: " if jsonl is not None else ""
            if question.fault:
                print_note(f"pandora: {where}{question.fault}")
                print_json_line({"line": question.line, "error": question.fault})
                continue
            search_results = app.search.messages(question.query, user=question.user, budget_tokens=budget_tokens, **filters)
            if required := search_results.least_tokens:
                print_note(f"pandora: {where}--budget-tokens {budget_tokens}: too small for the best hit: expected at least {required}")
            elif not search_results.results:
                for notice in app.search.unmatched_filters(question.user, filters):
                    print_note(f"pandora: {notice}")
            if jsonl is not None:
                print_json_line(_results_object(search_results))
            elif as_json:
                print_json(_results_object(search_results))
            else:
                _print_results(search_results)
    if any(question.fault for question in questions):
        raise typer.Exit(EXIT_USAGE)


@dataclass(frozen=True, slots=True)
class _Question:
    """A query and its user; for an invalid line, the number of the line and the fault."""

    user: str = ""
    query: str = ""
    line: int = 0
    fault: str = ""
    unused_fields: tuple[str, ...] = ()


def _print_results(search_results: "SearchResults") -> None:
    if not search_results.results:
        print_note("no message fits" if search_results.least_tokens else "nothing was found")
        return
    print_line(search_results.text)
    messages, tokens = counted(len(search_results.results), "message"), counted(search_results.tokens, "token")
    print_note(f"{messages}, {tokens}; the best is in {search_results.results[0].turn_id}")


def _results_object(search_results: "SearchResults") -> dict[str, Any]:
    return fields_of(search_results, ("query", "tokens", "results"))


def _read_questions(jsonl: Path) -> list[_Question]:
    if not jsonl.is_file():
        exit_with(EXIT_USAGE, f'{jsonl}: not a file: expected JSON lines with "user_id" and "query"')
    return [_parse_question(line, number) for number, line in enumerate(jsonl.read_bytes().splitlines(), 1) if line.strip()]


def _parse_question(line: bytes, number: int) -> _Question:
    from pandora_dagster.contracts.ids import user_id
    from pandora_dagster.documents.plain_json import PlainDataError, parse_json_object
    from pandora_dagster.errors import BadIdError

    try:
        value = parse_json_object(line)
        user, query = value["user_id"], value["query"]
    except (PlainDataError, KeyError):
        return _Question(line=number, fault='expected an object with "user_id" and "query"')
    unused = tuple(name for name in value if name not in ("user_id", "query"))
    if not isinstance(user, str) or not isinstance(query, str):
        return _Question(line=number, fault="user_id and query: expected strings")
    if not query.strip():
        return _Question(line=number, fault="query: empty: expected a text")
    try:
        return _Question(user_id(user), query, number, unused_fields=unused)
    except BadIdError as error:
        return _Question(line=number, fault=str(error))
