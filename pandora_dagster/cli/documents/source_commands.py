"""Commands for what the Context Gatherer finds beside turns: cached research and visited pages."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from pandora_dagster.cli.app_context import app_of, app_of_existing_store
from pandora_dagster.cli.output import print_json, print_line, print_markdown, print_note, print_table
from pandora_dagster.errors import InputError

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.contracts.ids import UserId
    from pandora_dagster.contracts.user.sources import Research, Visit

research = typer.Typer(
    name="research", help="Cached research: what was found out, how sure, until when.", no_args_is_help=True, rich_markup_mode=None
)
visit = typer.Typer(name="visit", help="Visited pages: what was read from them.", no_args_is_help=True, rich_markup_mode=None)
User = Annotated[str, typer.Option("--user", "-u", help="Whose it is; default PANDORA_USER.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Record = TypeVar("Record", bound="Research | Visit")


def register(app: typer.Typer) -> None:
    app.add_typer(research)
    app.add_typer(visit)


@research.command("add")
def add_research(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON file with one record.")],
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Store cached research, checked field by field.

    A record of the same topic and cache key is replaced. The newest record of a topic is the one that turns are given.

    \b
    Required fields:
      topic          category.subcategory, such as "commerce.laptop"
      cache_key      a name of the search, such as "nvidia_laptop_budget"
      created_at     a time, such as "2026-01-04T13:15:00Z"
      expires_at     a later time
      quality_score  0 to 1
      summary        a text, such as "Found 12 laptops from 5 vendors"
    Optional fields:
      claims         [{"claim": "LOQ 15 @ $697", "source": "bestbuy.com", "confidence": 0.9}]
      webpage_cache  visit ids, such as ["visit_abc123"]

    A complete sample stands in docs/sources.md.

    Example: pandora research add laptops.json --user example
    """
    from pandora_dagster.contracts.user.sources import Research

    with app_of(context) as app:
        owner = user_of(app, user)
        record = _record(file, Research, by="pandora research add", now=_now(app))
        app.dependencies.sources.put_research(owner, record)
        _warn_future("created_at", record.created_at, app)
        known = {row.visit_id for row in app.dependencies.sources.visit_rows(owner)}
    for missing in (v for v in record.webpage_cache if v not in known):
        print_note(f"{missing} is not stored yet: a turn that uses this research stops without it; add it with: pandora visit add FILE")
    _print_stored(record.logical_id, owner, as_json)


@research.command("list")
def list_research(context: typer.Context, user: User = "", as_json: AsJson = False) -> None:
    """List cached research, newest first, with its age and how fresh it is.

    Example: pandora research list --user example
    """
    from pandora_dagster.retrieval.freshness import age_hours, freshness_score, is_expired

    with app_of_existing_store(context) as app:
        now = app.dependencies.clock()
        rows = [
            {
                **asdict(row),
                "age_hours": age_hours(row.created_at, now),
                "freshness_score": freshness_score(row.created_at, row.expires_at, now),
                "expired": is_expired(row.expires_at, now),
            }
            for row in app.dependencies.sources.research_rows(user_of(app, user))
        ]
    if as_json:
        print_json(rows)
        return
    columns = ("Topic", "Cache key", "Quality", "Age (h)", "Freshness", "Expires", "Turn")
    names = ("topic", "cache_key", "quality_score", "age_hours", "freshness_score", "expires_at", "source_turn")
    print_table(columns, [[row[name] if row[name] is not None else "" for name in names] for row in rows])


@research.command("show")
def show_research(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(help="A topic as `pandora research list` gives it.")],
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Show the newest cached research of a topic.

    Example: pandora research show commerce.laptop --user example
    """
    from pandora_dagster.documents.research_pages import research_page

    with app_of_existing_store(context) as app:
        found = app.dependencies.sources.research(user_of(app, user), topic)
    print_json(json.loads(found.model_dump_json(exclude_none=True))) if as_json else print_markdown(research_page(found))


@visit.command("add")
def add_visit(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A JSON file with one record.")],
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Store what was read from a visited page, checked field by field.

    A record of the same visit id is replaced.

    \b
    Required fields:
      visit_id            visit_ and letters or digits, such as "visit_abc123"
      url                 an http or https address
      visited_at          a time, such as "2026-01-04T13:20:00Z"
      page_type           one line, such as "product"
      extracted_data      an object, such as {"title": "LOQ 15", "price": "$697.00"}
      extraction_quality  0 to 1

    A complete sample stands in docs/sources.md.

    Example: pandora visit add loq15.json --user example
    """
    from pandora_dagster.contracts.user.sources import Visit

    with app_of(context) as app:
        owner = user_of(app, user)
        record = _record(file, Visit, by="pandora visit add", now=_now(app))
        app.dependencies.sources.put_visit(owner, record)
        _warn_future("visited_at", record.visited_at, app)
    _print_stored(record.logical_id, owner, as_json)


@visit.command("list")
def list_visits(context: typer.Context, user: User = "", as_json: AsJson = False) -> None:
    """List visited pages, newest first.

    Example: pandora visit list --user example
    """
    from pandora_dagster.retrieval.freshness import age_hours

    with app_of_existing_store(context) as app:
        now = app.dependencies.clock()
        rows = [
            {**asdict(row), "age_hours": age_hours(row.visited_at, now)} for row in app.dependencies.sources.visit_rows(user_of(app, user))
        ]
    if as_json:
        print_json(rows)
        return
    print_table(("Visit", "Page type", "Age (h)", "URL"), [(r["visit_id"], r["page_type"], r["age_hours"], r["url"]) for r in rows])


@visit.command("show")
def show_visit(
    context: typer.Context,
    visit_id: Annotated[str, typer.Argument(help="An id as `pandora visit list` gives it.")],
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Show a visited page.

    Example: pandora visit show visit_abc123 --user example
    """
    from pandora_dagster.documents.research_pages import visit_page

    with app_of_existing_store(context) as app:
        found = app.dependencies.sources.visit(user_of(app, user), visit_id)
    print_json(json.loads(found.model_dump_json(exclude_none=True))) if as_json else print_markdown(visit_page(found))


def user_of(app: "App", user: str) -> "UserId":
    """The user that a command names, else PANDORA_USER; raises BadIdError."""
    from pandora_dagster.contracts.ids import user_id

    return user_id(user) if user else app.settings.user


def _now(app: "App") -> str:
    from pandora_dagster.documents.timestamps import format_timestamp

    return format_timestamp(app.dependencies.clock().replace(microsecond=0))


def _warn_future(field: str, time: str, app: "App") -> None:
    from pandora_dagster.retrieval.freshness import hours_left

    if hours_left(time, app.dependencies.clock()) > 0:
        print_note(f"{field} {time} lies in the future: until then the record counts as new, and stands before those made meanwhile")


def _record(file: Path, shape: type[Record], *, by: str, now: str) -> Record:
    """The record in a person's file, with where it comes from; raises InputError or DocumentError with every fault."""
    from pandora_dagster.contracts.user.sources import Provenance
    from pandora_dagster.stores.disk.files import read_text
    from pandora_dagster.stores.user.source_files import MAX_RECORD_BYTES, read_record

    if not file.is_file():
        raise InputError(f"{file}: {'not a file' if file.exists() else 'no such file'}: expected a JSON file with one record")
    found = read_record(read_text(file, limit=MAX_RECORD_BYTES), shape, where=str(file))
    if found.provenance is not None:
        raise InputError(f"{file}: provenance: expected none: the store notes who added a record, and when")
    return found.model_copy(update={"provenance": Provenance(added_at=now, by=by)})


def _print_stored(logical_id: str, user: str, as_json: bool) -> None:
    print_json({"user_id": user, "id": logical_id}) if as_json else print_line(f"{logical_id} stored for {user}")
