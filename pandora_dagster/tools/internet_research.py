"""`internet.research`: a question to claims with verbatim quotes of pages of the web, within a turn.

Text of pages enters the turn as quoted data alone. What a page says chooses no tool, no query and no address.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.contracts.ports.tool import ToolOutcome, ToolPermission, ToolRun, ToolSpec
from pandora_dagster.contracts.user.sources import Research, Visit
from pandora_dagster.contracts.web.research_depth import Depth
from pandora_dagster.contracts.web.research_run import ResearchOutcome, ResearchRun, VisitStatus
from pandora_dagster.contracts.web.turn_research import TurnFindings, TurnQuestion, TurnResearcher
from pandora_dagster.documents.citations import escape_citations, escape_source_marks, page_address
from pandora_dagster.errors import PandoraError
from pandora_dagster.phases.gather.research_pages import flat_fields
from pandora_dagster.research.research_report import run_fields, search_note
from pandora_dagster.tools.research_checks import RobotsOf, check_run

INTERNET_RESEARCH = ToolSpec(
    "internet.research",
    "Find something out on the web: search, read pages, quote them. With `visits` the pages of these visits are read again instead.",
    {
        "type": "object",
        "properties": {
            "question": {"type": "string", "minLength": 1, "maxLength": 2000},
            "depth": {"enum": [depth.value for depth in Depth]},
            "visits": {"type": "array", "maxItems": 5, "items": {"type": "string", "pattern": "^visit_[a-z0-9][a-z0-9_-]{0,63}$"}},
        },
        "required": ["question"],
        "additionalProperties": False,
    },
    permissions=frozenset({ToolPermission.READ_STORE, ToolPermission.NETWORK}),
    deadline_s=900.0,
)
_STATE = ("price", "currency", "availability")
"""Fields that are shown of a page which did not change."""
_MAX_CHANGED_LINES = 3
"""Lines of a text that are shown with what they were; of more only the number."""
_MAX_LOG_LINES = 12
_MAX_LINE_CHARACTERS = 400
_OUTCOMES = {
    ResearchOutcome.ANSWERED: "answered",
    ResearchOutcome.CONTRADICTION: "the sources disagree",
    ResearchOutcome.NOT_FOUND: "not found: no page that was read states it; to compare pages needs a model",
    ResearchOutcome.NEEDS_PERSON: "needs a person",
}


class _CancelledRunError(PandoraError):
    """The result is no longer awaited."""


@dataclass(frozen=True, slots=True)
class InternetResearch:
    """Finds things out on the web. A run ends at its next step once it is cancelled."""

    researcher: TurnResearcher
    robots_of: RobotsOf
    spec: ToolSpec = INTERNET_RESEARCH

    async def run(self, run: ToolRun) -> ToolOutcome:
        arguments = run.arguments
        asked = TurnQuestion(
            run.turn,
            str(arguments["question"]),
            Depth(arguments.get("depth", Depth.STANDARD)),
            tuple(map(str, arguments.get("visits", ()))),
            run.pages,
        )
        report = _report_until(run.cancelled, run.report)
        found = await self.researcher.research(asked, report)
        return replace(self._outcome(found, is_again=bool(asked.visits)), pages=found.pages, page_bytes=found.page_bytes)

    def release(self, turn: TurnKey) -> None:
        self.researcher.release(turn)

    def _outcome(self, found: TurnFindings, *, is_again: bool) -> ToolOutcome:
        run = found.run
        if run is None:
            return _stored_outcome(found.research, found.visits, found.outage) if found.research else ToolOutcome(False, "", "")
        cited = _cited_visits(run, found.visits)
        numbers = {visit.url: number for number, visit in enumerate(cited, 1)}
        changes = _change_lines(found, numbers) if run.claims or is_again else ()
        text = "\n".join([*_claim_lines(run, numbers), *changes, "", *_log_lines(run, numbers)]).strip()
        return ToolOutcome(
            bool(cited),
            text,
            json.dumps(run_fields(run), ensure_ascii=False, indent=1),
            tuple(map(_source, cited)),
            research=(found.research,) if found.research else (),
            visits=found.visits,
            tables=_tables(run),
            verdicts=check_run(run, self.robots_of),
            person_at=found.person_at,
        )


def _report_until(cancelled: Event, report: Callable[[str, float | None], None]) -> Callable[[str], None]:
    """Reports each step; ends the run at the first step after its cancellation. Its checkpoint keeps what it has read."""

    def step(line: str) -> None:
        if cancelled.is_set():
            raise _CancelledRunError("the research was stopped; the turn continues it")
        report(line, None)

    return step


def _stored_outcome(research: Research, visits: Sequence[Visit], outage: str) -> ToolOutcome:
    """What stored research says: it is still fresh, or pages could not be read (`outage`). A claim is cited by its page, else by the
    record."""
    record = Source("", research.logical_id, f"Cached research (quality: {research.quality_score:.2f})")
    sources: list[Source] = []
    lines: list[str] = []
    for claim in research.claims:
        url = claim.evidence.url if claim.evidence else page_address(claim.claim)
        visit = next((visit for visit in visits if visit.url == url), None)
        source = _source(visit) if visit else record
        sources += [source] if source not in sources else []
        shown = claim.claim.removesuffix(f"({visit.url})") if visit else claim.claim
        lines.append(f"- {_quoted(shown)} [source {sources.index(source) + 1}]")
    if not lines:
        sources, lines = [record], [f"- {_quoted(research.summary)} [source 1]"]
    fresh = f"research of {research.created_at}, used until {research.expires_at}; no page was visited"
    lines += ["", f"**Notice:** from {_quoted(outage) or fresh}"]
    raw = json.dumps({"claims": [claim.model_dump() for claim in research.claims]}, ensure_ascii=False)
    return ToolOutcome(True, "\n".join(lines), raw, tuple(sources))


def _cited_visits(run: ResearchRun, visits: Sequence[Visit]) -> list[Visit]:
    """The pages that are cited: those of claims, in their order; where there is no claim all that were read."""
    by_url = {visit.url: visit for visit in visits}
    cited = [by_url[url] for url in dict.fromkeys(claim.url for claim in run.claims) if url in by_url]
    return cited or list(by_url.values())


def _source(visit: Visit) -> Source:
    title = " ".join(str(visit.extracted_data.get("title") or visit.page_type).split())[:80]
    return Source("", visit.logical_id, f"{title} <{visit.url}>")


def _claim_lines(run: ResearchRun, numbers: Mapping[str, int]) -> Iterator[str]:
    for claim in run.claims:
        mark = f" [source {numbers[claim.url]}]" if claim.url in numbers else ""
        before, quote = claim.claim.removesuffix(claim.quote), _quoted(claim.quote)
        yield f'- {_quoted(before)} "{quote}"{mark}' if before != claim.claim else f"- {_quoted(claim.claim)}{mark}"


def _change_lines(found: TurnFindings, numbers: Mapping[str, int]) -> Iterator[str]:
    """What is different on a page since the visit before."""
    for old in found.earlier:
        new = next(visit for visit in found.visits if visit.url == old.url)
        mark = f" [source {numbers[new.url]}]" if new.url in numbers else ""
        changes = "; ".join(_differences(_values(old), _values(new)))
        shown = [f"{name} {value}" for name in _STATE if (value := str(new.extracted_data.get(name) or ""))]
        state = f" ({', '.join(shown)})" if shown else ""
        what = f"changed since {_time(old)}: {changes}" if changes else f"unchanged since {_time(old)}{state}"
        yield f"- {_quoted(str(new.extracted_data.get('title') or new.url))}: {_quoted(what)}{mark}"


def _values(visit: Visit) -> dict[str, list[str]]:
    """The fields of a page by name, each as its lines; what only a few words say is one line."""
    fields = flat_fields(dict(visit.extracted_data))
    lines = {name: [" ".join(line.replace("|", " ").split()) for line in value.split("\n")] for name, value in _whole(visit, fields)}
    return {name: [line for line in value if line] for name, value in lines.items()}


def _whole(visit: Visit, fields: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The fields with the line ends of their texts."""
    for name, value in fields:
        stored = visit.extracted_data.get(name)
        yield name, stored if isinstance(stored, str) else value


def _differences(old: Mapping[str, list[str]], new: Mapping[str, list[str]]) -> Iterator[str]:
    for name in dict.fromkeys([*new, *old]):
        before, after = old.get(name, []), new.get(name, [])
        gone = [line for line in before if line not in after]
        come = [line for line in after if line not in before]
        if len(gone) > _MAX_CHANGED_LINES or len(come) > _MAX_CHANGED_LINES:
            yield f"{name}: {len(gone)} lines are gone, {len(come)} are new"
        elif gone or come:
            yield f"{name} was {' / '.join(gone) or 'not there'}, is {' / '.join(come) or 'not there'}"


def _time(visit: Visit) -> str:
    """The minute of a visit, in UTC."""
    return f"{visit.visited_at[:16].replace('T', ' ')} UTC"


def _log_lines(run: ResearchRun, numbers: Mapping[str, int]) -> Iterator[str]:
    """What was searched, and what became of each address; lines of a form that is no finding."""
    yield f"**Outcome:** {_OUTCOMES[run.outcome] if run.outcome else 'under way'}"
    for search in run.searches[:_MAX_LOG_LINES]:
        yield f"**Searched:** {search.provider}: {_quoted(search.query)}: {_quoted(search_note(search))}"
    for visit in run.visits[:_MAX_LOG_LINES]:
        url = visit.page.final_url if visit.page else visit.url
        mark = f" [source {numbers[url]}]" if url in numbers and visit.status is VisitStatus.READ else ""
        reason = f": {_quoted(visit.reason)}" if visit.reason else ""
        yield f"**Page:** {visit.status} <{_quoted(visit.url)}>{reason}{mark}"
    if (more := len(run.visits) - _MAX_LOG_LINES) > 0:
        yield f"**Page:** {more} more addresses: toolresults.md"
    for notice in run.notices:
        yield f"**Notice:** {_quoted(notice)}"


def _quoted(text: str) -> str:
    """Words of others in one line that cites nothing."""
    line = " ".join(text.split())[:_MAX_LINE_CHARACTERS]
    return escape_citations(escape_source_marks(line))


def _tables(run: ResearchRun) -> dict[str, tuple[Mapping[str, Any], ...]]:
    searches = [
        {"provider": s.provider, "query": s.query, "results": s.hits, "fault": s.fault, "notices": "; ".join(s.notices)}
        for s in run.searches
    ]
    visits = [{"address": v.url, "status": v.status.value, "chosen because": v.chosen_because, "reason": v.reason} for v in run.visits]
    claims = [{"value": c.value, "quote": c.quote, "address": c.url, "confidence": c.confidence} for c in run.claims]
    return {"searches": tuple(searches), "visits": tuple(visits), "claims": tuple(claims)}
