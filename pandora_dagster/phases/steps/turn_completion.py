"""Phase 7 and what follows it: save, summarize, index (specification 000, section 9, specification 004, section 11)."""

from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.contracts.phase_outputs import TurnSummary
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.documents.citations import cited_labels, page_address
from pandora_dagster.documents.markdown import table
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.turn_entry import turn_trace
from pandora_dagster.documents.turn_row import whole_answer
from pandora_dagster.errors import DocumentError
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput, as_json, parsed_answer
from pandora_dagster.phases.steps.answer_synthesis import turn_sources
from pandora_dagster.phases.steps.tool_findings import store_findings

_PAGE_FOLDERS = ("webpage_cache/", "research_cache/")
SUMMARIZER = "pipeline/phase7_summarizer"


async def saved_turn(ctx: PhaseContext) -> PhaseOutput:
    """Check that every phase before wrote its documents and section; the commit saves the turn."""
    missing = [name for name in ctx.required_files if name not in ctx.turn.files]
    missing += [f"section {n}" for n in ctx.required_sections if ctx.context_document.section(n) is None]
    if missing:
        raise DocumentError(f"{ctx.turn.key}: {', '.join(missing)}: missing; a saved turn has them all", missing=True)
    rows = [(name, ctx.deps.counter.count(text)) for name, text in (("context.md", ctx.turn.context), *ctx.turn.files.items())]
    shown = table(("Document", "Tokens"), rows)
    return PhaseOutput(shown=shown, facts={"documents": len(rows), "citations": citations(ctx.turn)})


async def turn_summary(ctx: PhaseContext) -> PhaseOutput:
    """The summary for the turn index (specification 004, section 11.2); what the turn researched is stored first, so that no summary
    delays it."""
    stored = store_findings(ctx)
    result = await ctx.ask(SUMMARIZER)
    summary = parsed_answer(result, TurnSummary)
    return PhaseOutput(
        files={"turn_summary.json": as_json(summary)},
        manifest={"summary": {**summary.model_dump(mode="json"), **turn_trace(ctx.context_document)}},
        facts={"topics": list(summary.topics), "intent": summary.intent, **({"sources_stored": stored} if stored else {})},
        shown=f"{summary.summary}\n\n*{', '.join(summary.topics)}*",
    )


def citations(turn: Turn) -> list[dict[str, object]]:
    """What the answer cites: label, path below the user's folder, turn id and, of a page, its address; in order of first mention."""
    document = ContextDocument.parse(turn.context)
    sources = {s.label: s for s in turn_sources(document)}
    return [
        {"label": label, "path": sources[label].path, "turn_id": sources[label].turn_id or ""} | _page_address(sources[label])
        for label in cited_labels(whole_answer(document, turn.files))
        if label in sources
    ]


def _page_address(source: Source) -> dict[str, object]:
    """`url` of a visited page, which its description ends with."""
    address = page_address(source.description) if source.path.startswith(_PAGE_FOLDERS) else ""
    return {"url": address} if address else {}
