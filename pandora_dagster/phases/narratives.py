"""Level L2: the narrative of each session's archived turns, a part for each batch of entries (003 "SummarizationPipeline").

Incremental: a part stands for as long as its turns say what they said; what is new, or free again, is taken up.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from pandora_dagster.compression.levels.soundness import sound_narrative
from pandora_dagster.compression.levels.texts import numbered
from pandora_dagster.contracts.archive import Stands
from pandora_dagster.contracts.calls import CallRequest, CallSite, InputDocument
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.levels import LevelOutcome, LevelReport, LevelRow, NarrativePart, SessionNarrative, Subject
from pandora_dagster.contracts.lineage import Edge
from pandora_dagster.contracts.words import InterventionType, Priority, TurnState
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.phases.levels import LevelDesk, OnRow, each
from pandora_dagster.selection.levels import (
    Batches,
    Entry,
    batches_due,
    in_batches,
    in_order,
    narrative_edges,
    narrative_id,
    standing_parts,
    unlinked_turns,
)

PHASE = "session_summaries"
SUMMARIZER = "memory/l2_summary"


async def summarise_sessions(
    desk: LevelDesk, which: Iterable[tuple[UserId, str]] | None = None, *, on_row: OnRow = lambda row: None
) -> LevelReport:
    """Bring the narratives of sessions up to date: `which` (user, session id), or all that have archived turns or a narrative.

    Also the way to take an erased turn out: with the turn gone, its part is made again without it.
    """
    subjects = tuple(dict.fromkeys(Subject(user, session) for user, session in which)) if which is not None else tuple(_every(desk))
    of_user = of_one_user(desk)
    return await each(
        subjects,
        lambda subject: _summarised(subject, of_user(subject.user).get(subject.session, ()), desk),
        desk,
        phase=PHASE,
        on_row=on_row,
    )


def of_one_user(desk: LevelDesk) -> Callable[[str], Mapping[str, tuple[Stands, ...]]]:
    """A user's sessions, read once while the same user is asked for: subjects come user by user; a user's rows are a few words a turn."""
    return lru_cache(maxsize=1)(desk.kit.index.sessions)


def lost_turns(desk: LevelDesk, subject: Subject, stands: Sequence[Stands]) -> tuple[str, ...]:
    """What speaks against `no_fact_lost` at this level, a sentence each: archived turns without a link, links that lead nowhere or to
    another text. Turns that wait for 003's triggers are no loss and not told. `stands`: the session's turns. Raises DocumentError.
    """
    user, session = subject.user, subject.session
    narrative = desk.levels.narrative(user, SessionId(session))
    entries = _entries(desk, user, session, stands, narrative)
    waiting = _waiting(desk, narrative, entries, stands)
    return unlinked_turns(narrative, [e for e in entries if e.turn not in waiting])


def _every(desk: LevelDesk) -> Iterator[Subject]:
    for user in desk.kit.turns.users():
        sessions = desk.kit.index.sessions(user)
        yield from (Subject(user, s) for s, turns in sessions.items() if any(t.state == TurnState.ARCHIVED for t in turns))
        yield from (Subject(user, session) for session in desk.levels.sessions(user) if session not in sessions)


async def _summarised(subject: Subject, stands: Sequence[Stands], desk: LevelDesk) -> LevelRow:
    user, session = subject.user, subject.session
    known, reason = _known(subject, desk)
    entries = _entries(desk, user, session, stands, known)
    kept = standing_parts(known, {e.turn: e for e in entries})
    linked = {link.turn for part in kept for link in part.links}
    freed = {link.turn for link in known.links} - linked if known else set[int]()
    batches, waiting = _due(desk, [e for e in entries if e.turn not in linked | freed], stands)
    batches = (*in_batches([e for e in entries if e.turn in freed], desk.rules.triggers.l2_batch_size), *batches)
    if known and len(kept) < len(known.parts):
        reason = f"{len(known.parts) - len(kept)} parts told of turns that are gone or changed"
        _saved(subject, kept, desk)
    for batch in batches:
        kept = in_order((*kept, await _part(batch, subject, desk)))
        _saved(subject, kept, desk)
    row = _row(subject, kept, desk)
    if kept or known or reason:
        _told(kept, subject, entries, desk)
    if known and kept == known.parts:
        outcome = LevelOutcome.WAITING if waiting else LevelOutcome.UNCHANGED
    elif kept:
        outcome = LevelOutcome.MADE
    else:
        outcome = LevelOutcome.REMOVED if known or reason else LevelOutcome.WAITING if waiting else LevelOutcome.UNCHANGED
    reason = reason or (f"{waiting} archived turns wait until there are more, or the session is at rest" if waiting else "")
    return replace(row, outcome=outcome, added=sum(map(len, batches)), waiting=waiting, reason=reason)


def _known(subject: Subject, desk: LevelDesk) -> tuple[SessionNarrative | None, str]:
    """The narrative as it stands; a damaged one is made again from the turns."""
    try:
        return desk.levels.narrative(subject.user, SessionId(subject.session)), ""
    except DocumentError as error:
        desk.levels.remove_narrative(subject.user, SessionId(subject.session))
        return None, f"made again: {error}"


def _entries(
    desk: LevelDesk, user: UserId, session: str, stands: Iterable[Stands], narrative: SessionNarrative | None
) -> tuple[Entry, ...]:
    """The entries of archived turns, and of those that the narrative links, by what their manifests say. Raises DocumentError."""
    numbers = {t.key.number for t in stands if t.state == TurnState.ARCHIVED}
    numbers |= {link.turn for link in narrative.links} if narrative else set()
    found: list[Entry] = []
    for number in sorted(numbers):
        try:
            manifest = desk.kit.turns.manifest(TurnKey(user, number))
        except UnknownTurnError:
            continue
        if manifest.session_id == session:
            found.append(Entry.of(manifest))
    return tuple(found)


def _due(desk: LevelDesk, free: Sequence[Entry], stands: Sequence[Stands]) -> tuple[tuple[tuple[Entry, ...], ...], int]:
    newest = [t.key.number for t in sorted(stands, key=lambda t: (t.last_activity, t.key.number))]
    given = desk.rules.triggers
    rule = Batches(given.l2_trigger_entries, given.l2_batch_size, given.preserve_recent_n)
    return batches_due(free, newest, rule, at_rest=desk.at_rest(stands))


def _waiting(desk: LevelDesk, narrative: SessionNarrative | None, entries: Sequence[Entry], stands: Sequence[Stands]) -> frozenset[int]:
    """The turns that a run would not take up now."""
    linked = {link.turn for link in narrative.links} if narrative else set[int]()
    free = [e for e in entries if e.is_archived and e.turn not in linked]
    batches, _ = _due(desk, free, stands)
    return frozenset(e.turn for e in free) - {e.turn for batch in batches for e in batch}


async def _part(batch: Sequence[Entry], subject: Subject, desk: LevelDesk) -> NarrativePart:
    """One batch as a narrative that its entries bear out; raises HaltError where nothing of the answer is."""
    limit, count = desk.rules.triggers.l2_max_summary_tokens, desk.kit.counter.count
    texts = [entry.text for entry in batch]
    request = CallRequest(
        recipe=SUMMARIZER,
        query="",
        site=CallSite(PHASE, subject.user, subject.session, priority=Priority.NIGHT),
        documents=(InputDocument("entries", numbered(texts)),),
        variables={"max_tokens": str(limit)},
        policy=desk.kit.policy,
    )
    result = await desk.kit.execution.call(request)
    heads = [entry.head for entry in batch]
    made = sound_narrative(result.text, texts, heads=heads, max_tokens=limit, counter=desk.kit.counter)
    if made.reasons:
        turns = f"turns {batch[0].turn} to {batch[-1].turn}"
        message = f"{SUMMARIZER}: {subject}: {turns}: {'; '.join((*made.reasons, *made.refused[:3]))}"
        hint = "no turn is touched; once this is resolved the next night tries again"
        raise desk.halt(PHASE, subject, InterventionType.FACT_LOSS, message, hint=hint, call=result)
    return NarrativePart(
        links=tuple(entry.link for entry in batch),
        text=made.text,
        tokens_before=sum(map(count, texts)),
        tokens=count(made.text),
        refused=made.refused,
        left_out=made.left_out,
        made=desk.made_by(result),
    )


def _saved(subject: Subject, parts: tuple[NarrativePart, ...], desk: LevelDesk) -> None:
    if parts:
        desk.levels.save_narrative(SessionNarrative(user_id=subject.user, session_id=subject.session, parts=parts))
    else:
        desk.levels.remove_narrative(subject.user, SessionId(subject.session))


def _told(parts: tuple[NarrativePart, ...], subject: Subject, entries: Sequence[Entry], desk: LevelDesk) -> None:
    if not desk.lineage:
        return
    edges: tuple[Edge, ...] = ()
    if parts:
        tokens = {entry.turn: desk.kit.counter.count(entry.text) for entry in entries}
        edges = narrative_edges(SessionNarrative(user_id=subject.user, session_id=subject.session, parts=parts), entry_tokens=tokens)
    desk.lineage.put_rows(narrative_id(subject.user, subject.session), edges)


def _row(subject: Subject, parts: tuple[NarrativePart, ...], desk: LevelDesk) -> LevelRow:
    return LevelRow(
        subject,
        LevelOutcome.UNCHANGED,
        links=sum(len(part.links) for part in parts),
        tokens_before=sum(part.tokens_before for part in parts),
        tokens=sum(part.tokens for part in parts),
        refused=sum(len(part.refused) for part in parts),
        runtimes=tuple(dict.fromkeys(part.made.runtime for part in parts)),
    )
