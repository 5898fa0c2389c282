"""What the Coordinator's tools researched and visited: kept with its turn, and stored for later turns once the turn is saved."""

import re
from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ValidationError

from pandora_dagster.contracts.sources import Provenance, Research, Visit
from pandora_dagster.contracts.tools import ToolOutcome
from pandora_dagster.errors import DocumentError
from pandora_dagster.phases.desk import Answer, Desk
from pandora_dagster.text.dates import stamp
from pandora_dagster.text.research_page import research_page

_RESEARCH = re.compile(r"research(?:_\d+)?\.json")
_VISIT = re.compile(r"webpage_cache/[^/]+/visit\.json")


def found_files(desk: Desk, outcomes: Iterable[tuple[str, ToolOutcome]]) -> dict[str, str]:
    """The turn's documents of what each (tool, outcome) found: `research.json` with its rendering, one `visit.json` a page."""
    now, turn = stamp(desk.kit.clock().replace(microsecond=0)), desk.turn.key.number
    files: dict[str, str] = {}
    count = 0
    for tool, outcome in outcomes:
        origin = {"provenance": Provenance(added_at=now, by=tool, source_turn=turn)}
        for research in outcome.research:
            count += 1
            stem = "research" if count == 1 else f"research_{count}"
            kept = research.model_copy(update=origin)
            files |= {f"{stem}.json": _written(kept), f"{stem}.md": research_page(kept)}
        for visit in outcome.visits:
            files[f"webpage_cache/{visit.visit_id}/visit.json"] = _written(visit.model_copy(update=origin))
    return files


def store_found(desk: Desk) -> int:
    """Store what the saved turn found, pages before the research that names them; the number of records. Done again, it changes nothing."""
    user, sources = desk.turn.key.user, desk.kit.sources
    visits = [_read(desk, name, Visit) for name in _named(desk.turn.files, _VISIT)]
    research = [_read(desk, name, Research) for name in _named(desk.turn.files, _RESEARCH)]
    for visit in visits:
        sources.put_visit(user, visit)
    for record in research:
        sources.put_research(user, record)
    return len(visits) + len(research)


def _named(files: Mapping[str, str], shape: re.Pattern[str]) -> list[str]:
    return [name for name in files if shape.fullmatch(name)]


def _read(desk: Desk, name: str, shape: type[Answer]) -> Answer:
    try:
        return shape.model_validate_json(desk.file(name))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise DocumentError(f"{desk.turn.key}: {name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _written(record: BaseModel) -> str:
    return record.model_dump_json(exclude_none=True, indent=2) + "\n"
