"""The session's notable facts, kept after a turn is saved (002 section 4). Whatever fails here leaves the answer as it is (DECISIONS 16).

Knows when there is anything to keep, and what no ledger may hold whoever proposes it; the ledger itself is `selection.fact_ledger`'s.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pandora_dagster.compression.candidate import Candidate
from pandora_dagster.compression.grounding import Source, invented
from pandora_dagster.compression.language import content_stems
from pandora_dagster.contracts.calls import InputDocument, Item
from pandora_dagster.contracts.facts import (
    MAX_PROFILE_FACTS,
    MAX_SESSION_FACTS,
    FactChange,
    FactsDiff,
    FactUpsert,
    NotableFact,
    Profile,
    SessionFacts,
)
from pandora_dagster.contracts.ids import SessionId, TurnKey
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.phases.desk import Desk, Written, answer_of
from pandora_dagster.phases.saving import citations
from pandora_dagster.selection.fact_ledger import Occasion, applied, merged, taken_back
from pandora_dagster.text.credentials import holds_secret
from pandora_dagster.text.dates import stamp
from pandora_dagster.text.known_facts import ledger_lines
from pandora_dagster.text.pasted import own_words
from pandora_dagster.text.sentences import sentences
from pandora_dagster.text.tables import table

FACTS = "memory/session_facts"
PROFILE = "memory/profile"
_ASKS = re.compile(r"^\W*(?:what|which|who|whom|whose|where|when|why|how|do|does|did|is|are|was|were)\b", re.IGNORECASE)
_SHORTEST = 2
"""Words of a statement: `Window seat.` is one, `Thanks!` is none."""


async def session_facts(desk: Desk) -> Written:
    """Bring the session's ledger up to date with what the person said, and with consent the profile."""
    key, session = desk.turn.key, SessionId(desk.turn.manifest.session_id)
    known, said = desk.kit.facts.session(key.user, session), own_words(desk.query)
    linked = _linked(desk, known)
    if linked != known.linked_sessions:
        desk.kit.facts.change_session(key.user, session, lambda ledger: (_linking(ledger, linked), ()))
    if not may_state(said):
        return Written(facts={"session_facts": len(known.facts)})
    return await _kept(desk, known, said)


def may_state(said: str) -> bool:
    """Whether any sentence could state something: one that is no question. No call is made where none could."""
    return any(len(s.split()) >= _SHORTEST and not s.rstrip().endswith("?") and not _ASKS.match(s) for s in sentences(said))


async def _kept(desk: Desk, known: SessionFacts, said: str) -> Written:
    user, session = desk.turn.key.user, SessionId(known.session_id)
    profile = desk.kit.facts.profile(user)
    elsewhere = tuple(f for f in profile.facts if not f.origin.startswith(f"{session}/")) if profile else ()
    result = await desk.ask(FACTS, [facts_document("known_facts", (*elsewhere, *known.facts))])
    diff, refused = screened(answer_of(result, FactsDiff), said, (*elsewhere, *known.facts))
    occasion = _occasion(desk, result.record.call_id)
    audit: list[FactChange] = []

    def change(ledger: SessionFacts) -> tuple[SessionFacts, tuple[FactChange, ...]]:
        after, changes = applied(ledger, diff, occasion, most=MAX_SESSION_FACTS, refused=refused)
        audit.extend(changes)
        return after, changes

    after = desk.kit.facts.change_session(user, session, change)
    facts: dict[str, object] = {"session_facts": len(after.facts), "fact_changes": sum(c.kind != "refuse" for c in audit)}
    facts |= {"facts_refused": list(refused)} if refused else {}
    if profile is not None:
        facts["profile_facts"] = await _profile(desk, after, diff, occasion)
    rows = [(c.id, fact.category if (fact := c.after or c.before) else "", c.kind, c.reason) for c in audit]
    return Written(facts=facts, shown=table(("Fact", "Category", "Change", "Reason"), rows) if rows else "")


async def _profile(desk: Desk, session: SessionFacts, diff: FactsDiff, occasion: Occasion) -> int:
    """The profile with what this turn changed; over its limit it is consolidated. Returns how many facts it holds."""
    user = desk.turn.key.user
    replaced = {line.fact: line.replaces for line in diff.upsert if line.replaces}
    origins = [f"{session.session_id}/{id}" for id in diff.delete]

    def merge(profile: Profile) -> tuple[Profile, tuple[FactChange, ...]]:
        less, gone = taken_back(profile, diff.delete, origins, occasion)
        more, came = merged(less, session, replaced, occasion)
        return more, (*gone, *came)

    standing = desk.kit.facts.profile(user)
    grown = merge(standing)[0].facts if standing else ()
    smaller = FactsDiff()
    if len(grown) > MAX_PROFILE_FACTS:
        result = await desk.ask(PROFILE, [facts_document("profile_facts", grown)])
        smaller, _ = screened(answer_of(result, FactsDiff), "", grown)
        occasion = replace(occasion, call=result.record.call_id)

    def change(profile: Profile) -> tuple[Profile, tuple[FactChange, ...]]:
        more, changes = merge(profile)
        fitting, left_out = applied(more, smaller, occasion, most=MAX_PROFILE_FACTS)
        return fitting, (*changes, *left_out)

    changed = desk.kit.facts.change_profile(user, change)
    return len(changed.facts) if changed else 0


def screened(diff: FactsDiff, said: str, known: Sequence[NotableFact]) -> tuple[FactsDiff, tuple[str, ...]]:
    """The diff without what no ledger may hold, and why: credentials, values and words that neither the person nor a known fact says."""
    kept: list[FactUpsert] = []
    refused: list[str] = []
    source = Source("\n".join((said, *(f.fact for f in known))))
    stems = frozenset(content_stems(source.text))
    for line in diff.upsert:
        if reason := _unfit(line.fact, source, stems):
            refused.append(reason)
        else:
            kept.append(line)
    return diff.model_copy(update={"upsert": tuple(kept)}), tuple(refused)


def _unfit(fact: str, source: Source, stems: frozenset[str]) -> str:
    """Why a proposed fact stays out, without its words; "" where it may stay."""
    if holds_secret(fact):
        return "it holds a credential"
    if next(invented(Candidate(fact), source, frozenset()), None) is not None:
        return "it holds a value that the person did not say"
    own = content_stems(fact)
    return "" if not own or stems.intersection(own) else "no word of it was said"


def facts_document(name: str, facts: Iterable[NotableFact]) -> InputDocument:
    """Facts as items, so that a small room leaves the oldest out."""
    return InputDocument(name, items=tuple(Item(ledger_lines([f]), f.turn + (0.5 if f.current else 0.0), f"fact {f.id}") for f in facts))


def _occasion(desk: Desk, call: str) -> Occasion:
    now = stamp(desk.kit.clock().replace(microsecond=0))
    return Occasion(desk.turn.key.turn_id, desk.turn.key.number, desk.turn.manifest.created_at, now, call)


def _linking(ledger: SessionFacts, linked: tuple[str, ...]) -> SessionFacts:
    return ledger.model_copy(update={"linked_sessions": tuple(dict.fromkeys((*ledger.linked_sessions, *linked)))})


def _linked(desk: Desk, known: SessionFacts) -> tuple[str, ...]:
    """The sessions that answers of this session drew on, this turn's citations included; a cited turn that is gone links nothing."""
    found = dict.fromkeys(known.linked_sessions)
    for cited in citations(desk.turn):
        if cited["turn_id"]:
            try:
                key = TurnKey(desk.turn.key.user, int(str(cited["turn_id"]).removeprefix("turn_")))
                found[desk.kit.turns.manifest(key).session_id] = None
            except (DocumentError, UnknownTurnError):
                continue
    found.pop(desk.turn.manifest.session_id, None)
    return tuple(found)
