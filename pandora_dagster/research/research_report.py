"""A run as a report in Markdown, and as the fields of `--json` and `--jsonl`."""

from typing import Any

from pandora_dagster.contracts.web.research_run import ResearchOutcome, ResearchRun, VisitStatus

_ENDINGS = {
    ResearchOutcome.ANSWERED: "The pages that were read answer the question.",
    ResearchOutcome.CONTRADICTION: "Two sources of equal standing disagree.",
    ResearchOutcome.NOT_FOUND: "No page that was read holds what is asked.",
    ResearchOutcome.NEEDS_PERSON: "The page that may answer wants a login or a captcha: a person is needed.",
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
    """The report that a person reads."""
    lines = [f"# {_line(run.question)}", "", f"**{run.outcome}**. {_ENDINGS[run.outcome]}" if run.outcome else "under way", ""]
    quotes = {claim.quote for claim in run.claims}
    if prose := [s for s in run.statements if s.text not in quotes]:
        lines += [f"{' '.join(_line(s.text) + ''.join(f' [{n}]' for n in s.claims) for s in prose)}", ""]
    if run.claims:
        lines += ["## Claims", ""]
        for number, claim in enumerate(run.claims, 1):
            lines += [
                f"{number}. **{_line(claim.value)}** (confidence {claim.confidence:.2f})",
                f"   - <{claim.url}>",
                f"   - > {_line(claim.quote)}",
            ]
        lines.append("")
    lines += ["## Searched", ""]
    lines += [f"- {s.provider}: `{_line(s.query)}`: {s.fault or f'{s.hits} results'}" for s in run.searches]
    lines += ["", "## Pages", ""]
    for visit in run.visits:
        why = f": {_line(visit.reason)}" if visit.status is not VisitStatus.READ else f" ({visit.chosen_because})"
        lines.append(f"- {visit.status}: <{visit.url}>{why}")
    lines += ["", *(f"Note: {notice}." for notice in run.notices)]
    return "\n".join(lines).rstrip() + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())
