"""Level L3: the digest of each user, into which new parts of narratives are merged, and the facts that the user stated, with dates.

Incremental: a few summaries a call (003 "merge_digests"). Where a narrative no longer contains a merged part, the digest is made again from
the narratives that exist.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pandora_dagster.archive.level_batches import digest_edges, merged_parts, sort_parts, unlinked_narratives
from pandora_dagster.archive.level_runs import LevelContext, OnRow, run_subjects
from pandora_dagster.compression.levels.level_check import check_level_digest, trim_digest
from pandora_dagster.compression.levels.level_prompts import L3DigestBuilder, number_items
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.lineage import digest_document
from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.user.summary_levels import (
    DigestFields,
    LevelOutcome,
    LevelReport,
    LevelRow,
    LevelSubject,
    NarrativeLink,
    NarrativePart,
    SessionNarrative,
    TextOrigin,
    TurnLink,
    UserDigest,
)
from pandora_dagster.contracts.user.user_memory import MAX_PROFILE_FACTS, FactLedger, FactsDiff
from pandora_dagster.documents.pasted_blocks import own_words
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.phases.core.phase_context import PhaseContext, parsed_answer
from pandora_dagster.phases.steps.session_facts import FACTS, facts_document, may_state_fact, screen_facts
from pandora_dagster.retrieval.known_facts import ChangeOrigin, apply_diff, resolve_by_date


async def with_stated_facts(ledger: FactLedger, links: Iterable[TurnLink], subject: LevelSubject, ctx: LevelContext) -> FactLedger:
    """The ledger with the facts that the user stated in these turns, oldest first; one call for each turn that may state a fact.

    The call, screening and ledger are those of a live session's notable facts (002 section 4). A fact that a later one contradicts keeps
    both dates (DECISIONS 7). Raises HaltError, and DocumentError for an unreadable turn. A missing turn states nothing.
    """
    called: list[tuple[TurnKey, int]] = []
    for link in sorted(links, key=lambda one: (one.at, one.turn)):
        try:
            turn = ctx.deps.turns.load(TurnKey(subject.user, link.turn))
        except UnknownTurnError:
            continue
        at = PhaseContext("user_digests", turn, ctx.background)
        words = own_words(at.query)
        if not may_state_fact(words):
            continue
        result = await at.ask(FACTS, [facts_document("known_facts", ledger.facts)])
        diff, refused = screen_facts(parsed_answer(result, FactsDiff), words, ledger.facts)
        now = ctx.deps.now
        occasion = ChangeOrigin(turn.key.turn_id, turn.key.number, link.at, now, result.record.call_id)
        called.append((turn.key, turn.manifest.revision))
        ledger = resolve_by_date(apply_diff(ledger, diff, occasion, most=MAX_PROFILE_FACTS, refused=refused)[0])
    ctx.deps.calls.index_turns(called)
    return ledger


PHASE = "user_digests"
BUILDER = "memory/l3_digest"
_DIGEST_BUILDER = L3DigestBuilder()


async def digest_users(ctx: LevelContext, which: Iterable[UserId] | None = None, *, on_row: OnRow = lambda _: None) -> LevelReport:
    """Update the digests of these users, or of all, from the narratives of their sessions."""
    users = which if which is not None else ctx.deps.turns.users()
    subjects = tuple(dict.fromkeys(map(LevelSubject, users)))
    return await run_subjects(subjects, lambda subject: _digest_user(subject, ctx), ctx, phase=PHASE, on_row=on_row)


def missing_narratives(ctx: LevelContext, user: UserId) -> tuple[str, ...]:
    """Faults of `sources_linked` at this level, a sentence each; summaries that wait for 003's trigger are not reported. Raises
    DocumentError.
    """
    narratives, digest = tuple(ctx.levels.narratives(user)), ctx.levels.digest(user)
    merged = merged_parts(digest, narratives) if digest else frozenset[str]()
    if merged is not None:
        due, left = _due_parts(merged, narratives, user, ctx)
        waiting = {n.session_id for n in narratives if any(part in left and part not in due for part in n.parts)}
        narratives = tuple(n for n in narratives if n.session_id not in waiting)
        links = tuple(link for link in digest.narratives if link.session_id not in waiting) if digest else ()
        digest = digest.model_copy(update={"narratives": links}) if digest else None
    return unlinked_narratives(digest, narratives)


async def _digest_user(subject: LevelSubject, ctx: LevelContext) -> LevelRow:
    narratives = tuple(ctx.levels.narratives(subject.user))
    digest, reason = _stored_digest(subject.user, narratives, ctx)
    known, merged = digest, merged_parts(digest, narratives) if digest else None
    due, left = _due_parts(merged or frozenset(), narratives, subject.user, ctx)
    due = left if reason else due
    if not left:
        return _level_row(subject, digest, ctx, reason=reason, outcome=LevelOutcome.REMOVED if reason else LevelOutcome.UNCHANGED)
    waits = f"{len(left) - len(due)} summaries wait until there are {ctx.rules.triggers.l3_trigger_summaries}, or their sessions are quiet"
    if not due:
        return _level_row(subject, digest, ctx, reason=waits, outcome=LevelOutcome.WAITING, waiting=len(left))
    refused = 0
    for batch in ctx.rules.triggers.l3_batches(due):
        digest, wrong = await _merge_parts(subject, digest, batch, narratives, ctx)
        ctx.levels.save_digest(digest)
        refused += wrong
    waiting = len(left) - len(due)
    reason = reason or (waits if waiting else "")
    added = len(digest.narratives if digest else ()) - len(known.narratives if known else ())
    return replace(
        _level_row(subject, digest, ctx, reason=reason, outcome=LevelOutcome.MADE, waiting=waiting), added=added, refused=refused
    )


def _stored_digest(user: UserId, narratives: Sequence[SessionNarrative], ctx: LevelContext) -> tuple[UserDigest | None, str]:
    """The stored digest. A damaged or outdated one is deleted, to be made again: then None and the reason."""
    try:
        found = ctx.levels.digest(user)
    except DocumentError as error:
        found, reason = None, f"made again: {error}"
    else:
        if found is None or merged_parts(found, narratives) is not None:
            return found, ""
        reason = "made again: it described narratives that are gone or changed"
    ctx.levels.remove_digest(user)
    return None, reason


def _due_parts(
    merged: frozenset[str], narratives: Sequence[SessionNarrative], user: UserId, ctx: LevelContext
) -> tuple[tuple[NarrativePart, ...], tuple[NarrativePart, ...]]:
    """The parts to merge now, and all parts that are not merged. Parts of quiet sessions are merged at once, the others as soon as
    `l3_trigger_summaries` of them wait (003 "Configuration")."""
    left = sort_parts(part for n in narratives for part in n.parts if part.sha not in merged)
    if not left or ctx.rules.triggers.is_l3_due(len(left)):
        return left, left
    turns = ctx.deps.index.sessions(user)
    resting = {part.sha for n in narratives if ctx.is_quiet(turns.get(n.session_id, ())) for part in n.parts}
    return tuple(part for part in left if part.sha in resting), left


async def _merge_parts(
    subject: LevelSubject,
    digest: UserDigest | None,
    parts: Sequence[NarrativePart],
    narratives: Sequence[SessionNarrative],
    ctx: LevelContext,
) -> tuple[UserDigest, int]:
    """The digest with these parts, and the number of refused items of the answer; raises HaltError where no item is supported."""
    session_of = {part.sha: narrative for narrative in narratives for part in narrative.parts}
    texts = [part.text for part in parts]
    limit = ctx.rules.triggers.l3_max_digest_tokens
    sessions = len({session_of[part.sha].session_id for part in parts})
    days = f"{parts[0].links[0].at[:10]} to {parts[-1].links[-1].at[:10]}"
    task = InputDocument("task_context", f"What one person asked for in {sessions} conversations, {days}.")
    result = await ctx.call(BUILDER, PHASE, subject, (task, InputDocument("summaries", number_items(texts))), limit=limit)
    answer, refused, reasons = check_level_digest(result.parsed, texts)
    if reasons:
        hint = "no narrative is changed; once this is resolved the next archival run tries again"
        raise ctx.halt(PHASE, subject, InterventionType.FACT_LOSS, f"{BUILDER}: {subject}: {'; '.join(reasons)}", hint=hint, call=result)
    both = _DIGEST_BUILDER.merge_digests(digest.fields.model_dump(mode="json") if digest else {}, answer)
    fields = DigestFields.model_validate(trim_digest(both, limit, ctx.deps.counter.count, _fields_json))
    ledger = digest.facts if digest else FactLedger(user_id=subject.user)
    facts = await with_stated_facts(ledger, [link for part in parts for link in part.links], subject, ctx)
    made = ctx.made_by(result)
    return UserDigest(
        user_id=subject.user,
        fields=fields,
        facts=facts,
        narratives=_narrative_links(digest.narratives if digest else (), parts, session_of, made),
        tokens=ctx.deps.counter.count(_fields_json(fields.model_dump(mode="json"))),
    ), len(refused)


def _narrative_links(
    known: Sequence[NarrativeLink], parts: Sequence[NarrativePart], session_of: dict[str, SessionNarrative], made: TextOrigin
) -> tuple[NarrativeLink, ...]:
    links = {link.session_id: link for link in known}
    for part in parts:
        narrative = session_of[part.sha]
        before = links.get(narrative.session_id)
        links[narrative.session_id] = NarrativeLink(
            session_id=narrative.session_id,
            sha=narrative.sha,
            parts=(*(before.parts if before else ()), part.sha),
            tokens=(before.tokens if before else 0) + part.tokens,
            made=made,
        )
    return tuple(links.values())


def _fields_json(fields: dict[str, object]) -> str:
    return DigestFields.model_validate(fields).model_dump_json()


def _level_row(
    subject: LevelSubject, digest: UserDigest | None, ctx: LevelContext, *, reason: str, outcome: LevelOutcome, waiting: int = 0
) -> LevelRow:
    if ctx.lineage and (digest or outcome is LevelOutcome.REMOVED):
        ctx.lineage.put_rows(digest_document(subject.user), digest_edges(digest) if digest else ())
    return LevelRow(
        subject,
        outcome,
        links=len(digest.narratives) if digest else 0,
        waiting=waiting,
        tokens_before=digest.tokens_before if digest else 0,
        tokens=digest.tokens if digest else 0,
        runtimes=tuple(dict.fromkeys(link.made.runtime for link in digest.narratives)) if digest else (),
        reason=reason,
    )
