"""Budgets of context.md between two phases (specification 001, section 7): sections and document are passed to `execution`, which decides
whether to compress them (decision 8, docs/decisions/08-when-compression-runs.md). The original of a compressed section is stored in a
document of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pandora_dagster.contracts.compression_results import CompressionInput, CompressionReport
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.turns import PhaseRecord, Turn
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.turn_row import ANSWER_SECTION, RESPONSE_FILE
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput

_CONTENT_TYPES = {2: ContentType.PRIOR_TURN, 4: ContentType.TOOL_RESULT}
"""Section number -> content type of its compression; other sections are generic."""
VALIDATION_SECTION = 6
"""The answer stays whole in context.md until section 6 has judged it (specification 001, section 7). From then on its budget
applies to it too; response.md keeps the whole answer."""
_ANSWER_LINK = f"Whole answer: `{RESPONSE_FILE}`"
_MAX_SHOWN_CHARACTERS = 20_000
"""A report shows a text before and after compression up to this length; of a longer text it names the document."""


def whole_section_file(number: int) -> str:
    """The document that stores section `number` as it was before its first compression; the answer has one from the start."""
    return RESPONSE_FILE if number == ANSWER_SECTION else f"section_{number}_whole.md"


def _with_answer_link(text: str) -> str:
    """A compressed answer with a link to the whole one."""
    return text if text.endswith(_ANSWER_LINK) else f"{text}\n\n{_ANSWER_LINK}"


async def fit_sections(ctx: PhaseContext, output: PhaseOutput) -> PhaseOutput:
    """Brings each section that the phase wrote down to its budget, and stores the whole text beside it."""
    if ctx.deps.summarizer is None:
        return output
    sections, files = dict(output.sections), dict(output.files)
    bodies = {n: body for n, body in output.sections.items() if n != ANSWER_SECTION}
    if VALIDATION_SECTION in bodies:
        bodies[ANSWER_SECTION] = output.sections.get(ANSWER_SECTION, ctx.context_document.body(ANSWER_SECTION))
    for number, body in bodies.items():
        result = await ctx.deps.summarizer.fit_section(number, _section_content(number, body, ""), site=ctx.site)
        text = ctx.record_compression(result)
        if result.report:
            sections[number] = _with_answer_link(text) if number == ANSWER_SECTION else text
            files |= {} if number == ANSWER_SECTION else {whole_section_file(number): body}
    return replace(output, sections=sections, files=files)


async def fit_document(ctx: PhaseContext, written: Iterable[int], owners: Mapping[str, int]) -> Turn:
    """The committed turn with context.md under its limit. Each original is recorded with the phase that wrote its section.

    `written`: numbers of the sections that the phase has just written; the last of them is compressed last. `owners`: phase -> the section
    that it writes.
    """
    turn, newest = ctx.turn, max(written, default=0)
    if ctx.deps.summarizer is None:
        return turn
    document, total = ctx.context_document, ctx.deps.counter.count(turn.context)
    is_validated = bool(document.body(VALIDATION_SECTION))
    numbers = [s.number for s in document.sections if s.number and (is_validated or s.number != ANSWER_SECTION)]
    sections = {n: _section_content(n, document.body(n), turn.files.get(whole_section_file(n), "")) for n in numbers}
    results = await ctx.deps.summarizer.fit_document(sections, total=total, latest=newest, site=ctx.site)
    for number, result in results.items():
        text = ctx.record_compression(result)
        if result.report is None:
            continue
        owner = next((p for p in reversed(turn.manifest.phases) if owners.get(p.phase) == number), turn.manifest.phases[-1])
        text = _with_answer_link(text) if number == ANSWER_SECTION else text
        ctx.turn = turn = _replace_section(ctx, turn, owner, sections[number], number, text)
    return turn


def compression_rows(reports: Sequence[CompressionReport]) -> Mapping[str, Any]:
    """The figures of a phase's compressions, as the manifest stores them; {} where there was none."""
    return {"compressions": [_compression_row(r) for r in reports]} if reports else {}


def compression_facts(reports: Sequence[CompressionReport]) -> Mapping[str, Any]:
    """What a phase's report shows of its compressions: figures, the table of facts, the texts before and after."""
    if not reports:
        return {}
    return {
        **compression_rows(reports),
        "compressed_facts": [{"document": r.document, **row} for r in reports for row in r.facts],
        "compression_before": "\n\n".join(_report_text(r, r.before) for r in reports),
        "compression_after": "\n\n".join(_report_text(r, r.after) for r in reports),
        "compression_tokens_before": sum(r.tokens_before for r in reports),
        "compression_tokens_after": sum(r.tokens_after for r in reports),
        "compression_invocations": len(reports),
    }


def _section_content(number: int, body: str, original: str) -> CompressionInput:
    text = body.rstrip().removesuffix(_ANSWER_LINK).rstrip() if number == ANSWER_SECTION else body
    return CompressionInput(text, whole_section_file(number), _CONTENT_TYPES.get(number, ContentType.GENERIC), original=original)


def _replace_section(ctx: PhaseContext, turn: Turn, owner: PhaseRecord, content: CompressionInput, number: int, text: str) -> Turn:
    """One section replaced in one commit, in the record of the phase that wrote it."""
    context = ContextDocument.parse(turn.context).with_section(number, text).render()
    files = {} if content.name in turn.files else {content.name: content.text}
    facts = owner.report.get("facts", {})
    rows = [*facts.get("compressions", ()), *(_compression_row(r) for r in ctx.compressions if r.document == content.name)]
    report = {**owner.report, "facts": {**facts, "compressions": rows}}
    return ctx.deps.turns.commit(turn, phase=owner.model_copy(update={"files": {}, "report": report}), context=context, files=files)


def _compression_row(report: CompressionReport) -> dict[str, Any]:
    counts = {name: n for name, n in report.counts.items() if name != "total"}
    figures = {"tokens_before": report.tokens_before, "tokens_after": report.tokens_after, "ratio": report.ratio}
    names = ("document", "recipe", "recipe_version", "prompt_hash", "runtime", "model", "call_id")
    origin = {name: getattr(report, name) for name in names}
    deferred = {"deferred": report.deferred} if report.deferred else {}
    checks = {verdict.gate: verdict.passed for verdict in report.verdicts}
    return {**origin, **figures, "facts": report.counts["total"], **counts, **checks, **deferred}


def _report_text(report: CompressionReport, text: str) -> str:
    body = text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{len(text)} characters, in {report.document}"
    return f"**{report.document}**\n\n{body}"
