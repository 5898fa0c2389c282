"""Level L2: the narrative of each session's archived turns, a part for each batch of entries (003 "SummarizationPipeline").

Incremental: a part is valid while the entries of its turns are unchanged; new turns and turns of invalid parts are added.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from pandora_dagster.archive.level_batches import (
    LevelEntry,
    batches_due,
    narrative_edges,
    sort_entries,
    sort_parts,
    unlinked_turns,
    valid_parts,
)
from pandora_dagster.archive.level_runs import LevelContext, OnRow, run_subjects
from pandora_dagster.compression.levels.level_check import check_narrative
from pandora_dagster.compression.levels.level_prompts import number_items
from pandora_dagster.contracts.archive_records import TurnActivity
from pandora_dagster.contracts.enums import InterventionType, TurnState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.lineage import session_document
from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.user.summary_levels import LevelOutcome, LevelReport, LevelRow, LevelSubject, NarrativePart, SessionNarrative
from pandora_dagster.errors import DocumentError, UnknownTurnError

PHASE = "session_summaries"
SUMMARIZER = "memory/l2_summary"


async def summarise_sessions(
    ctx: LevelContext, which: Iterable[tuple[UserId, str]] | None = None, *, on_row: OnRow = lambda _: None
) -> LevelReport:
    """Update the narratives of sessions: `which` (user, session id), or all with archived turns or a narrative.

    Also removes an erased turn: its part is made again without it.
    """
    subjects = tuple(dict.fromkeys(LevelSubject(user, session) for user, session in which)) if which is not None else tuple(_subjects(ctx))
    of_user = user_sessions(ctx)
    return await run_subjects(
        subjects,
        lambda subject: _summarize_session(subject, of_user(subject.user).get(subject.session, ()), ctx),
        ctx,
        phase=PHASE,
        on_row=on_row,
    )


def user_sessions(ctx: LevelContext) -> Callable[[str], Mapping[str, tuple[TurnActivity, ...]]]:
    """A lookup of a user's sessions that caches the latest user: subjects come user by user."""
    return lru_cache(maxsize=1)(ctx.deps.index.sessions)


def missing_turns(ctx: LevelContext, subject: LevelSubject, turns: Sequence[TurnActivity]) -> tuple[str, ...]:
    """Faults of `sources_linked` at this level, a sentence each: archived turns without a link, links to missing or changed entries.

    Turns that wait for 003's triggers are not lost and not reported. `turns`: the session's turns. Raises DocumentError.
    """
    user, session = subject.user, subject.session
    narrative = ctx.levels.narrative(user, SessionId(session))
    entries = _entries(ctx, user, session, turns, narrative)
    waiting = _waiting_turns(ctx, narrative, entries, turns)
    return unlinked_turns(narrative, [e for e in entries if e.turn not in waiting])


def _subjects(ctx: LevelContext) -> Iterator[LevelSubject]:
    for user in ctx.deps.turns.users():
        sessions = ctx.deps.index.sessions(user)
        yield from (LevelSubject(user, s) for s, turns in sessions.items() if any(t.state == TurnState.ARCHIVED for t in turns))
        yield from (LevelSubject(user, session) for session in ctx.levels.sessions(user) if session not in sessions)


async def _summarize_session(subject: LevelSubject, turns: Sequence[TurnActivity], ctx: LevelContext) -> LevelRow:
    user, session = subject.user, subject.session
    known, reason = _stored_narrative(subject, ctx)
    entries = _entries(ctx, user, session, turns, known)
    kept = valid_parts(known, {e.turn: e for e in entries})
    made = known
    linked = {link.turn for part in kept for link in part.links}
    freed = {link.turn for link in known.links} - linked if known else set[int]()
    batches, waiting = _due_batches(ctx, [e for e in entries if e.turn not in linked | freed], turns)
    batches = (*ctx.rules.triggers.l2_batches(sort_entries(e for e in entries if e.turn in freed)), *batches)
    if known and len(kept) < len(known.parts):
        reason = f"{len(known.parts) - len(kept)} parts describe turns that are gone or changed"
        made = _save_parts(subject, kept, ctx)
    for batch in batches:
        kept = sort_parts((*kept, await _narrative_part(batch, subject, ctx)))
        made = _save_parts(subject, kept, ctx)
    if ctx.lineage and (made or known or reason):
        tokens = {entry.turn: ctx.deps.counter.count(entry.text) for entry in entries}
        ctx.lineage.put_rows(session_document(user, session), narrative_edges(made, entry_tokens=tokens) if made else ())
    if made == known and not reason:
        outcome = LevelOutcome.WAITING if waiting else LevelOutcome.UNCHANGED
    else:
        outcome = LevelOutcome.MADE if made else LevelOutcome.REMOVED
    return LevelRow(
        subject,
        outcome,
        links=len(made.links) if made else 0,
        added=sum(map(len, batches)),
        waiting=waiting,
        tokens_before=made.tokens_before if made else 0,
        tokens=made.tokens if made else 0,
        refused=sum(len(part.refused) for part in kept),
        runtimes=tuple(dict.fromkeys(part.made.runtime for part in kept)),
        reason=reason or (f"{waiting} archived turns wait until there are more, or the session is quiet" if waiting else ""),
    )


def _stored_narrative(subject: LevelSubject, ctx: LevelContext) -> tuple[SessionNarrative | None, str]:
    """The stored narrative; a damaged one is removed, to be made again from the turns."""
    try:
        return ctx.levels.narrative(subject.user, SessionId(subject.session)), ""
    except DocumentError as error:
        ctx.levels.remove_narrative(subject.user, SessionId(subject.session))
        return None, f"made again: {error}"


def _entries(
    ctx: LevelContext, user: UserId, session: str, turns: Iterable[TurnActivity], narrative: SessionNarrative | None
) -> tuple[LevelEntry, ...]:
    """The entries of archived turns and of linked turns, from their manifests. Raises DocumentError."""
    numbers = {t.key.number for t in turns if t.state == TurnState.ARCHIVED}
    numbers |= {link.turn for link in narrative.links} if narrative else set()
    found: list[LevelEntry] = []
    for number in sorted(numbers):
        try:
            manifest = ctx.deps.turns.manifest(TurnKey(user, number))
        except UnknownTurnError:
            continue
        if manifest.session_id == session:
            found.append(LevelEntry.of(manifest))
    return tuple(found)


def _due_batches(
    ctx: LevelContext, free: Sequence[LevelEntry], turns: Sequence[TurnActivity]
) -> tuple[tuple[tuple[LevelEntry, ...], ...], int]:
    newest = [t.key.number for t in sorted(turns, key=lambda t: (t.last_activity, t.key.number))]
    return batches_due(free, newest, ctx.rules.triggers, at_rest=ctx.is_quiet(turns))


def _waiting_turns(
    ctx: LevelContext, narrative: SessionNarrative | None, entries: Sequence[LevelEntry], turns: Sequence[TurnActivity]
) -> frozenset[int]:
    """The turns that a run would not add now."""
    linked = {link.turn for link in narrative.links} if narrative else set[int]()
    free = [e for e in entries if e.is_archived and e.turn not in linked]
    batches, _ = _due_batches(ctx, free, turns)
    return frozenset(e.turn for e in free) - {e.turn for batch in batches for e in batch}


async def _narrative_part(batch: Sequence[LevelEntry], subject: LevelSubject, ctx: LevelContext) -> NarrativePart:
    """One batch as a narrative that its entries support; raises HaltError where no sentence of the answer is supported."""
    before = sum(entry.tokens for entry in batch)
    limit, count = ctx.rules.triggers.l2_target(before), ctx.deps.counter.count
    texts = [entry.text for entry in batch]
    result = await ctx.call(SUMMARIZER, PHASE, subject, (InputDocument("entries", number_items(texts)),), limit=limit)
    heads = [entry.head for entry in batch]
    made = check_narrative(result.text, texts, heads=heads, max_tokens=limit, counter=ctx.deps.counter)
    if made.reasons:
        turns = f"turns {batch[0].turn} to {batch[-1].turn}"
        message = f"{SUMMARIZER}: {subject}: {turns}: {'; '.join((*made.reasons, *made.refused[:3]))}"
        hint = "no turn is changed; once this is resolved the next archival run tries again"
        raise ctx.halt(PHASE, subject, InterventionType.FACT_LOSS, message, hint=hint, call=result)
    return NarrativePart(
        links=tuple(entry.link for entry in batch),
        text=made.text,
        tokens_before=before,
        tokens=count(made.text),
        refused=made.refused,
        left_out=made.left_out,
        made=ctx.made_by(result),
    )


def _save_parts(subject: LevelSubject, parts: tuple[NarrativePart, ...], ctx: LevelContext) -> SessionNarrative | None:
    """Store the narrative of these parts and return it; without parts there is none any more."""
    if not parts:
        ctx.levels.remove_narrative(subject.user, SessionId(subject.session))
        return None
    made = SessionNarrative(user_id=subject.user, session_id=subject.session, parts=parts)
    ctx.levels.save_narrative(made)
    return made
