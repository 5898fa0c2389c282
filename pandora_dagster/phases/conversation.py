"""The rolling summary of a session, carried on after a turn is saved (002 section 3, "Summarization").

Knows when it is due, which turns it takes, and what is stored; what a summary must hold is judged by `compression.rolling`. Whatever
fails here leaves the answer and the summary that stands as they are (DECISIONS 16).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pandora_dagster.compression.rolling import Exchange, Settled, settled, shown
from pandora_dagster.contracts.calls import CallResult, GateVerdict, InputDocument
from pandora_dagster.contracts.compression import Content
from pandora_dagster.contracts.conversations import ConversationDigest, ConversationSummary
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.turns import TurnRow
from pandora_dagster.contracts.words import ContentType, InterventionType
from pandora_dagster.errors import DeferredError, DocumentError, UnknownTurnError
from pandora_dagster.phases import history
from pandora_dagster.phases.desk import Desk, Written, answer_of
from pandora_dagster.phases.prior_turns import path_of
from pandora_dagster.selection.turn_row import row_of, told
from pandora_dagster.selection.windows import SummaryTriggers, WindowPolicy, policy_named
from pandora_dagster.text.credentials import redacted
from pandora_dagster.text.dates import stamp
from pandora_dagster.text.sections import ContextDocument

SUMMARIZER = "memory/conversation_summary"
MOST_CALLS = 8
"""Calls after one turn: a long session that was imported is taken up over several turns."""
_FRAMES = 200
"""Tokens around the documents of a pack."""


@dataclass(frozen=True, slots=True)
class _Due:
    """How a session stands to its summary."""

    waiting: tuple[TurnRow, ...]
    """Turns that it does not cover, oldest first."""
    why: str
    taken: int = 0
    """How many of the oldest of these it takes now; 0 where it is not due."""


async def conversation_summary(desk: Desk) -> Written:
    """Carry the session's summary on where its triggers say so."""
    owner, session = desk.turn.key.user, SessionId(desk.turn.manifest.session_id)
    standing = desk.kit.conversations.find(owner, session)
    if standing and standing.last >= desk.turn.key.number:
        return _nothing(standing, "it covers this turn: an earlier turn was run again")
    policy = policy_named(desk.kit.policy)
    due = _due(desk, standing, policy.summary)
    if not due.taken:
        return _nothing(standing, due.why)
    return await _renewed(desk, standing, due, policy)


async def _renewed(desk: Desk, standing: ConversationSummary | None, due: _Due, policy: WindowPolicy) -> Written:
    """One stretch of turns after the other; each is stored before the next begins, so that a failure takes nothing back.

    A call that the session's limits put off (DECISIONS 7) ends it for this turn: what is left waits for a later one.
    """
    left, put_back, refused = list(due.waiting[: due.taken]), list[str](), list[str]()
    deferred = ""
    while left and len(desk.results) < MOST_CALLS:
        part, texts = await _part(desk, left, standing, policy)
        try:
            made, result = await _carried_on(desk, standing, part, texts, policy.summary.words)
        except DeferredError as error:
            deferred = str(error)
            break
        standing = desk.kit.conversations.save(_record(desk, standing, part, made, result))
        put_back += made.restored
        refused += made.refused
        left = left[len(part) :]
    told_of = {"put_back": put_back, "refused": refused, "left_for_later": len(left), "deferred": deferred}
    facts = {"triggered": True, "why": due.why, **_facts(standing), **told_of}
    told = f"{len(put_back)} limits or decisions put back, {len(refused)} unfounded items taken out"
    return Written(
        facts={name: value for name, value in facts.items() if value not in ([], 0, "")},
        shown=shown(standing.digest) if standing else "",
        verdicts=(GateVerdict("facts_preserved", True, told),) if desk.results else (),
    )


def _nothing(standing: ConversationSummary | None, why: str) -> Written:
    return Written(facts={"triggered": False, "why": why, **_facts(standing)})


def _facts(summary: ConversationSummary | None) -> dict[str, Any]:
    if summary is None:
        return {}
    linked = {"linked": history.ranges(summary.linked)} if summary.linked else {}
    return {"covered_turns": history.ranges(summary.turns), "covered": len(summary.turns), "summary_tokens": summary.tokens, **linked}


def _due(desk: Desk, standing: ConversationSummary | None, triggers: SummaryTriggers) -> _Due:
    """A turn is two messages; this turn, whose row comes with its end, counts.

    The index is opened (12 ms) only where the number of turns alone does not say that nothing is due.
    """
    covered, kept = standing.last if standing else 0, -(-triggers.kept // 2)
    messages = 2 * (1 + sum(number > covered for number in history.earlier(desk)))
    if standing:
        before = 2 * len(standing.turns)
        why = f"{max(0, messages - 2 * kept)} messages since the summary; it is made again after {triggers.again_after}"
        if not triggers.due(messages=before + messages, tokens=0, summarised=before + 2 * kept):
            return _Due((), why)
        waiting = _waiting(desk, covered)
        return _Due(waiting, why, max(0, len(waiting) - kept))
    rule = f"the first summary is made at {triggers.messages}, or over {triggers.tokens} tokens"
    if messages <= triggers.kept:
        return _Due((), f"{messages} messages; {rule}")
    waiting = _waiting(desk, covered)
    tokens = sum(desk.kit.counter.count(row.text) for row in waiting) if messages < triggers.messages else 0
    is_due = triggers.due(messages=messages, tokens=tokens)
    return _Due(
        waiting, f"{messages} messages{f' of {tokens} tokens' if tokens else ''}; {rule}", max(0, len(waiting) - kept) if is_due else 0
    )


def _waiting(desk: Desk, covered: int) -> tuple[TurnRow, ...]:
    """The session's turns that the summary does not cover, this one last; all of a long session only where its newest all wait."""
    rows = history.of_session(desk)
    if len(rows) >= history.TOLD and rows[0].number > covered:
        rows = history.of_session(desk, limit=None)
    return (*(row for row in rows if row.number > covered), row_of(desk.turn.manifest, desk.turn.context, desk.turn.files))


async def _part(
    desk: Desk, rows: Sequence[TurnRow], standing: ConversationSummary | None, policy: WindowPolicy
) -> tuple[list[Exchange], list[str]]:
    """As many of the oldest exchanges as one call takes whole, at least one, and each as the call reads it."""
    count, budget = desk.kit.counter.count, desk.kit.cookbook.get(SUMMARIZER, desk.mode).recipe.token_budget
    room = budget.input - count(desk.query) - _FRAMES - (count(standing.digest.model_dump_json()) if standing else 0)
    exchanges: list[Exchange] = []
    texts: list[str] = []
    for row in rows:
        exchange = _exchange(desk, row)
        text = await _within(desk, exchange, row, policy.turn_tokens)
        room -= count(text) + 2
        if exchanges and room < 0:
            break
        exchanges.append(exchange)
        texts.append(text)
    return exchanges, texts


def _exchange(desk: Desk, row: TurnRow) -> Exchange:
    """What was said in a turn, credentials taken out; one that can not be read stands as its summary: nothing named it."""
    try:
        turn = desk.kit.turns.load(TurnKey(UserId(row.user_id), row.number))
    except (DocumentError, UnknownTurnError):
        return Exchange(row.number, row.created_at[:10], "", redacted(row.summary))
    said = told(turn.manifest, ContextDocument.parse(turn.context), turn.files)
    return Exchange(row.number, row.created_at[:10], redacted(said.get(0, "")), redacted(said.get(5, "")))


async def _within(desk: Desk, exchange: Exchange, row: TurnRow, limit: int) -> str:
    """An exchange of at most `limit` tokens as it is; a longer one compressed to it, else its stored summary."""
    if desk.kit.counter.count(exchange.text) <= limit:
        return exchange.text
    if desk.kit.summarizer:
        content = Content(f"{exchange.asked}\n\n{exchange.answered}", path_of(row.turn_id), ContentType.GENERIC)
        shrunk = await desk.kit.summarizer.shrink(content, target=limit, site=desk.site)
        if not shrunk.halted:
            return exchange.shortened(desk.taken(shrunk))
    return exchange.shortened(redacted(row.summary))


async def _carried_on(
    desk: Desk, standing: ConversationSummary | None, part: Sequence[Exchange], texts: Sequence[str], words: int
) -> tuple[Settled, CallResult]:
    """The digest with one more stretch of turns; raises HaltError where what the model wrote can not be mended."""
    documents = [InputDocument("turns", "\n\n".join(texts))]
    if standing:
        documents.insert(0, InputDocument("previous_summary", standing.digest.model_dump_json()))
    result = await desk.ask(SUMMARIZER, documents)
    made = settled(
        answer_of(result, ConversationDigest),
        part,
        standing.digest if standing else None,
        covered=(*(standing.turns if standing else ()), *(e.number for e in part)),
        linked=standing.linked if standing else (),
        words=words,
        counter=desk.kit.counter,
    )
    if not made.ok:
        raise desk.halt(
            InterventionType.FACT_LOSS,
            f"{SUMMARIZER}: {'; '.join(made.reasons)}",
            hint="the answer and the summary that stands are untouched; `pandora resume` tries again, and so does a later turn",
        )
    return made, result


def _record(
    desk: Desk, standing: ConversationSummary | None, part: Sequence[Exchange], made: Settled, result: CallResult
) -> ConversationSummary:
    return ConversationSummary(
        user_id=desk.turn.key.user,
        session_id=desk.turn.manifest.session_id,
        turns=(*(standing.turns if standing else ()), *(e.number for e in part)),
        linked=made.linked,
        digest=made.digest,
        tokens=desk.kit.counter.count(shown(made.digest)),
        created_at=stamp(desk.kit.clock().replace(microsecond=0)),
        made_by=desk.turn.key.turn_id,
        runtime=result.record.runtime,
        recipe=result.record.recipe,
        recipe_version=result.record.recipe_version,
        prompt_version=result.record.prompt_version,
        call_id=result.record.call_id,
    )
