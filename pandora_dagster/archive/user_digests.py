"""Level L3: the digest of each user, made from the parts of the narratives of the user's sessions.

A digest has fields (decisions, tools, errors, progress, open questions), the facts that the user stated with their dates, and a link to
each narrative with the hashes of its merged parts. It grows incrementally: the parts that are not merged yet go to the model in batches,
one call each, and code merges the answer into the fields (specification 003, "merge_digests"). Where a narrative no longer contains a
merged part, the digest is made again from all parts that exist.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pandora_dagster.archive.level_batches import digest_edges, merged_part_hashes, narrative_link_faults, sort_parts
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

PHASE = "user_digests"
RECIPE = "memory/l3_digest"
_DIGEST_BUILDER = L3DigestBuilder()


async def add_stated_facts(ledger: FactLedger, links: Iterable[TurnLink], subject: LevelSubject, ctx: LevelContext) -> FactLedger:
    """Return the ledger with the facts that the user stated in these turns, oldest first; one call for each turn that may state a fact.

    Recipe, screening and ledger are those of a live session's notable facts (specification 002, section 4). A fact that a later one
    contradicts keeps both dates (decision 7, docs/decisions/07-levels-link-every-fact.md). Raises HaltError, and DocumentError for an
    unreadable turn. A missing turn adds nothing.
    """
    called_turns: list[tuple[TurnKey, int]] = []
    for link in sorted(links, key=lambda link: (link.at, link.turn)):
        try:
            turn = ctx.deps.turns.load(TurnKey(subject.user, link.turn))
        except UnknownTurnError:
            continue
        phase = PhaseContext(PHASE, turn, ctx.background)
        user_words = own_words(phase.query)
        if not may_state_fact(user_words):
            continue
        result = await phase.ask(FACTS, [facts_document("known_facts", ledger.facts)])
        diff, refused = screen_facts(parsed_answer(result, FactsDiff), user_words, ledger.facts)
        origin = ChangeOrigin(turn.key.turn_id, turn.key.number, link.at, ctx.deps.now, result.record.call_id)
        called_turns.append((turn.key, turn.manifest.revision))
        ledger = resolve_by_date(apply_diff(ledger, diff, origin, max_facts=MAX_PROFILE_FACTS, refused=refused)[0])
    ctx.deps.calls.index_turns(called_turns)
    return ledger


async def digest_users(ctx: LevelContext, users: Iterable[UserId] | None = None, *, on_row: OnRow = lambda _: None) -> LevelReport:
    """Update the digests of these users, or of all, from the narratives of their sessions."""
    subjects = tuple(dict.fromkeys(map(LevelSubject, ctx.deps.turns.users() if users is None else users)))
    return await run_subjects(subjects, lambda subject: _digest_user(subject, ctx), ctx, phase=PHASE, on_row=on_row)


def digest_faults(ctx: LevelContext, user: UserId) -> tuple[str, ...]:
    """Faults of the check `sources_linked` at this level, a sentence each: parts that the digest lacks, links that are out of date.

    Parts that wait for the trigger of specification 003 are not reported. Raises DocumentError.
    """
    narratives, digest = tuple(ctx.levels.narratives(user)), ctx.levels.digest(user)
    merged = merged_part_hashes(digest, narratives) if digest else frozenset[str]()
    if merged is not None:
        due, unmerged = _due_parts(merged, narratives, user, ctx)
        waiting_sessions = {n.session_id for n in narratives if any(part in unmerged and part not in due for part in n.parts)}
        narratives = tuple(n for n in narratives if n.session_id not in waiting_sessions)
        links = tuple(link for link in digest.narratives if link.session_id not in waiting_sessions) if digest else ()
        digest = digest.model_copy(update={"narratives": links}) if digest else None
    return narrative_link_faults(digest, narratives)


async def _digest_user(subject: LevelSubject, ctx: LevelContext) -> LevelRow:
    """Merge the due parts into the digest of a user, and save it after each call."""
    narratives = tuple(ctx.levels.narratives(subject.user))
    stored, remake_reason = _stored_digest(subject.user, narratives, ctx)
    merged = merged_part_hashes(stored, narratives) if stored else None
    due, unmerged = _due_parts(merged or frozenset(), narratives, subject.user, ctx)
    due = unmerged if remake_reason else due
    if not unmerged:
        outcome = LevelOutcome.REMOVED if remake_reason else LevelOutcome.UNCHANGED
        return _record_digest(subject, stored, ctx, reason=remake_reason, outcome=outcome)
    waiting = len(unmerged) - len(due)
    wait_reason = f"{waiting} summaries wait until there are {ctx.rules.triggers.l3_trigger_summaries}, or their sessions are quiet"
    if not due:
        return _record_digest(subject, stored, ctx, reason=wait_reason, outcome=LevelOutcome.WAITING, waiting=waiting)
    digest, refused = stored, 0
    for batch in ctx.rules.triggers.l3_batches(due):
        digest, refused_items = await _merge_parts(subject, digest, batch, narratives, ctx)
        ctx.levels.save_digest(digest)
        refused += refused_items
    reason = remake_reason or (wait_reason if waiting else "")
    row = _record_digest(subject, digest, ctx, reason=reason, outcome=LevelOutcome.MADE, waiting=waiting)
    return replace(row, added=row.links - (len(stored.narratives) if stored else 0), refused=refused)


def _stored_digest(user: UserId, narratives: Sequence[SessionNarrative], ctx: LevelContext) -> tuple[UserDigest | None, str]:
    """The stored digest and "". A damaged or outdated one is deleted, to be made again: then None and the reason."""
    try:
        digest = ctx.levels.digest(user)
    except DocumentError as error:
        reason = f"made again: {error}"
    else:
        if digest is None or merged_part_hashes(digest, narratives) is not None:
            return digest, ""
        reason = "made again: it described narratives that are gone or changed"
    ctx.levels.remove_digest(user)
    return None, reason


def _due_parts(
    merged: frozenset[str], narratives: Sequence[SessionNarrative], user: UserId, ctx: LevelContext
) -> tuple[tuple[NarrativePart, ...], tuple[NarrativePart, ...]]:
    """The parts to merge now, and all parts that are not merged. Parts of quiet sessions are merged at once, the others as soon as
    `l3_trigger_summaries` parts are unmerged (specification 003, "Configuration")."""
    unmerged = sort_parts(part for n in narratives for part in n.parts if part.sha not in merged)
    if not unmerged or ctx.rules.triggers.is_l3_due(len(unmerged)):
        return unmerged, unmerged
    turns = ctx.deps.index.sessions(user)
    quiet = {part.sha for n in narratives if ctx.is_quiet(turns.get(n.session_id, ())) for part in n.parts}
    return tuple(part for part in unmerged if part.sha in quiet), unmerged


async def _merge_parts(
    subject: LevelSubject,
    digest: UserDigest | None,
    parts: Sequence[NarrativePart],
    narratives: Sequence[SessionNarrative],
    ctx: LevelContext,
) -> tuple[UserDigest, int]:
    """Merge these parts into a digest with one call. Returns it with the number of refused items of the answer; raises HaltError where no
    item is supported."""
    narrative_of = {part.sha: narrative for narrative in narratives for part in narrative.parts}
    texts = [part.text for part in parts]
    limit = ctx.rules.triggers.l3_max_digest_tokens
    sessions = len({narrative_of[part.sha].session_id for part in parts})
    days = f"{parts[0].links[0].at[:10]} to {parts[-1].links[-1].at[:10]}"
    task = InputDocument("task_context", f"conversations: {sessions}\ndays: {days}")
    result = await ctx.call(RECIPE, PHASE, subject, (task, InputDocument("summaries", number_items(texts))), limit=limit)
    answer, refused, reasons = check_level_digest(result.parsed, texts)
    if reasons:
        hint = "no narrative is changed; once this is resolved the next archival run tries again"
        raise ctx.halt(PHASE, subject, InterventionType.FACT_LOSS, f"{RECIPE}: {subject}: {'; '.join(reasons)}", hint=hint, call=result)
    merged = _DIGEST_BUILDER.merge_digests(digest.fields.model_dump(mode="json") if digest else {}, answer)
    fields = DigestFields.model_validate(trim_digest(merged, limit, ctx.deps.counter.count, _fields_json))
    ledger = digest.facts if digest else FactLedger(user_id=subject.user)
    facts = await add_stated_facts(ledger, [link for part in parts for link in part.links], subject, ctx)
    return UserDigest(
        user_id=subject.user,
        fields=fields,
        facts=facts,
        narratives=_narrative_links(digest.narratives if digest else (), parts, narrative_of, ctx.text_origin(result)),
        tokens=ctx.deps.counter.count(_fields_json(fields.model_dump(mode="json"))),
    ), len(refused)


def _narrative_links(
    links: Sequence[NarrativeLink], parts: Sequence[NarrativePart], narrative_of: dict[str, SessionNarrative], origin: TextOrigin
) -> tuple[NarrativeLink, ...]:
    """The links of a digest after a merge of these parts. `narrative_of`: hash of a part -> its narrative."""
    link_of_session = {link.session_id: link for link in links}
    for part in parts:
        narrative = narrative_of[part.sha]
        previous = link_of_session.get(narrative.session_id)
        link_of_session[narrative.session_id] = NarrativeLink(
            session_id=narrative.session_id,
            sha=narrative.sha,
            parts=(*(previous.parts if previous else ()), part.sha),
            tokens=(previous.tokens if previous else 0) + part.tokens,
            made=origin,
        )
    return tuple(link_of_session.values())


def _fields_json(fields: dict[str, object]) -> str:
    return DigestFields.model_validate(fields).model_dump_json()


def _record_digest(
    subject: LevelSubject, digest: UserDigest | None, ctx: LevelContext, *, reason: str, outcome: LevelOutcome, waiting: int = 0
) -> LevelRow:
    """Write the lineage of a digest, where lineage is kept, and return the row of its user."""
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
