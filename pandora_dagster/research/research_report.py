"""A run as a report in Markdown, and as the fields of `--json` and `--jsonl`."""

from collections.abc import Iterator
from typing import Any

from pandora_dagster.contracts.web.research_run import (
    EvidenceClaim,
    ResearchOutcome,
    ResearchRun,
    SearchRecord,
    Verdict,
    VisitRecord,
    VisitStatus,
)
from pandora_dagster.language.word_forms import counted
from pandora_dagster.research.addresses import document_name

_ENDINGS = {
    ResearchOutcome.ANSWERED: "**Answered.** Each claim has the words of its page.",
    ResearchOutcome.CONTRADICTION: "**The sources disagree.** They are of equal standing; each claim has the words of its page.",
    ResearchOutcome.NOT_FOUND: "**Not found.** No page that was read states what is asked.",
    ResearchOutcome.NEEDS_PERSON: "**Needs a person.** The page that may answer asks for a login or a captcha.",
}


def result_fields(run: ResearchRun) -> dict[str, Any]:
    """`outcome` and `claims`, each claim with `claim`, `value`, `url` and `quote`."""
    claims = [{"claim": c.claim, "value": c.value, "url": c.url, "quote": c.quote} for c in run.claims]
    return {"outcome": run.outcome.value if run.outcome else "", "claims": claims}


def run_fields(run: ResearchRun) -> dict[str, Any]:
    """Everything of a run but the pages' text."""
    fields = run.model_dump(mode="json", exclude={"visits": {"__all__": {"page"}}, "waiting": True, "seconds": True})
    return {key: value for key, value in fields.items() if value or key in ("claims", "visits", "searches")}


def research_report(run: ResearchRun) -> str:
    """The report that a person reads. A part of it that has nothing to say is left out."""
    parts = [f"# {_line(run.question)}", _ENDINGS[run.outcome] if run.outcome else "Under way."]
    quotes = {claim.quote for claim in run.claims}
    if prose := [s for s in run.statements if s.text not in quotes]:
        parts.append(" ".join(_line(s.text) + "".join(f" [{n}]" for n in s.claims) for s in prose))
    if run.claims:
        parts += ["## Claims", "\n".join(line for number, claim in enumerate(run.claims, 1) for line in _claim_lines(number, claim))]
    if run.searches:
        searches = (f"- {s.provider}: `{_line(s.query)}`: {_line(search_note(s))}" for s in run.searches)
        parts += ["## Searches", "\n".join(searches)]
    if run.visits:
        parts += ["## Pages", "\n".join(f"- {visit.status} {_linked(visit.url)}: {_page_note(visit)}" for visit in run.visits)]
    if run.notices:
        parts += ["## Notices", "\n".join(f"- {_line(notice)}" for notice in run.notices)]
    return "\n\n".join(parts) + "\n"


def search_note(search: SearchRecord) -> str:
    """What a search gave: its fault or how many results, and what was left out or could not be read."""
    return "; ".join((search.fault or counted(search.hits, "result"), *search.notices))


def _claim_lines(number: int, claim: EvidenceClaim) -> Iterator[str]:
    """The value, its quote where that says more, and where the page is."""
    value, quote = _line(claim.value), _line(claim.quote)
    yield f"{number}. **{value}** (confidence {claim.confidence:.2f})"
    if value != quote:
        yield f"   - > {quote}"
    yield f"   - {_linked(claim.url)}"


def _page_note(visit: VisitRecord) -> str:
    """What became of an address: why it was not read or gave nothing, or how many claims it gave and why it was chosen."""
    if visit.status is not VisitStatus.READ:
        return _line(visit.reason)
    unsupported = sum(claim.verdict is Verdict.UNSUPPORTED for claim in visit.claims)
    given = len(visit.claims) - unsupported
    notes = [counted(given, "claim") if given else "", visit.reason]
    notes.append(f"{counted(unsupported, 'claim')} refused: the quote does not say so" if unsupported else "")
    note = "; ".join(filter(None, map(_line, notes))) or "no statement answers"
    return f"{note} (chosen: {_line(visit.chosen_because)})" if visit.chosen_because else note


def _linked(url: str) -> str:
    """An address as a link; that of a document of a folder under the name of the document."""
    name = document_name(url)
    return f"[{_line(name).translate(_ESCAPED)}]({url})" if name else f"<{url}>"


_ESCAPED = str.maketrans({mark: f"\\{mark}" for mark in "\\[]*_`<>"})


def _line(text: str) -> str:
    return " ".join(text.split())
