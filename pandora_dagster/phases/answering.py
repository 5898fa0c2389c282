"""Phases 5 and 6: the answer, its final gate, and the bounded loop of revisions between them (000 section 7)."""

from collections.abc import Sequence

from pandora_dagster.contracts.answers import ValidationVerdict
from pandora_dagster.contracts.calls import CallResult, InputDocument, Item, Source
from pandora_dagster.contracts.words import InterventionType
from pandora_dagster.errors import HaltError
from pandora_dagster.phases.coordination import NO_TOOLS
from pandora_dagster.phases.desk import Desk, Written, answer_of, as_json
from pandora_dagster.selection.whole_answer import whole_answer
from pandora_dagster.text.citations import references
from pandora_dagster.text.sections import ContextDocument

SYNTHESIZER = "pipeline/phase5_synthesizer"
VALIDATOR = "pipeline/phase6_validator"
MOST_REVISIONS = 2
"""How often the answer is written again before a turn HALTs."""


async def response(desk: Desk) -> Written:
    """Section 5 and `response.md`: the answer as the person sees it, with citations; whoever listens hears it while it is written."""
    result = await _synthesize(desk, desk.context, issues=())
    return Written(sections={5: result.text}, files={"response.md": result.text + "\n"}, verdicts=result.verdicts)


async def validation(desk: Desk) -> Written:
    """Section 6: APPROVE, or REVISE up to twice; else HALT. The rounds are kept in `validation.json`, with drafts."""
    context = desk.context.with_section(5, whole_answer(desk.context, desk.turn.files))
    rounds, drafts = list[ValidationVerdict](), list[str]()
    for last in (False,) * MOST_REVISIONS + (True,):
        result = await desk.ask(VALIDATOR, context=context, sources=turn_sources(context))
        rounds.append(answer_of(result, ValidationVerdict))
        drafts.append(context.body(5))
        desk.kept["validation.json"] = as_json({"rounds": [r.model_dump(mode="json") for r in rounds], "drafts": drafts})
        if rounds[-1].decision == "APPROVE":
            return _approved(desk, context, rounds)
        desk.withdraw(_why(rounds[-1]))
        if rounds[-1].decision == "FAIL" or last:
            break
        again = await _synthesize(desk, context, issues=rounds[-1].issues)
        context = context.with_section(5, again.text)
    raise _rejected(desk, rounds)


def turn_sources(context: ContextDocument) -> tuple[Source, ...]:
    """What an answer of this turn may cite: the references of sections 2 and 4."""
    found = {s.label: s for number in (4, 2) for s in references(context.body(number))}
    return tuple(found[label] for label in sorted(found, key=int))


async def _synthesize(desk: Desk, context: ContextDocument, *, issues: Sequence[str]) -> CallResult:
    documents: list[InputDocument] = []
    raw = desk.file("toolresults.md")
    if context.body(4) != NO_TOOLS:
        documents.append(InputDocument("toolresults.md", items=(Item(raw, name="toolresults.md"),)))
    if issues:
        documents.append(InputDocument("revision_notes", "\n".join(f"- {issue}" for issue in issues)))
    return await desk.ask(SYNTHESIZER, documents, context=context, sources=turn_sources(context), aloud=True)


def _approved(desk: Desk, context: ContextDocument, rounds: list[ValidationVerdict]) -> Written:
    verdict = rounds[-1]
    body = f"**Decision:** APPROVE\n**Confidence:** {verdict.confidence:.2f}\n**Revisions:** {len(rounds) - 1}"
    if verdict.checked_citations:
        body += f"\n**Checked citations:** {', '.join(verdict.checked_citations)}"
    sections, files = {6: body}, {"validation.json": as_json({"rounds": [r.model_dump(mode="json") for r in rounds]})}
    if len(rounds) > 1:
        sections[5] = context.body(5)
        files["response.md"] = context.body(5) + "\n"
    return Written(sections=sections, files=files, facts={"rounds": _table(rounds), "revisions": len(rounds) - 1})


def _table(rounds: Sequence[ValidationVerdict]) -> list[dict[str, object]]:
    return [
        {"round": n, "decision": r.decision, "confidence": r.confidence, "issues": "; ".join(r.issues)} for n, r in enumerate(rounds, 1)
    ]


def _why(verdict: ValidationVerdict) -> str:
    return "; ".join(verdict.issues) or verdict.reasoning


def _rejected(desk: Desk, rounds: Sequence[ValidationVerdict]) -> HaltError:
    verdict, times = rounds[-1], f"{len(rounds)} round{'s' if len(rounds) > 1 else ''}"
    message = f"{desk.turn.key}: validation: {verdict.decision} after {times}: {_why(verdict)}"
    hint = "read the rounds and drafts in validation.json, then resolve the intervention and resume the turn"
    return desk.halt(InterventionType.MISSING_EVIDENCE, message, hint=hint)
