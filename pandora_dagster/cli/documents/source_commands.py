"""Commands for sources beside turns: cached research and visited pages."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from pandora_dagster.cli.app_context import AsJson, User, app_of, app_of_existing_store
from pandora_dagster.cli.output import print_json, print_line, print_markdown, print_note, print_rows
from pandora_dagster.errors import InputError

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.contracts.user.sources import Research, Visit

RecordFile = Annotated[Path, typer.Argument(help="A JSON file with one record.")]
Record = TypeVar("Record", bound="Research | Visit")


def add_research(context: typer.Context, file: RecordFile, user: User = "", as_json: AsJson = False) -> None:
    """Store cached research, checked field by field.

    It replaces a record of the same topic and cache key. Turns are given the newest record of a topic.

    \b
    Required fields:
      topic          category.subcategory, such as "commerce.laptop"
      cache_key      a name of the search, such as "nvidia_laptop_budget"
      created_at     a time, such as "2026-01-04T13:15:00Z"
      expires_at     a later time
      quality_score  0 to 1
      summary        a text, such as "Found 12 laptops from 5 vendors"
    Optional fields:
      claims         [{"claim": "LOQ 15 @ $697", "source": "bestbuy.com",
                       "confidence": 0.9}]
      webpage_cache  visit ids, such as ["visit_abc123"]
      contradicted   true where claims of sites cannot both hold

    docs/guides/add-sources.md has a complete sample.

    Example: pandora research add laptops.json --user example
    """
    from pandora_dagster.contracts.user.sources import Research

    with app_of(context) as app:
        owner = app.owner(user)
        record = _read_record(file, Research, "pandora research add", app)
        app.dependencies.sources.put(owner, record)
        _warn_future("created_at", record.created_at, app)
        stored_ids = {row.visit_id for row in app.dependencies.sources.visit_rows(owner)}
    for visit_id in (visit_id for visit_id in record.webpage_cache if visit_id not in stored_ids):
        print_note(f"{visit_id} is not stored yet: a turn that uses this research stops without it; add it with: pandora visit add FILE")
    _print_stored(record.logical_id, owner, as_json)


def list_research(context: typer.Context, user: User = "", as_json: AsJson = False) -> None:
    """List cached research, newest first.

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
            for row in app.dependencies.sources.research_rows(app.owner(user))
        ]
    columns = {"Topic": "topic", "Cache key": "cache_key", "Quality": "quality_score", "Age (h)": "age_hours"}
    print_rows(
        rows,
        {**columns, "Freshness": "freshness_score", "Expires": "expires_at", "Turn": "source_turn"},
        as_json=as_json,
        empty="no research is cached; add some with: pandora research add FILE",
    )


def show_research(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(help="A topic that `pandora research list` shows.")],
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Show the newest cached research of a topic.

    Example: pandora research show commerce.laptop --user example
    """
    from pandora_dagster.phases.gather.research_pages import research_page

    with app_of_existing_store(context) as app:
        record = app.dependencies.sources.research(app.owner(user), topic)
    _print_record(record, research_page(record), as_json)


def add_visit(context: typer.Context, file: RecordFile, user: User = "", as_json: AsJson = False) -> None:
    """Store a visited page, checked field by field.

    It replaces a record of the same visit id.

    \b
    Required fields:
      visit_id            visit_ and letters or digits, such as "visit_abc123"
      url                 an http or https address
      visited_at          a time, such as "2026-01-04T13:20:00Z"
      page_type           one line, such as "product"
      extracted_data      an object, such as {"title": "LOQ 15"}
      extraction_quality  0 to 1

    docs/guides/add-sources.md has a complete sample.

    Example: pandora visit add loq15.json --user example
    """
    from pandora_dagster.contracts.user.sources import Visit

    with app_of(context) as app:
        owner = app.owner(user)
        record = _read_record(file, Visit, "pandora visit add", app)
        app.dependencies.sources.put(owner, record)
        _warn_future("visited_at", record.visited_at, app)
    _print_stored(record.logical_id, owner, as_json)


def list_visits(context: typer.Context, user: User = "", as_json: AsJson = False) -> None:
    """List visited pages, newest first.

    Example: pandora visit list --user example
    """
    from pandora_dagster.retrieval.freshness import age_hours

    with app_of_existing_store(context) as app:
        now, stored = app.dependencies.clock(), app.dependencies.sources.visit_rows(app.owner(user))
    rows = [{**asdict(row), "age_hours": age_hours(row.visited_at, now)} for row in stored]
    print_rows(
        rows,
        {"Visit": "visit_id", "Page type": "page_type", "Age (h)": "age_hours", "URL": "url"},
        as_json=as_json,
        empty="no page is stored; add one with: pandora visit add FILE",
    )


def _read_record(file: Path, shape: type[Record], by: str, app: "App") -> Record:
    """The record of a user's file, with its provenance. Raises InputError or DocumentError with every fault."""
    from pandora_dagster.app.adapters.store_adapters import read_source_record
    from pandora_dagster.contracts.user.sources import Provenance, Research

    if not file.is_file():
        raise InputError(f"{file}: {'not a file' if file.exists() else 'no such file'}: expected a JSON file with one record")
    record = read_source_record(file, shape)
    if record.provenance is not None:
        raise InputError(f"{file}: provenance: expected none: the store adds who stored a record, and when")
    if not isinstance(record, Research) and record.page is not None:
        raise InputError(f"{file}: page: expected none: `pandora visit read` adds it for a page that it read")
    now = app.dependencies.now
    return record.model_copy(update={"provenance": Provenance(added_at=now, by=by)})


def _warn_future(field: str, time: str, app: "App") -> None:
    from pandora_dagster.retrieval.freshness import hours_left

    if hours_left(time, app.dependencies.clock()) > 0:
        print_note(f"{field} {time} is in the future: until then the record counts as new and precedes records made in the meantime")


def _print_stored(logical_id: str, user: str, as_json: bool) -> None:
    print_json({"user_id": user, "id": logical_id}) if as_json else print_line(f"{logical_id} stored for {user}")


def _print_record(record: "Research | Visit", page: str, as_json: bool) -> None:
    print_json(record.model_dump(mode="json", exclude_none=True)) if as_json else print_markdown(page)
