"""The commands `research run` and `research topics`: a question to claims with verbatim quotes, and what is stored by topic."""

from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import AsJson, User, app_of, app_of_existing_store, settings_of
from pandora_dagster.cli.documents.text_input import read_bytes
from pandora_dagster.cli.documents.visit_commands import HostsFile
from pandora_dagster.cli.output import (
    EXIT_FAILED,
    EXIT_USAGE,
    exit_with,
    print_json,
    print_json_line,
    print_markdown,
    print_note,
    print_rows,
)
from pandora_dagster.contracts.web.research_depth import Depth

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.app.web.research_service import Researcher


def run_research(
    context: typer.Context,
    question: Annotated[str, typer.Argument(help="What is to be found out.")] = "",
    provider: Annotated[
        list[str] | None,
        typer.Option("--provider", help="searxng=URL, folder=DIR or recorded=FILE; may be repeated; default PANDORA_SEARCH."),
    ] = None,
    depth: Annotated[Depth, typer.Option("--depth", help="How many pages are read: 3, 8 or 20.")] = Depth.STANDARD,
    budget_pages: Annotated[int, typer.Option("--budget-pages", min=0, max=200, help="Pages to read, in place of --depth.")] = 0,
    jsonl: Annotated[str, typer.Option("--jsonl", help='A file of JSON lines such as {"id": "q1", "question": "..."}; - for stdin.')] = "",
    hosts: HostsFile = None,
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Answer a question from the web, with verbatim quotes.

    Searches, reads pages, and tells what they say; each claim has its quote and the address of its page.

    The providers of PANDORA_SEARCH search, or those of --provider in their place. Off unless PANDORA_WEB=on or --hosts is given, or every
    provider is a folder of documents.
    Recipes decide: what is needed, the queries, the pages, what they say, when to stop.
    The embedded runtime plays them by words, fields and values, and what needs a judgement ends as `not found`; --runtime sglang asks the
    models of the server. A run that was cut off goes on without visiting again. --depth quick makes few calls.
    What is found is stored as cached research, and turns use it while it is fresh: prices for hours, other values for days.

    --jsonl prints one line for each question: id, outcome (answered, contradiction told, not found, needs a person) and claims, or the
    reason as failed.

    Example: pandora research run "Arc 60 weight?" --provider folder=documents
    """
    from pandora_dagster.app.web.research_service import Researcher, checked_question, open_providers
    from pandora_dagster.app.web.screenshot_reader import open_screenshot_reader
    from pandora_dagster.app.web.web_service import open_visit_store
    from pandora_dagster.app.web.web_tools import named_providers
    from pandora_dagster.research.research_report import research_report, run_fields
    from pandora_dagster.research.research_topics import RUN_COMMAND

    if bool(question) == bool(jsonl):
        exit_with(EXIT_USAGE, "research run: expected either QUESTION or --jsonl")
    settings = settings_of(context)
    with app_of(context) as app:
        owner, deps = app.owner(user), app.dependencies
        named = named_providers(settings, provider or (), is_web_open=hosts is not None)
        providers = open_providers(settings, named, hosts, deps.clock)
        visits = open_visit_store(app, owner, by=RUN_COMMAND, only_usable=True)
        eyes = open_screenshot_reader(app)
        researcher = Researcher(settings, owner, providers, hosts, visits, depth, budget_pages, deps.clock, deps.execution, eyes)
        if jsonl:
            _answer_lines(researcher, app, jsonl)
            return
        run = app.run(researcher.research(checked_question(question), print_note))
    if as_json:
        print_json(run_fields(run))
    else:
        print_markdown(research_report(run))


def topics_research(context: typer.Context, user: User = "", as_json: AsJson = False) -> None:
    """List the topics of cached research.

    Shows what a refresh would do, and the newest record of each topic: its question, its claims and how many of them have the words of a
    stored page, when it expires.

    The schedule `nightly_research_refresh` of Dagster researches topics of PANDORA_USER again that expire within 24 hours. It is off unless
    PANDORA_RESEARCH_REFRESH is `all` or names topics; PANDORA_RESEARCH_REFRESH_PAGES bounds the pages of one refresh.

    Example: pandora research topics --user example
    """
    from pandora_dagster.app.web.topic_service import TopicService
    from pandora_dagster.language.word_forms import counted
    from pandora_dagster.research.research_topics import due_topics, topic_fields

    with app_of_existing_store(context) as app:
        service = TopicService(app, app.owner(user))
        refusal, topics = service.refusal, service.topics()
    rows = [topic_fields(row, refusal) for row in topics]
    columns = {"Topic": "topic", "Question": "question", "Records": "records", "Claims": "claims", "Quotes": "quotes"}
    columns |= {"Quality": "quality_score", "Freshness": "freshness_score", "Expires": "expires_at", "Refresh": "refresh"}
    print_rows(rows, columns, as_json=as_json, empty="no research is cached")
    pages = service.app.settings.research_refresh_pages
    print_note(refusal or f"the next refresh researches {counted(len(due_topics(topics)), 'topic')} again, with at most {pages} pages")


def _answer_lines(researcher: "Researcher", app: "App", jsonl: str) -> None:
    from pandora_dagster.app.web.research_service import parse_questions
    from pandora_dagster.errors import PandoraError
    from pandora_dagster.research.research_report import result_fields

    requests = parse_questions(read_bytes(jsonl), where=jsonl)
    failures = 0
    for number, request in enumerate(requests, 1):
        fault = request.fault
        if not fault:
            print_note(f"{number}/{len(requests)} {request.question}")
            try:
                run = app.run(researcher.research(request.question, lambda _: None))
                print_json_line({"id": request.id, **result_fields(run)})
            except PandoraError as error:
                fault = str(error)
        if fault:
            failures += 1
            print_json_line({"id": request.id, "failed": fault})
    if failures:
        exit_with(EXIT_FAILED, f"{failures} of {len(requests)} questions failed")
