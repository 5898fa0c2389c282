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
"""Words that turn a statement as a denial does."""
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
    """A ledger while it changes: its facts by id, and what the audit says so far."""

    ledger: L
    occasion: ChangeOrigin
    prefix: str
    facts: dict[str, NotableFact] = field(default_factory=dict[str, NotableFact])
    audit: list[FactChange] = field(default_factory=list[FactChange])
    next_id: int = 1

    def note(self, kind: ChangeKind, id: str, before: NotableFact | None, after: NotableFact | None, reason: str = "") -> None:
        occasion, number = self.occasion, self.ledger.changes + len(self.audit) + 1
        change = FactChange(change=number, at=occasion.at, turn=occasion.turn_id, call=occasion.call, kind=kind, id=id)
        self.audit.append(change.model_copy(update={"before": before, "after": after, "reason": reason}))

    def add(self, fact: NotableFact) -> NotableFact:
        """Add a fact under the next free id."""
        named = fact.model_copy(update={"id": f"{self.prefix}{self.next_id}"})
        self.next_id += 1
        self.facts[named.id] = named
        self.note("add", named.id, None, named)
        return named

    def change(self, kind: ChangeKind, id: str, **fields: object) -> None:
        before = self.facts[id]
        after = before.model_copy(update=fields)
        if after != before:
            self.facts[id] = after
            self.note(kind, id, before, after)

    def remove(self, kind: ChangeKind, id: str, reason: str = "") -> None:
        self.note(kind, id, self.facts.pop(id), None, reason)

    def result(self) -> tuple[L, tuple[FactChange, ...]]:
        if not self.audit:
            return self.ledger, ()
        changed = {"facts": tuple(self.facts.values()), "next_id": self.next_id, "changes": self.audit[-1].change}
        return self.ledger.model_copy(update=changed), tuple(self.audit)


def _begin_change(ledger: L, occasion: ChangeOrigin) -> _LedgerChange[L]:
    prefix = "p" if isinstance(ledger, Profile) else "f"
    return _LedgerChange(ledger, occasion, prefix, {f.id: f for f in ledger.facts}, [], ledger.next_id)


def apply_diff(
    ledger: L, diff: FactsDiff, occasion: ChangeOrigin, *, most: int, refused: Sequence[str] = ()
) -> tuple[L, tuple[FactChange, ...]]:
    """The ledger after a diff, and what the audit says of it; the same diff again changes nothing more.

    Over `most` facts those that no longer hold go first, then the oldest. `refused`: reasons for what was not let into the diff.
    """
    changing = _begin_change(ledger, occasion)
    for reason in refused:
        changing.note("refuse", "", None, None, reason)
    for id in diff.delete:
        if id in changing.facts:
            changing.remove("delete", id, "the user took it back")
    for line in diff.upsert:
        _upsert(changing, line)
    _apply_limit(changing, most)
    return changing.result()


def _upsert(changing: _LedgerChange[L], line: FactUpsert) -> None:
    """A known fact in better words keeps its id; one that says another value than the fact it names is new, and takes its place."""
    origin_of_change = changing.occasion
    existing = changing.facts.get(line.id or "")
    if existing and not changes_value(existing.fact, line.fact, TermReader()):
        origin = {"turn": origin_of_change.number, "stated_at": origin_of_change.stated_at} if changing.prefix == "f" else {}
        changing.change("reword", existing.id, category=line.category, fact=line.fact, **origin)
        return
    repeated = next((f for f in changing.facts.values() if f.is_current and same_words(f.fact, line.fact)), None)
    if repeated:
        return
    fact = NotableFact(id="new", category=line.category, fact=line.fact, turn=origin_of_change.number, stated_at=origin_of_change.stated_at)
    replaced = _current_fact(changing, line.replaces or line.id or "")
    added = changing.add(fact)
    if replaced and replaced.is_current:
        changing.change("supersede", replaced.id, superseded_by=added.id, superseded_at=origin_of_change.stated_at)


def _current_fact(changing: _LedgerChange[L], id: str) -> NotableFact | None:
    """The fact of this id, or what took its place since."""
    found = changing.facts.get(id)
    while found and found.superseded_by in changing.facts:
        found = changing.facts[found.superseded_by]
    return found


def _apply_limit(changing: _LedgerChange[L], most: int) -> None:
    excess = len(changing.facts) - most
    order = sorted(changing.facts.values(), key=lambda f: (f.is_current, f.turn, int(f.id[1:])))
    for fact in order[: max(0, excess)]:
        changing.remove("leave_out", fact.id, f"over {most} facts")


def merge_session_facts(
    profile: Profile, session: SessionFacts, replaced: dict[str, str], occasion: ChangeOrigin
) -> tuple[Profile, tuple[FactChange, ...]]:
    """The profile with what the session's turn stated (specification 002, section 4, simple merge): new facts added, changed ones changed.

    Facts of other turns do not change: one that a consolidation left out does not come back. `replaced`: words of a new fact ->
    profile id that it contradicts. The result may be over its limit: `applied` comes last.
    """
    changing = _begin_change(profile, occasion)
    profile_ids = {f.origin: f.id for f in profile.facts}
    new_ids = {f.id for f in session.facts if f.turn == occasion.number > profile.after_turn}
    changed_facts = {f"{session.session_id}/{f.id}": f for f in session.facts if f.id in new_ids or f.superseded_by in new_ids}
    for origin, fact in changed_facts.items():
        if origin in profile_ids:
            if fact.id in new_ids:
                changing.change(
                    "reword", profile_ids[origin], category=fact.category, fact=fact.fact, turn=fact.turn, stated_at=fact.stated_at
                )
        elif fact.is_current and not any(f.is_current and same_words(f.fact, fact.fact) for f in changing.facts.values()):
            replaced_fact = changing.facts.get(replaced.get(fact.fact, ""))
            added = changing.add(fact.model_copy(update={"origin": origin}))
            profile_ids[origin] = added.id
            if replaced_fact and replaced_fact.is_current:
                changing.change("supersede", replaced_fact.id, superseded_by=added.id, superseded_at=fact.stated_at)
    for origin, fact in changed_facts.items():
        newer = profile_ids.get(f"{session.session_id}/{fact.superseded_by}")
        if newer and profile_ids.get(origin) in changing.facts:
            changing.change("supersede", profile_ids[origin], superseded_by=newer, superseded_at=fact.superseded_at)
    return changing.result()


def remove_facts(
    profile: Profile, ids: Sequence[str], origins: Sequence[str], occasion: ChangeOrigin
) -> tuple[Profile, tuple[FactChange, ...]]:
    """The profile without facts of these ids, and without those that came from facts of these origins."""
    changing = _begin_change(profile, occasion)
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


def same_words(one: str, other: str) -> bool:
    """Whether two facts say the same but for case and signs."""
    return _WORD.findall(one.lower()) == _WORD.findall(other.lower())


def changes_value(old: str, new: str, reader: TermReader) -> bool:
    """Whether `new` says another value than `old`, so that it is no better wording of `old`, but what holds instead.

    It does where each has a term that the other lacks, or only one has a figure, a name, a denial or a word of degree.
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
