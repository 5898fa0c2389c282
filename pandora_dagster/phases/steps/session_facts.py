"""The session's notable facts, stored after a turn is saved (specification 002, section 4). A failure here does not change the answer
(decision 16, docs/decisions/16-the-answer-comes-first.md).

This module decides when to call the model, and which proposed facts no ledger may hold; `retrieval.known_facts` changes the ledger.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pandora_dagster.compression.verification.facts import Outcome
from pandora_dagster.compression.verification.text_facts import TextFacts, find_facts
from pandora_dagster.compression.verification.verifier import find_unsupported
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.model_calls import InputDocument, Item
from pandora_dagster.contracts.user.user_memory import (
    MAX_PROFILE_FACTS,
    MAX_SESSION_FACTS,
    FactChange,
    FactsDiff,
    FactUpsert,
    NotableFact,
    Profile,
    SessionFacts,
)
from pandora_dagster.documents.markdown import table
from pandora_dagster.documents.pasted_blocks import own_words
from pandora_dagster.documents.redaction.credentials import holds_secret
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.language.sentences import sentences
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput, parsed_answer
from pandora_dagster.phases.gather.fact_lines import ledger_lines
from pandora_dagster.phases.steps.turn_completion import citations
from pandora_dagster.retrieval.known_facts import ChangeOrigin, apply_diff, merge_session_facts, remove_facts

FACTS = "memory/session_facts"
PROFILE = "memory/profile"
_QUESTION_START = re.compile(r"^\W*(?:what|which|who|whom|whose|where|when|why|how|do|does|did|is|are|was|were)\b", re.IGNORECASE)
_MIN_STATEMENT_WORDS = 2
"""Fewest words of a statement: `Window seat.` is one, `Thanks!` is none."""


async def session_facts(ctx: PhaseContext) -> PhaseOutput:
    """Bring the session's ledger up to date with what the user said, and with consent the profile."""
    key, session = ctx.turn.key, SessionId(ctx.turn.manifest.session_id)
    ledger, user_text = ctx.deps.facts.session(key.user, session), own_words(ctx.query)
    linked = _linked_sessions(ctx, ledger)
    if linked != ledger.linked_sessions:
        ctx.deps.facts.change_session(key.user, session, lambda stored: (_add_linked_sessions(stored, linked), ()))
    if not may_state_fact(user_text):
        return PhaseOutput(facts={"session_facts": len(ledger.facts)})
    return await _update_ledger(ctx, ledger, user_text)


def may_state_fact(user_text: str) -> bool:
    """Whether any sentence could state a fact, i.e. is not a question; without one no call is made."""
    return any(
        len(s.split()) >= _MIN_STATEMENT_WORDS and not s.rstrip().endswith("?") and not _QUESTION_START.match(s)
        for s in sentences(user_text)
    )


async def _update_ledger(ctx: PhaseContext, ledger: SessionFacts, user_text: str) -> PhaseOutput:
    user, session = ctx.turn.key.user, SessionId(ledger.session_id)
    profile = ctx.deps.facts.profile(user)
    other_facts = tuple(f for f in profile.facts if not f.origin.startswith(f"{session}/")) if profile else ()
    result = await ctx.ask(FACTS, [facts_document("known_facts", (*other_facts, *ledger.facts))])
    diff, refused = screen_facts(parsed_answer(result, FactsDiff), user_text, (*other_facts, *ledger.facts))
    change_origin = _change_origin(ctx, result.record.call_id)
    audit: list[FactChange] = []

    def change(stored: SessionFacts) -> tuple[SessionFacts, tuple[FactChange, ...]]:
        after, changes = apply_diff(stored, diff, change_origin, max_facts=MAX_SESSION_FACTS, refused=refused)
        audit.extend(changes)
        return after, changes

    after = ctx.deps.facts.change_session(user, session, change)
    facts: dict[str, object] = {"session_facts": len(after.facts), "fact_changes": sum(c.kind != "refuse" for c in audit)}
    facts |= {"facts_refused": list(refused)} if refused else {}
    if profile is not None:
        facts["profile_facts"] = await _update_profile(ctx, after, diff, change_origin)
    rows = [(c.id, fact.category if (fact := c.after or c.before) else "", c.kind, c.reason) for c in audit]
    return PhaseOutput(facts=facts, shown=table(("Fact", "Category", "Change", "Reason"), rows) if rows else "")


async def _update_profile(ctx: PhaseContext, session: SessionFacts, diff: FactsDiff, change_origin: ChangeOrigin) -> int:
    """The profile with what this turn changed; over its limit it is consolidated. Returns the number of its facts."""
    user = ctx.turn.key.user
    replaced = {line.fact: line.replaces for line in diff.upsert if line.replaces}
    origins = [f"{session.session_id}/{id}" for id in diff.delete]

    def merge(profile: Profile) -> tuple[Profile, tuple[FactChange, ...]]:
        reduced, removals = remove_facts(profile, diff.delete, origins, change_origin)
        merged, additions = merge_session_facts(reduced, session, replaced, change_origin)
        return merged, (*removals, *additions)

    profile = ctx.deps.facts.profile(user)
    merged_facts = merge(profile)[0].facts if profile else ()
    consolidation = FactsDiff()
    if len(merged_facts) > MAX_PROFILE_FACTS:
        result = await ctx.ask(PROFILE, [facts_document("profile_facts", merged_facts)])
        consolidation, _ = screen_facts(parsed_answer(result, FactsDiff), "", merged_facts)
        change_origin = replace(change_origin, call=result.record.call_id)

    def change(profile: Profile) -> tuple[Profile, tuple[FactChange, ...]]:
        merged, changes = merge(profile)
        consolidated, consolidations = apply_diff(merged, consolidation, change_origin, max_facts=MAX_PROFILE_FACTS)
        return consolidated, (*changes, *consolidations)

    stored = ctx.deps.facts.change_profile(user, change)
    return len(stored.facts) if stored else 0


def screen_facts(diff: FactsDiff, user_text: str, known: Sequence[NotableFact]) -> tuple[FactsDiff, tuple[str, ...]]:
    """The diff without credentials and without values and words that neither the user nor a known fact states; the reasons."""
    accepted: list[FactUpsert] = []
    refused: list[str] = []
    source = find_facts("\n".join((user_text, *(f.fact for f in known))))
    for line in diff.upsert:
        if reason := _rejection_reason(line.fact, source):
            refused.append(reason)
        else:
            accepted.append(line)
    return diff.model_copy(update={"upsert": tuple(accepted)}), tuple(refused)


def _rejection_reason(fact: str, source: TextFacts) -> str:
    """Why a proposed fact stays out, without its words; "" where it may stay."""
    if holds_secret(fact):
        return "it holds a credential"
    if any(verdict.outcome is Outcome.INVENTED for verdict in find_unsupported(source, fact)):
        return "it holds a value that the user did not state"
    return "" if source.index.share(fact) else "it has no word of the user"


def facts_document(name: str, facts: Iterable[NotableFact]) -> InputDocument:
    """Facts as items; where the budget is short, the oldest are left out."""
    return InputDocument(name, items=tuple(Item(ledger_lines([f]), f.turn + (0.5 if f.is_current else 0.0), f"fact {f.id}") for f in facts))


def _change_origin(ctx: PhaseContext, call: str) -> ChangeOrigin:
    """The turn and the call that the audit names for a change, and the time."""
    now = ctx.deps.now
    return ChangeOrigin(ctx.turn.key.turn_id, ctx.turn.key.number, ctx.turn.manifest.created_at, now, call)


def _add_linked_sessions(ledger: SessionFacts, linked: tuple[str, ...]) -> SessionFacts:
    return ledger.model_copy(update={"linked_sessions": tuple(dict.fromkeys((*ledger.linked_sessions, *linked)))})


def _linked_sessions(ctx: PhaseContext, ledger: SessionFacts) -> tuple[str, ...]:
    """The sessions whose turns are cited in this session, this turn included; a citation of a missing turn is ignored."""
    sessions = dict.fromkeys(ledger.linked_sessions)
    for cited in citations(ctx.turn):
        if cited["turn_id"]:
            try:
                key = TurnKey(ctx.turn.key.user, int(str(cited["turn_id"]).removeprefix("turn_")))
                sessions[ctx.deps.turns.manifest(key).session_id] = None
            except (DocumentError, UnknownTurnError):
                continue
    sessions.pop(ctx.turn.manifest.session_id, None)
    return tuple(sessions)


# Consent to a profile across sessions, and its erasure (specification 002, section 4). A profile holds only later facts.


def give_consent(deps: PhaseDependencies, user: UserId) -> None:
    """Store facts of later turns across sessions from now on; an earlier consent stays as it is."""
    deps.facts.consent(user, at=deps.now, after_turn=_newest_turn(deps, user))


def erase_facts(deps: PhaseDependencies, user: UserId, *, sessions: bool = False) -> tuple[int, int]:
    """Erase the profile's facts, with `sessions` those of all sessions too; returns the number of each."""
    return deps.facts.erase_profile(user, after_turn=_newest_turn(deps, user)), deps.facts.erase_sessions(user) if sessions else 0


def _newest_turn(deps: PhaseDependencies, user: UserId) -> int:
    """The number of the user's newest turn, by the documents."""
    return max((key.number for key in deps.turns.keys(user)), default=0)
