"""Phases 5 and 6: the answer, its final gate, and the bounded loop of revisions between them (specification 000, section 7)."""

from collections.abc import Sequence
from contextlib import suppress

from pandora_dagster.compression.verification.cited_passages import cited_passages
from pandora_dagster.compression.verification.claim_support import ClaimVerdict, judge_claims
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.model_calls import CallResult, InputDocument, Item, Source
from pandora_dagster.contracts.phase_outputs import ValidationVerdict
from pandora_dagster.documents.citations import cited_labels, source_references
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.turn_row import whole_answer
from pandora_dagster.errors import HaltError, PandoraError
from pandora_dagster.execution.fit.compression_log import EMBEDDED
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput, as_json, parsed_answer
from pandora_dagster.phases.steps.coordination import NO_TOOLS
from pandora_dagster.phases.steps.statement_support import uncited_document, uncited_facts, unsupported_statements

SYNTHESIZER = "pipeline/phase5_synthesizer"
VALIDATOR = "pipeline/phase6_validator"
MAX_REVISIONS = 2
"""How often the answer is written again before a turn HALTs."""


async def response(ctx: PhaseContext) -> PhaseOutput:
    """Section 5 and `response.md`: the answer as the user sees it, with citations; it is streamed to the listener."""
    result = await _synthesize(ctx, ctx.context_document, issues=())
    return PhaseOutput(sections={5: result.text}, files={"response.md": result.text + "\n"}, verdicts=result.verdicts)


async def validation(ctx: PhaseContext) -> PhaseOutput:
    """Section 6: APPROVE, or REVISE up to twice; else HALT. `validation.json` stores the rounds with their drafts."""
    context = ctx.context_document.with_section(5, whole_answer(ctx.context_document, ctx.turn.files))
    rounds, drafts = list[ValidationVerdict](), list[str]()
    for is_last in (False,) * MAX_REVISIONS + (True,):
        claims = _claims(ctx, context)
        documents = (InputDocument("uncited", uncited_document(claims)),)
        result = await ctx.ask(VALIDATOR, documents, context=context, sources=turn_sources(context))
        verdict = _settled(parsed_answer(result, ValidationVerdict), context.body(5))
        if verdict.decision == "APPROVE" and result.record.runtime != EMBEDDED:
            verdict = _with_issues(verdict, (*uncited_facts(claims, verdict.uncited), *await unsupported_statements(ctx, claims)))
        rounds.append(verdict)
        drafts.append(context.body(5))
        ctx.halt_files["validation.json"] = as_json({"rounds": [r.model_dump(mode="json") for r in rounds], "drafts": drafts})
        if rounds[-1].decision == "APPROVE":
            return _approved_output(ctx, context, rounds)
        ctx.withdraw(_verdict_reason(rounds[-1]))
        if rounds[-1].decision == "FAIL" or is_last:
            break
        revised = await _synthesize(ctx, context, issues=rounds[-1].issues)
        context = context.with_section(5, revised.text)
    raise _rejection(ctx, rounds)


def turn_sources(context: ContextDocument) -> tuple[Source, ...]:
    """What an answer of this turn may cite: the references of sections 2 and 4."""
    sources = {s.label: s for number in (4, 2) for s in source_references(context.body(number))}
    return tuple(sources[label] for label in sorted(sources, key=int))


def _settled(verdict: ValidationVerdict, answer: str) -> ValidationVerdict:
    """An APPROVE that names issues, or did not check every citation of the answer, is a REVISE."""
    checked = {label.strip("[] ") for label in verdict.checked_citations}
    unchecked = [f"[{label}]" for label in cited_labels(answer) if label not in checked]
    return _with_issues(verdict, [f"citations not checked: {', '.join(unchecked)}"] if unchecked else [])


def _with_issues(verdict: ValidationVerdict, issues: Sequence[str]) -> ValidationVerdict:
    """The verdict with further issues; an APPROVE that has any is a REVISE."""
    if verdict.decision != "APPROVE" or not (verdict.issues or issues):
        return verdict
    return verdict.model_copy(update={"decision": "REVISE", "issues": (*verdict.issues, *issues)})


def _claims(ctx: PhaseContext, context: ContextDocument) -> tuple[ClaimVerdict, ...]:
    """The statements of fact of section 5 as code judges them; none where the answer's recipe needs no evidence."""
    if not ctx.deps.recipes.get(SYNTHESIZER, ctx.mode).recipe.quality_gates.evidence_required:
        return ()
    texts = cited_passages(context, ctx.turn.files.get("toolresults.md", ""))
    loaded = _loaded_turns(ctx, turn_sources(context))
    texts |= {label: f"{texts.get(label, '')}\n\n{text}" for label, text in loaded.items()}
    return judge_claims(context.body(5), texts, query=ctx.query, is_greeting=ctx.analysis().intent == "greeting")


async def _synthesize(ctx: PhaseContext, context: ContextDocument, *, issues: Sequence[str]) -> CallResult:
    raw = ctx.file("toolresults.md")
    items = (Item(raw, name="toolresults.md"),) if context.body(4) != NO_TOOLS else ()
    documents = [InputDocument("toolresults.md", items=items)]
    if issues:
        documents.append(InputDocument("revision_notes", "\n".join(f"- {issue}" for issue in issues)))
    sources = turn_sources(context)
    return await ctx.ask(SYNTHESIZER, documents, context=context, sources=sources, evidence=_loaded_turns(ctx, sources), is_streamed=True)


def _loaded_turns(ctx: PhaseContext, sources: Sequence[Source]) -> dict[str, str]:
    """Label -> the earlier turn that it cites: its day, query, tool results and answer, of which section 2 is an excerpt."""
    texts: dict[str, str] = {}
    for source in sources:
        if not source.turn_id:
            continue
        with suppress(PandoraError):
            turn = ctx.deps.turns.load(TurnKey(ctx.turn.key.user, int(source.turn_id.rpartition("_")[2])))
            context = ContextDocument.parse(turn.context)
            bodies = (context.query(), context.body(4), whole_answer(context, turn.files))
            texts[source.label] = "\n\n".join((turn.manifest.created_at[:10], *bodies, turn.files.get("toolresults.md", "")))
    return texts


def _approved_output(ctx: PhaseContext, context: ContextDocument, rounds: list[ValidationVerdict]) -> PhaseOutput:
    verdict = rounds[-1]
    body = f"**Decision:** APPROVE\n**Confidence:** {verdict.confidence:.2f}\n**Revisions:** {len(rounds) - 1}"
    if verdict.checked_citations:
        body += f"\n**Checked citations:** {', '.join(verdict.checked_citations)}"
    sections, files = {6: body}, {"validation.json": as_json({"rounds": [r.model_dump(mode="json") for r in rounds]})}
    if len(rounds) > 1:
        sections[5] = context.body(5)
        files["response.md"] = context.body(5) + "\n"
    return PhaseOutput(sections=sections, files=files, facts={"rounds": _rounds_table(rounds), "revisions": len(rounds) - 1})


def _rounds_table(rounds: Sequence[ValidationVerdict]) -> list[dict[str, object]]:
    return [
        {"round": n, "decision": r.decision, "confidence": r.confidence, "issues": "; ".join(r.issues)} for n, r in enumerate(rounds, 1)
    ]


def _verdict_reason(verdict: ValidationVerdict) -> str:
    return "; ".join(verdict.issues) or verdict.reasoning


def _rejection(ctx: PhaseContext, rounds: Sequence[ValidationVerdict]) -> HaltError:
    verdict, times = rounds[-1], f"{len(rounds)} round{'s' if len(rounds) > 1 else ''}"
    message = f"{ctx.turn.key}: validation: {verdict.decision} after {times}: {_verdict_reason(verdict)}"
    hint = "read the rounds and drafts in validation.json, then resolve the intervention and resume the turn"
    return ctx.halt(InterventionType.MISSING_EVIDENCE, message, hint=hint)
