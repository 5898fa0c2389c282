"""Level L2: the narrative of each session's archived turns (specification 003, "SummarizationPipeline").

A narrative is a list of parts. Each part is the answer of one call about a batch of entries (level L1: a few lines about one turn), with a
link to each of these turns and the hash of its entry. A part is valid while all its entries exist unchanged. A run keeps the valid parts,
makes the turns of invalid ones into new parts, and adds the archived turns that are due.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from pandora_dagster.archive.level_batches import (
    LevelEntry,
    batches_due,
    narrative_edges,
    sort_entries,
    sort_parts,
    turn_link_faults,
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
RECIPE = "memory/l2_summary"
_MAX_SHOWN_REFUSALS = 3
"""Refused sentences in the message of a halt."""


async def summarize_sessions(
    ctx: LevelContext, sessions: Iterable[tuple[UserId, str]] | None = None, *, on_row: OnRow = lambda _: None
) -> LevelReport:
    """Update the narratives of these sessions (user, session id), or of all that have archived turns or a narrative.

    An erased turn is removed: its part is made again without it.
    """
    named = _all_subjects(ctx) if sessions is None else (LevelSubject(user, session) for user, session in sessions)
    subjects = tuple(dict.fromkeys(named))
    sessions_of = user_sessions(ctx)
    return await run_subjects(
        subjects,
        lambda subject: _summarize_session(subject, sessions_of(subject.user).get(subject.session, ()), ctx),
        ctx,
        phase=PHASE,
        on_row=on_row,
    )


def user_sessions(ctx: LevelContext) -> Callable[[str], Mapping[str, tuple[TurnActivity, ...]]]:
    """A function from a user to the turns of each session. It caches the latest user, since subjects come user by user."""
    return lru_cache(maxsize=1)(ctx.deps.index.sessions)


def narrative_faults(ctx: LevelContext, subject: LevelSubject, turns: Sequence[TurnActivity]) -> tuple[str, ...]:
    """Faults of the check `sources_linked` at this level, a sentence each: archived turns without a link, links to missing or changed
    entries.

    Turns that wait for the triggers of specification 003 are not reported. `turns`: the session's turns. Raises DocumentError.
    """
    user, session = subject.user, subject.session
    narrative = ctx.levels.narrative(user, SessionId(session))
    entries = _entries(ctx, user, session, turns, narrative)
    waiting = _waiting_turns(ctx, narrative, entries, turns)
    return turn_link_faults(narrative, [e for e in entries if e.turn not in waiting])


def _all_subjects(ctx: LevelContext) -> Iterator[LevelSubject]:
    for user in ctx.deps.turns.users():
        sessions = ctx.deps.index.sessions(user)
        yield from (LevelSubject(user, s) for s, turns in sessions.items() if any(t.state == TurnState.ARCHIVED for t in turns))
        yield from (LevelSubject(user, session) for session in ctx.levels.sessions(user) if session not in sessions)


async def _summarize_session(subject: LevelSubject, turns: Sequence[TurnActivity], ctx: LevelContext) -> LevelRow:
    """Remove the invalid parts of a session's narrative and add the due ones; the narrative is saved after each call."""
    user, session = subject.user, subject.session
    stored, reason = _stored_narrative(subject, ctx)
    entries = _entries(ctx, user, session, turns, stored)
    parts = valid_parts(stored, {e.turn: e for e in entries})
    narrative = stored
    linked = {link.turn for part in parts for link in part.links}
    turns_of_invalid_parts = {link.turn for link in stored.links} - linked if stored else set[int]()
    due_batches, waiting = _due_batches(ctx, [e for e in entries if e.turn not in linked | turns_of_invalid_parts], turns)
    batches = (*ctx.rules.triggers.l2_batches(sort_entries(e for e in entries if e.turn in turns_of_invalid_parts)), *due_batches)
    if stored and len(parts) < len(stored.parts):
        reason = f"{len(stored.parts) - len(parts)} parts describe turns that are gone or changed"
        narrative = _save_parts(subject, parts, ctx)
    for batch in batches:
        parts = sort_parts((*parts, await _narrative_part(batch, subject, ctx)))
        narrative = _save_parts(subject, parts, ctx)
    if ctx.lineage and (narrative or stored or reason):
        tokens = {entry.turn: ctx.deps.counter.count(entry.text) for entry in entries}
        ctx.lineage.put_rows(session_document(user, session), narrative_edges(narrative, entry_tokens=tokens) if narrative else ())
    if narrative == stored and not reason:
        outcome = LevelOutcome.WAITING if waiting else LevelOutcome.UNCHANGED
    else:
        outcome = LevelOutcome.MADE if narrative else LevelOutcome.REMOVED
    return LevelRow(
        subject,
        outcome,
        links=len(narrative.links) if narrative else 0,
        added=sum(map(len, batches)),
        waiting=waiting,
        tokens_before=narrative.tokens_before if narrative else 0,
        tokens=narrative.tokens if narrative else 0,
        refused=sum(len(part.refused) for part in parts),
        runtimes=tuple(dict.fromkeys(part.made.runtime for part in parts)),
        reason=reason or (f"{waiting} archived turns wait until there are more, or the session is quiet" if waiting else ""),
    )


def _stored_narrative(subject: LevelSubject, ctx: LevelContext) -> tuple[SessionNarrative | None, str]:
    """The stored narrative and "". A damaged one is removed, to be made again from the turns: then None and the reason."""
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
    entries: list[LevelEntry] = []
    for number in sorted(numbers):
        try:
            manifest = ctx.deps.turns.manifest(TurnKey(user, number))
        except UnknownTurnError:
            continue
        if manifest.session_id == session:
            entries.append(LevelEntry.of(manifest))
    return tuple(entries)


def _due_batches(
    ctx: LevelContext, unlinked: Sequence[LevelEntry], turns: Sequence[TurnActivity]
) -> tuple[tuple[tuple[LevelEntry, ...], ...], int]:
    """The batches of unlinked entries to add now, and the number of entries that wait. `turns`: the session's turns."""
    newest = [t.key.number for t in sorted(turns, key=lambda t: (t.last_activity, t.key.number))]
    return batches_due(unlinked, newest, ctx.rules.triggers, is_quiet=ctx.is_quiet(turns))


def _waiting_turns(
    ctx: LevelContext, narrative: SessionNarrative | None, entries: Sequence[LevelEntry], turns: Sequence[TurnActivity]
) -> frozenset[int]:
    """The turns that a run would not add now."""
    linked = {link.turn for link in narrative.links} if narrative else set[int]()
    unlinked = [e for e in entries if e.is_archived and e.turn not in linked]
    batches, _ = _due_batches(ctx, unlinked, turns)
    return frozenset(e.turn for e in unlinked) - {e.turn for batch in batches for e in batch}


async def _narrative_part(batch: Sequence[LevelEntry], subject: LevelSubject, ctx: LevelContext) -> NarrativePart:
    """Summarize one batch with one call; a sentence that no entry supports is removed. Raises HaltError where none is supported."""
    before = sum(entry.tokens for entry in batch)
    limit, count = ctx.rules.triggers.l2_target(before), ctx.deps.counter.count
    texts = [entry.text for entry in batch]
    result = await ctx.call(RECIPE, PHASE, subject, (InputDocument("entries", number_items(texts)),), limit=limit)
    heads = [entry.head for entry in batch]
    checked = check_narrative(result.text, texts, heads=heads, max_tokens=limit, counter=ctx.deps.counter)
    if checked.reasons:
        turns = f"turns {batch[0].turn} to {batch[-1].turn}"
        message = f"{RECIPE}: {subject}: {turns}: {'; '.join((*checked.reasons, *checked.refused[:_MAX_SHOWN_REFUSALS]))}"
        hint = "no turn is changed; once this is resolved the next archival run tries again"
        raise ctx.halt(PHASE, subject, InterventionType.FACT_LOSS, message, hint=hint, call=result)
    return NarrativePart(
        links=tuple(entry.link for entry in batch),
        text=checked.text,
        tokens_before=before,
        tokens=count(checked.text),
        refused=checked.refused,
        left_out=checked.left_out,
        made=ctx.text_origin(result),
    )


def _save_parts(subject: LevelSubject, parts: tuple[NarrativePart, ...], ctx: LevelContext) -> SessionNarrative | None:
    """Store the narrative of these parts and return it; without parts, remove it and return None."""
    if not parts:
        ctx.levels.remove_narrative(subject.user, SessionId(subject.session))
        return None
    narrative = SessionNarrative(user_id=subject.user, session_id=subject.session, parts=parts)
    ctx.levels.save_narrative(narrative)
    return narrative
