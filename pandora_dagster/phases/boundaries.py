"""What happens to context.md where one phase ends and the next has not begun (001 section 7): sections and document reported for
their budgets, originals kept beside. Phases report; `execution` decides (DECISIONS 8).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pandora_dagster.contracts.compression import CompressionReport, Content
from pandora_dagster.contracts.turns import PhaseRecord, Turn
from pandora_dagster.contracts.words import ContentType
from pandora_dagster.phases.desk import Desk, Written
from pandora_dagster.selection.whole_answer import ANSWER, RESPONSE
from pandora_dagster.text.sections import ContextDocument

_KINDS = {2: ContentType.PRIOR_TURN, 4: ContentType.TOOL_RESULT}
VALIDATED = 6
"""The answer stays whole in context.md until section 6 has judged it (001 section 7); then its budget holds, beside response.md."""
_WAY = f"Whole answer: `{RESPONSE}`"
_LONGEST_SHOWN = 20_000
"""Characters of a text before and after compression that a report shows whole; longer ones are named by their documents."""


def whole_name(number: int) -> str:
    """The document that keeps section `number` as it was before its first compression; the answer has one from the start."""
    return RESPONSE if number == ANSWER else f"section_{number}_whole.md"


def _referring(text: str) -> str:
    """A compressed answer with the way to the whole one."""
    return text if text.endswith(_WAY) else f"{text}\n\n{_WAY}"


async def settled_sections(desk: Desk, written: Written) -> Written:
    """Level 1: what the phase wrote, each section within its budget; the whole text goes into a document of its own."""
    if desk.kit.summarizer is None:
        return written
    sections, files = dict(written.sections), dict(written.files)
    due = {n: body for n, body in written.sections.items() if n != ANSWER}
    if VALIDATED in due:
        due[ANSWER] = written.sections.get(ANSWER, desk.context.body(ANSWER))
    for number, body in due.items():
        shrunk = await desk.kit.summarizer.settle_section(number, _content(number, body, ""), site=desk.site)
        text = desk.taken(shrunk)
        if shrunk.report:
            sections[number] = _referring(text) if number == ANSWER else text
            files |= {} if number == ANSWER else {whole_name(number): body}
    return replace(written, sections=sections, files=files)


async def settled_document(desk: Desk, latest: Iterable[int], owners: Mapping[str, int]) -> Turn:
    """Level 2: the committed turn with context.md back under its limit. Each original belongs to the phase that wrote its section.

    `owners`: phase -> the section that it writes.
    """
    turn, newest = desk.turn, max(latest, default=0)
    if desk.kit.summarizer is None:
        return turn
    document, total = ContextDocument.parse(turn.context), desk.kit.counter.count(turn.context)
    is_validated = bool(document.body(VALIDATED))
    numbered = [s.number for s in document.sections if s.number and (is_validated or s.number != ANSWER)]
    sections = {n: _content(n, document.body(n), turn.files.get(whole_name(n), "")) for n in numbered}
    shrunk = await desk.kit.summarizer.settle_document(sections, total=total, latest=newest, site=desk.site)
    for number, settled in shrunk.items():
        text = desk.taken(settled)
        if settled.report is None:
            continue
        owner = next((p for p in reversed(turn.manifest.phases) if owners.get(p.phase) == number), turn.manifest.phases[-1])
        turn = _replaced(desk, turn, owner, sections[number], number, _referring(text) if number == ANSWER else text)
    return turn


def compression_rows(reports: Sequence[CompressionReport]) -> Mapping[str, Any]:
    """The figures of a phase's compressions, as the manifest keeps them; {} where there was none."""
    return {"compressions": [_row(r) for r in reports]} if reports else {}


def compression_facts(reports: Sequence[CompressionReport]) -> Mapping[str, Any]:
    """All that a phase's report shows of its compressions: figures, the table of facts, the texts before and after."""
    if not reports:
        return {}
    return {
        **compression_rows(reports),
        "compressed_facts": [{"document": r.document, **row} for r in reports for row in r.facts],
        "compression_before": "\n\n".join(_shown(r, r.before) for r in reports),
        "compression_after": "\n\n".join(_shown(r, r.after) for r in reports),
        "compression_tokens_before": sum(r.tokens_before for r in reports),
        "compression_tokens_after": sum(r.tokens_after for r in reports),
        "compression_invocations": len(reports),
    }


def _content(number: int, body: str, original: str) -> Content:
    text = body.rstrip().removesuffix(_WAY).rstrip() if number == ANSWER else body
    return Content(text, whole_name(number), _KINDS.get(number, ContentType.GENERIC), original=original)


def _replaced(desk: Desk, turn: Turn, owner: PhaseRecord, content: Content, number: int, text: str) -> Turn:
    """One section replaced in one commit, in the name of the phase that wrote it; its record says so."""
    context = ContextDocument.parse(turn.context).with_section(number, text).render()
    files = {} if content.name in turn.files else {content.name: content.text}
    known = owner.report.get("facts", {})
    rows = [*known.get("compressions", ()), *(_row(r) for r in desk.compressions if r.document == content.name)]
    report = {**owner.report, "facts": {**known, "compressions": rows}}
    return desk.kit.turns.commit(turn, phase=owner.model_copy(update={"files": {}, "report": report}), context=context, files=files)


def _row(report: CompressionReport) -> dict[str, Any]:
    counts = {name: n for name, n in report.counts.items() if name != "total"}
    figures = {"tokens_before": report.tokens_before, "tokens_after": report.tokens_after, "ratio": report.ratio}
    told = {name: getattr(report, name) for name in ("document", "recipe", "recipe_version", "prompt_hash", "runtime", "model", "call_id")}
    deferred = {"deferred": report.deferred} if report.deferred else {}
    checks = {verdict.gate: verdict.passed for verdict in report.verdicts}
    return {**told, **figures, "facts": report.counts["total"], **counts, **checks, **deferred}


def _shown(report: CompressionReport, text: str) -> str:
    shown = text if len(text) <= _LONGEST_SHOWN else f"{len(text)} characters, in {report.document}"
    return f"**{report.document}**\n\n{shown}"
