"""The facts known of a user or stated in a session, with a diff applied (specification 002, section 4): their ids, limits and order."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pandora_dagster.contracts.user.user_memory import (
    ChangeKind,
    FactChange,
    FactLedger,
    FactsDiff,
    FactUpsert,
    NotableFact,
    Profile,
    SessionFacts,
)
from pandora_dagster.language.cues import negations
from pandora_dagster.language.stop_words import function_words
from pandora_dagster.language.terms import TermReader

_DEGREE_WORD = re.compile(r"\b(?:hardly|rarely|seldom|barely|scarcely|almost|sometimes|only)\b", re.IGNORECASE)
"""Words that change the meaning of a statement as a denial does."""
L = TypeVar("L", bound=FactLedger)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ChangeOrigin:
    """When and by what a ledger changes."""

    turn_id: str
    number: int
    stated_at: str
    """When the turn began."""
    at: str
    """When the change is made."""
    call: str = ""


@dataclass(slots=True)
class _LedgerChange(Generic[L]):
    """A ledger while it changes: its facts by id, and the lines of its audit so far."""

    ledger: L
    origin: ChangeOrigin
    prefix: str
    facts: dict[str, NotableFact] = field(default_factory=dict[str, NotableFact])
    audit: list[FactChange] = field(default_factory=list[FactChange])
    next_id: int = 1

    def record(self, kind: ChangeKind, id: str, before: NotableFact | None, after: NotableFact | None, reason: str = "") -> None:
        origin, number = self.origin, self.ledger.changes + len(self.audit) + 1
        change = FactChange(change=number, at=origin.at, turn=origin.turn_id, call=origin.call, kind=kind, id=id)
        self.audit.append(change.model_copy(update={"before": before, "after": after, "reason": reason}))

    def add(self, fact: NotableFact) -> NotableFact:
        """Add a fact under the next free id."""
        added = fact.model_copy(update={"id": f"{self.prefix}{self.next_id}"})
        self.next_id += 1
        self.facts[added.id] = added
        self.record("add", added.id, None, added)
        return added

    def change(self, kind: ChangeKind, id: str, **fields: object) -> None:
        before = self.facts[id]
        after = before.model_copy(update=fields)
        if after != before:
            self.facts[id] = after
            self.record(kind, id, before, after)

    def remove(self, kind: ChangeKind, id: str, reason: str = "") -> None:
        self.record(kind, id, self.facts.pop(id), None, reason)

    def result(self) -> tuple[L, tuple[FactChange, ...]]:
        if not self.audit:
            return self.ledger, ()
        changed = {"facts": tuple(self.facts.values()), "next_id": self.next_id, "changes": self.audit[-1].change}
        return self.ledger.model_copy(update=changed), tuple(self.audit)


def _begin_change(ledger: L, origin: ChangeOrigin) -> _LedgerChange[L]:
    prefix = "p" if isinstance(ledger, Profile) else "f"
    return _LedgerChange(ledger, origin, prefix, {f.id: f for f in ledger.facts}, [], ledger.next_id)


def apply_diff(
    ledger: L, diff: FactsDiff, origin: ChangeOrigin, *, max_facts: int, refused: Sequence[str] = ()
) -> tuple[L, tuple[FactChange, ...]]:
    """The ledger after a diff, and the audit of its changes; the same diff again changes nothing more.

    Over `max_facts` facts, those that no longer hold are removed first, then the oldest. `refused`: the reasons of facts that were refused.
    """
    changing = _begin_change(ledger, origin)
    for reason in refused:
        changing.record("refuse", "", None, None, reason)
    for id in diff.delete:
        if id in changing.facts:
            changing.remove("delete", id, "the user took it back")
    for upsert in diff.upsert:
        _apply_upsert(changing, upsert)
    _apply_limit(changing, max_facts)
    return changing.result()


def _apply_upsert(changing: _LedgerChange[L], upsert: FactUpsert) -> None:
    """A known fact in better words keeps its id; one with another value than the fact that it names is added and supersedes that fact."""
    number, stated_at = changing.origin.number, changing.origin.stated_at
    existing = changing.facts.get(upsert.id or "")
    if existing and not changes_value(existing.fact, upsert.fact, TermReader()):
        turn = {"turn": number, "stated_at": stated_at} if changing.prefix == "f" else {}
        changing.change("reword", existing.id, category=upsert.category, fact=upsert.fact, **turn)
        return
    if any(f.is_current and has_same_words(f.fact, upsert.fact) for f in changing.facts.values()):
        return
    replaced = _current_fact(changing, upsert.replaces or upsert.id or "")
    added = changing.add(NotableFact(id="new", category=upsert.category, fact=upsert.fact, turn=number, stated_at=stated_at))
    if replaced and replaced.is_current:
        changing.change("supersede", replaced.id, superseded_by=added.id, superseded_at=stated_at)


def _current_fact(changing: _LedgerChange[L], id: str) -> NotableFact | None:
    """The fact of this id, or the fact that superseded it since."""
    fact = changing.facts.get(id)
    while fact and fact.superseded_by in changing.facts:
        fact = changing.facts[fact.superseded_by]
    return fact


def _apply_limit(changing: _LedgerChange[L], max_facts: int) -> None:
    excess = len(changing.facts) - max_facts
    order = sorted(changing.facts.values(), key=lambda f: (f.is_current, f.turn, int(f.id[1:])))
    for fact in order[: max(0, excess)]:
        changing.remove("leave_out", fact.id, f"over {max_facts} facts")


def merge_session_facts(
    profile: Profile, session: SessionFacts, replaced: dict[str, str], origin: ChangeOrigin
) -> tuple[Profile, tuple[FactChange, ...]]:
    """The profile with the facts that the session's turn stated: new ones added, changed ones changed (specification 002, section 4, simple
    merge).

    Facts of other turns do not change: one that a consolidation left out does not come back. `replaced`: words of a new fact ->
    profile id that it contradicts. The result may be over its limit, which `apply_diff` applies afterwards.
    """
    changing = _begin_change(profile, origin)
    profile_ids = {f.origin: f.id for f in profile.facts}
    new_ids = {f.id for f in session.facts if f.turn == origin.number > profile.after_turn}
    changed_facts = {f"{session.session_id}/{f.id}": f for f in session.facts if f.id in new_ids or f.superseded_by in new_ids}
    for fact_origin, fact in changed_facts.items():
        if fact_origin in profile_ids:
            if fact.id in new_ids:
                changing.change(
                    "reword", profile_ids[fact_origin], category=fact.category, fact=fact.fact, turn=fact.turn, stated_at=fact.stated_at
                )
        elif fact.is_current and not any(f.is_current and has_same_words(f.fact, fact.fact) for f in changing.facts.values()):
            replaced_fact = changing.facts.get(replaced.get(fact.fact, ""))
            added = changing.add(fact.model_copy(update={"origin": fact_origin}))
            profile_ids[fact_origin] = added.id
            if replaced_fact and replaced_fact.is_current:
                changing.change("supersede", replaced_fact.id, superseded_by=added.id, superseded_at=fact.stated_at)
    for fact_origin, fact in changed_facts.items():
        newer = profile_ids.get(f"{session.session_id}/{fact.superseded_by}")
        if newer and profile_ids.get(fact_origin) in changing.facts:
            changing.change("supersede", profile_ids[fact_origin], superseded_by=newer, superseded_at=fact.superseded_at)
    return changing.result()


def remove_facts(
    profile: Profile, ids: Sequence[str], origins: Sequence[str], origin: ChangeOrigin
) -> tuple[Profile, tuple[FactChange, ...]]:
    """The profile without facts of these ids, and without those that came from facts of these origins."""
    changing = _begin_change(profile, origin)
    for fact in profile.facts:
        if fact.id in ids or fact.origin in origins:
            changing.remove("delete", fact.id, "the user took it back")
    return changing.result()


def resolve_by_date(ledger: L) -> L:
    """The ledger where of two facts that contradict each other the newer is current, in whatever order they were added."""
    facts_by_id = {f.id: f for f in ledger.facts}
    for fact in ledger.facts:
        successor = facts_by_id.get(fact.superseded_by or "")
        if successor and successor.is_current and successor.stated_at < fact.stated_at:
            facts_by_id[fact.id] = facts_by_id[fact.id].model_copy(update={"superseded_by": None, "superseded_at": None})
            facts_by_id[successor.id] = successor.model_copy(update={"superseded_by": fact.id, "superseded_at": fact.stated_at})
    return ledger.model_copy(update={"facts": tuple(facts_by_id.values())})


def has_same_words(first: str, second: str) -> bool:
    """Whether two facts differ in case and punctuation only."""
    return _WORD.findall(first.lower()) == _WORD.findall(second.lower())


def changes_value(old: str, new: str, reader: TermReader) -> bool:
    """Whether `new` states another value than `old`, so that it replaces it and is no better wording of it.

    It does where each has a term that the other lacks, or where only one has a figure, a name, a denial or a word of degree.
    """
    old_terms, new_terms = _content_terms(old, reader), _content_terms(new, reader)
    if old_terms - new_terms and new_terms - old_terms:
        return True
    if _polarity(old) != _polarity(new):
        return True
    names = {term for word in _WORD.findall(f"{old} {new}") if word[0].isupper() for term in reader.counts(word)}
    return any(term in names or any(c.isdigit() for c in term) for term in old_terms ^ new_terms)


def _content_terms(text: str, reader: TermReader) -> set[str]:
    """The terms of a text that are no form of a function word: `likes` is one of `like`."""
    return set(reader.counts(text)) - function_words("en")


def _polarity(text: str) -> tuple[bool, frozenset[str]]:
    return bool(negations(text)), frozenset(_DEGREE_WORD.findall(text.lower()))
