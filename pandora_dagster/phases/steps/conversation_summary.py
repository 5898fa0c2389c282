"""The rolling summary of a session, continued after a turn is saved (specification 002, section 3, "Summarization").

This module decides when the summary is due, which turns it covers, and what is stored; `compression.rolling_summary` verifies its text.
A failure here changes neither the answer nor the stored summary (decision 16, docs/decisions/16-the-answer-comes-first.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pandora_dagster.compression.rolling_summary import DigestCheck, Exchange, check_digest, render_digest
from pandora_dagster.contracts.compression_results import CompressionInput, GateVerdict
from pandora_dagster.contracts.enums import ContentType, InterventionType
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.model_calls import CallResult, InputDocument
from pandora_dagster.contracts.turns import TurnRow
from pandora_dagster.contracts.user.conversations import ConversationDigest, ConversationSummary
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.turn_row import ROW_FILES, build_turn_row, informative_sections
from pandora_dagster.errors import DeferredError, DocumentError, UnknownTurnError
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput, parsed_answer
from pandora_dagster.phases.gather import session_history
from pandora_dagster.phases.gather.prior_turns import context_path
from pandora_dagster.retrieval.retrieval_policy import RetrievalPolicy, SummaryTriggers

SUMMARIZER = "memory/conversation_summary"
MAX_CALLS = 8
"""Calls after one turn, at most: an imported long session is summarized over several turns."""
_FRAME_TOKENS = 200
"""Tokens around the documents of a pack."""


@dataclass(frozen=True, slots=True)
class _SummaryNeed:
    """The turns of a session that its summary does not cover, and whether a new one is due."""

    waiting: tuple[TurnRow, ...]
    """Turns that it does not cover, oldest first."""
    why: str
    due_count: int = 0
    """Number of the oldest of these to summarize now; 0 where it is not due."""


async def conversation_summary(ctx: PhaseContext) -> PhaseOutput:
    """Continue the session's summary where one of its triggers is met."""
    owner, session = ctx.turn.key.user, SessionId(ctx.turn.manifest.session_id)
    existing = ctx.deps.conversations.find(owner, session)
    if existing and existing.last_turn >= ctx.turn.key.number:
        return _not_due(existing, "it covers this turn: an earlier turn was run again")
    policy = RetrievalPolicy()
    need = _summary_need(ctx, existing, policy.summary)
    if not need.due_count:
        return _not_due(existing, need.why)
    return await _extend_summary(ctx, existing, need, policy)


async def _extend_summary(
    ctx: PhaseContext, existing: ConversationSummary | None, need: _SummaryNeed, policy: RetrievalPolicy
) -> PhaseOutput:
    """Summarize one group of turns after the other; each is stored before the next begins, so that a failure loses none.

    A call that the session's rate limit defers (decision 7, docs/decisions/07-levels-link-every-fact.md) ends the work of this turn; a
    later turn continues it.
    """
    remaining, restored, refused = list(need.waiting[: need.due_count]), list[str](), list[str]()
    deferred = ""
    while remaining and len(ctx.results) < MAX_CALLS:
        exchanges, texts = await _next_exchanges(ctx, remaining, existing, policy)
        try:
            check, result = await _summarize(ctx, existing, exchanges, texts, policy.summary.words)
        except DeferredError as error:
            deferred = str(error)
            break
        existing = ctx.deps.conversations.save(_summary_record(ctx, existing, exchanges, check, result))
        restored += check.restored
        refused += check.refused
        remaining = remaining[len(exchanges) :]
    counts = {"put_back": restored, "refused": refused, "left_for_later": len(remaining), "deferred": deferred}
    facts = {"triggered": True, "why": need.why, **_summary_facts(existing), **counts}
    message = f"{len(restored)} limits or decisions put back, {len(refused)} unfounded items taken out"
    return PhaseOutput(
        facts={name: value for name, value in facts.items() if value not in ([], 0, "")},
        shown=render_digest(existing.digest) if existing else "",
        verdicts=(GateVerdict("no_fact_changed", True, message),) if ctx.results else (),
    )


def _not_due(existing: ConversationSummary | None, why: str) -> PhaseOutput:
    return PhaseOutput(facts={"triggered": False, "why": why, **_summary_facts(existing)})


def _summary_facts(summary: ConversationSummary | None) -> dict[str, Any]:
    if summary is None:
        return {}
    linked = {"linked": session_history.number_ranges(summary.linked)} if summary.linked else {}
    return {
        "covered_turns": session_history.number_ranges(summary.turns),
        "covered": len(summary.turns),
        "summary_tokens": summary.tokens,
        **linked,
    }


def _summary_need(ctx: PhaseContext, existing: ConversationSummary | None, triggers: SummaryTriggers) -> _SummaryNeed:
    """A turn counts as two messages. This turn counts, though its row is written later.

    The index is opened (12 ms) only where the number of turns does not decide it.
    """
    covered, kept = existing.last_turn if existing else 0, -(-triggers.kept // 2)
    messages = 2 * (1 + sum(number > covered for number in session_history.earlier_turns(ctx)))
    if existing:
        before = 2 * len(existing.turns)
        why = f"{max(0, messages - 2 * kept)} messages since the summary; it is made again after {triggers.again_after}"
        if not triggers.is_due(messages=before + messages, tokens=0, summarized=before + 2 * kept):
            return _SummaryNeed((), why)
        waiting = _uncovered_turns(ctx, covered)
        return _SummaryNeed(waiting, why, max(0, len(waiting) - kept))
    rule = f"the first summary is made at {triggers.messages}, or over {triggers.tokens} tokens"
    if messages <= triggers.kept:
        return _SummaryNeed((), f"{messages} messages; {rule}")
    waiting = _uncovered_turns(ctx, covered)
    tokens = sum(ctx.deps.counter.count(row.text) for row in waiting) if messages < triggers.messages else 0
    is_due = triggers.is_due(messages=messages, tokens=tokens)
    return _SummaryNeed(
        waiting, f"{messages} messages{f' of {tokens} tokens' if tokens else ''}; {rule}", max(0, len(waiting) - kept) if is_due else 0
    )


def _uncovered_turns(ctx: PhaseContext, covered: int) -> tuple[TurnRow, ...]:
    """The session's turns that the summary does not cover, this one last; all of a long session only where it covers none of the newest."""
    rows = session_history.session_turns(ctx)
    if len(rows) >= session_history.MAX_LISTED_TURNS and rows[0].number > covered:
        rows = session_history.session_turns(ctx, limit=None)
    return (*(row for row in rows if row.number > covered), build_turn_row(ctx.turn.manifest, ctx.turn.context, ctx.turn.files))


async def _next_exchanges(
    ctx: PhaseContext, rows: Sequence[TurnRow], existing: ConversationSummary | None, policy: RetrievalPolicy
) -> tuple[list[Exchange], list[str]]:
    """As many of the oldest exchanges as fit one call unchanged, at least one, in the form that the call reads."""
    count, budget = ctx.deps.counter.count, ctx.deps.recipes.get(SUMMARIZER, ctx.mode).recipe.token_budget
    remaining_tokens = budget.input - count(ctx.query) - _FRAME_TOKENS - (count(existing.digest.model_dump_json()) if existing else 0)
    exchanges: list[Exchange] = []
    texts: list[str] = []
    for row in rows:
        exchange = _read_exchange(ctx, row)
        text = await _exchange_text(ctx, exchange, row, policy.turn_tokens)
        remaining_tokens -= count(text) + 2
        if exchanges and remaining_tokens < 0:
            break
        exchanges.append(exchange)
        texts.append(text)
    return exchanges, texts


def _read_exchange(ctx: PhaseContext, row: TurnRow) -> Exchange:
    """The messages of a turn without credentials; for a turn that cannot be read its summary."""
    try:
        turn = ctx.deps.turns.load(TurnKey(UserId(row.user_id), row.number), only=ROW_FILES)
    except (DocumentError, UnknownTurnError):
        return Exchange(row.number, row.created_at[:10], "", redact(row.summary))
    sections = informative_sections(turn.manifest, ContextDocument.parse(turn.context), turn.files)
    return Exchange(row.number, row.created_at[:10], redact(sections.get(0, "")), redact(sections.get(5, "")))


async def _exchange_text(ctx: PhaseContext, exchange: Exchange, row: TurnRow, limit: int) -> str:
    """An exchange of at most `limit` tokens unchanged; a longer one compressed to that size, else its stored summary."""
    if ctx.deps.counter.count(exchange.text) <= limit:
        return exchange.text
    if ctx.deps.summarizer:
        content = CompressionInput(f"{exchange.asked}\n\n{exchange.answered}", context_path(row.turn_id), ContentType.GENERIC)
        result = await ctx.deps.summarizer.fit_text(content, target=limit, site=ctx.site)
        if not result.halted:
            return exchange.shortened(ctx.record_compression(result))
    return exchange.shortened(redact(row.summary))


async def _summarize(
    ctx: PhaseContext, existing: ConversationSummary | None, exchanges: Sequence[Exchange], texts: Sequence[str], words: int
) -> tuple[DigestCheck, CallResult]:
    """The digest with one more group of turns; raises HaltError where the model's text cannot be repaired."""
    documents = [InputDocument("turns", "\n\n".join(texts))]
    if existing:
        documents.insert(0, InputDocument("previous_summary", existing.digest.model_dump_json()))
    result = await ctx.ask(SUMMARIZER, documents)
    check = check_digest(
        parsed_answer(result, ConversationDigest),
        exchanges,
        existing.digest if existing else None,
        covered=(*(existing.turns if existing else ()), *(e.number for e in exchanges)),
        linked=existing.linked if existing else (),
        words=words,
        counter=ctx.deps.counter,
    )
    if not check.ok:
        raise ctx.halt(
            InterventionType.FACT_LOSS,
            f"{SUMMARIZER}: {'; '.join(check.reasons)}",
            hint="the answer and the stored summary are unchanged; `pandora resume` tries again, and so does a later turn",
        )
    return check, result


def _summary_record(
    ctx: PhaseContext, existing: ConversationSummary | None, exchanges: Sequence[Exchange], check: DigestCheck, result: CallResult
) -> ConversationSummary:
    return ConversationSummary(
        user_id=ctx.turn.key.user,
        session_id=ctx.turn.manifest.session_id,
        turns=(*(existing.turns if existing else ()), *(e.number for e in exchanges)),
        linked=check.linked,
        digest=check.digest,
        tokens=ctx.deps.counter.count(render_digest(check.digest)),
        created_at=ctx.deps.now,
        made_by=ctx.turn.key.turn_id,
        runtime=result.record.runtime,
        recipe=result.record.recipe,
        recipe_version=result.record.recipe_version,
        prompt_version=result.record.prompt_version,
        call_id=result.record.call_id,
    )
