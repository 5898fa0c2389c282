"""What the Coordinator's tools researched and visited: kept with its turn, and stored for later turns once the turn is saved."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256

from pydantic import BaseModel

from pandora_dagster.contracts.ports.tool import KeepsTurnFiles, ToolArtifact, ToolOutcome
from pandora_dagster.contracts.user.sources import Provenance, Research, Visit
from pandora_dagster.phases.core.phase_context import PhaseContext
from pandora_dagster.phases.gather.research_pages import research_page

_RESEARCH = re.compile(r"research(?:_\d+)?\.json")
_VISIT = re.compile(r"webpage_cache/[^/]+/visit\.json")


def finding_files(ctx: PhaseContext, outcomes: Iterable[tuple[str, ToolOutcome]]) -> dict[str, str]:
    """The turn's documents of what each (tool, outcome) found: `research.json` with its rendering, one `visit.json` a page."""
    now, turn = ctx.deps.now, ctx.turn.key.number
    files: dict[str, str] = {}
    count = 0
    for tool, outcome in outcomes:
        origin = {"provenance": Provenance(added_at=now, by=tool, source_turn=turn)}
        for research in outcome.research:
            count += 1
            stem = "research" if count == 1 else f"research_{count}"
            stored = research.model_copy(update=origin)
            files |= {f"{stem}.json": _finding_json(stored), f"{stem}.md": research_page(stored)}
        for visit in outcome.visits:
            is_of_turn = visit.provenance is not None and visit.provenance.source_turn == turn
            files[f"webpage_cache/{visit.visit_id}/visit.json"] = _finding_json(visit if is_of_turn else visit.model_copy(update=origin))
    return files


def artifact_files(result: int, tool: str, artifacts: Iterable[ToolArtifact]) -> dict[str, str]:
    """The turn's documents for the artifacts of one result, numbered within it, so that they replace no other document.

    The documents of a turn are text: the bytes are in base64, with media type and sha256.
    """
    files: dict[str, str] = {}
    for number, artifact in enumerate(artifacts, 1):
        fields = {
            "name": artifact.name,
            "media_type": artifact.media_type,
            "tool": tool,
            "sha256": sha256(artifact.data).hexdigest(),
            "base64": b64encode(artifact.data).decode(),
        }
        files[f"artifact_{result}_{number}_{artifact.name.replace('.', '_')}.json"] = json.dumps(fields, indent=1) + "\n"
    return files


def store_findings(ctx: PhaseContext) -> int:
    """Store what the saved turn found, pages before the research that names them; the number of records. Done again, it changes nothing."""
    user, sources = ctx.turn.key.user, ctx.deps.sources
    visits = [ctx.read(name, Visit) for name in _file_names(ctx.turn.files, _VISIT)]
    research = [ctx.read(name, Research) for name in _file_names(ctx.turn.files, _RESEARCH)]
    for record in (*visits, *research):
        sources.put(user, record)
    for tool in ctx.deps.tools.values():
        if isinstance(tool, KeepsTurnFiles):
            tool.release(ctx.turn.key)
    return len(visits) + len(research)


def _file_names(files: Mapping[str, str], shape: re.Pattern[str]) -> list[str]:
    return [name for name in files if shape.fullmatch(name)]


def _finding_json(record: BaseModel) -> str:
    return record.model_dump_json(exclude_none=True, indent=2) + "\n"
