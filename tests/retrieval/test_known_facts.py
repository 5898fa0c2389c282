"""The laws of a ledger of facts: ids, limits, what a diff does, and that nothing is done twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.contracts.user.user_memory import FactsDiff, FactUpsert, Profile, SessionFacts
from pandora_dagster.retrieval.known_facts import ChangeOrigin, apply_diff, merge_session_facts, remove_facts

EMPTY = SessionFacts(user_id="anna", session_id="s1")
PROFILE = Profile(user_id="anna", consented_at="2026-01-01T00:00:00Z", after_turn=0)


def at(turn, call="call_1"):
    return ChangeOrigin(f"turn_{turn:06d}", turn, f"2026-01-{turn % 28 + 1:02d}T10:00:00Z", "2026-02-01T00:00:00Z", call)


def says(*facts, replaces=None, id=None, delete=()):
    return FactsDiff(upsert=tuple(FactUpsert(id=id, category="Logistics", fact=f, replaces=replaces) for f in facts), delete=delete)


def test_a_fact_has_its_turn_and_an_id_that_is_never_given_again():
    """Deleted or not, an id names one fact for ever."""
    one, audit = apply_diff(EMPTY, says("Budget 900."), at(3), max_facts=20)
    assert [(f.id, f.turn, f.stated_at) for f in one.facts] == [("f1", 3, "2026-01-04T10:00:00Z")]
    assert [(c.change, c.kind, c.turn, c.call, c.before, c.after) for c in audit] == [
        (1, "add", "turn_000003", "call_1", None, one.facts[0])
    ]
    two, gone = apply_diff(one, says("Size 43.", delete=("f1",)), at(4), max_facts=20)
    assert [f.id for f in two.facts] == ["f2"] and two.changes == 3
    assert (gone[0].kind, gone[0].before) == ("delete", one.facts[0])


def test_a_contradiction_keeps_both_and_marks_the_newer_current():
    """The older keeps its words and date, and says what took its place and when."""
    ledger, _ = apply_diff(EMPTY, says("Budget 900."), at(3), max_facts=20)
    ledger, audit = apply_diff(ledger, says("Budget 700.", replaces="f1"), at(5), max_facts=20)
    old, new = ledger.facts
    assert (old.fact, old.is_current, old.superseded_by, old.superseded_at) == ("Budget 900.", False, "f2", "2026-01-06T10:00:00Z")
    assert new.is_current and [c.kind for c in audit] == ["add", "supersede"] and audit[1].before.is_current


def test_better_words_keep_the_id():
    """Before and after stand in the audit."""
    ledger, _ = apply_diff(EMPTY, says("Budget 900."), at(3), max_facts=20)
    ledger, (line,) = apply_diff(ledger, says("Budget 900 dollars.", id="f1"), at(4), max_facts=20)
    assert [(f.id, f.fact, f.turn) for f in ledger.facts] == [("f1", "Budget 900 dollars.", 4)]
    assert (line.before.fact, line.after.fact) == ("Budget 900.", "Budget 900 dollars.")


def test_over_the_limit_what_no_longer_holds_goes_first():
    """Then the oldest; each leaving is in the audit with its reason."""
    ledger, _ = apply_diff(EMPTY, says(*(f"Fact number {n}." for n in range(20))), at(1), max_facts=20)
    ledger, _ = apply_diff(ledger, says("Fact 7 is another.", replaces="f8"), at(2), max_facts=20)
    assert len(ledger.facts) == 20 and "f8" not in {f.id for f in ledger.facts}
    ledger, audit = apply_diff(ledger, says("One more thing."), at(3), max_facts=20)
    assert audit[-1].kind == "leave_out" and audit[-1].id == "f1" and "20" in audit[-1].reason


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefghij"), st.sampled_from(["", "f1", "f3", "f99"]), st.sampled_from(["", "f2", "f4"])), max_size=40
    )
)
def test_any_diffs_keep_the_laws(steps):
    """Whatever a model proposes: the limit holds, ids are unique and grow, links lead forward, the same diff again changes nothing."""
    ledger, seen = EMPTY, 0
    for turn, (word, replaces, delete) in enumerate(steps, 1):
        diff = says(f"It is {word}.", replaces=replaces or None, delete=(delete,) if delete else ())
        ledger, audit = apply_diff(ledger, diff, at(turn), max_facts=5)
        ids = [int(f.id[1:]) for f in ledger.facts]
        assert len(ids) <= 5 and ids == sorted(set(ids)) and ledger.next_id > max(ids, default=0)
        assert [c.change for c in audit] == list(range(seen + 1, seen + 1 + len(audit)))
        assert all(int(f.superseded_by[1:]) > int(f.id[1:]) for f in ledger.facts if f.superseded_by)
        seen = ledger.changes
        if not delete and not audit:
            assert apply_diff(ledger, diff, at(turn), max_facts=5) == (ledger, ())
    SessionFacts.model_validate(ledger.model_dump())


def test_the_same_diff_again_changes_nothing():
    """A phase that ran before a crash runs again: nothing happens twice."""
    diff = says("Budget 900.", "Size 43.")
    ledger, _ = apply_diff(EMPTY, diff, at(1), max_facts=20)
    assert apply_diff(ledger, diff, at(1), max_facts=20) == (ledger, ())


def test_a_profile_takes_what_the_turn_stated():
    """Only facts of this turn enter, once; what a consolidation left out does not come back with a later turn."""
    session, _ = apply_diff(EMPTY, says("Budget 900."), at(1), max_facts=20)
    profile, _ = merge_session_facts(PROFILE, session, {}, at(1))
    assert [(f.id, f.fact, f.origin) for f in profile.facts] == [("p1", "Budget 900.", "s1/f1")]
    assert merge_session_facts(profile, session, {}, at(1)) == (profile, ())
    emptied, _ = remove_facts(profile, ("p1",), (), at(2))
    session, _ = apply_diff(session, says("Size 43."), at(2), max_facts=20)
    assert [f.fact for f in merge_session_facts(emptied, session, {}, at(2))[0].facts] == ["Size 43."]


def test_consent_looks_forward():
    """Facts stated up to the turn of the consent stay out."""
    session, _ = apply_diff(EMPTY, says("Budget 900."), at(4), max_facts=20)
    assert merge_session_facts(PROFILE.model_copy(update={"after_turn": 4}), session, {}, at(4))[0].facts == ()


@pytest.mark.parametrize("by", ["session", "profile"])
def test_a_contradiction_reaches_the_profile(by):
    """Within a session by the ledger's own link, across sessions by the profile's id."""
    session, _ = apply_diff(EMPTY, says("Budget 900."), at(1), max_facts=20)
    profile, _ = merge_session_facts(PROFILE, session, {}, at(1))
    if by == "session":
        session, _ = apply_diff(session, says("Budget 700.", replaces="f1"), at(2), max_facts=20)
        profile, _ = merge_session_facts(profile, session, {}, at(2))
    else:
        other, _ = apply_diff(EMPTY.model_copy(update={"session_id": "s2"}), says("Budget 700."), at(2), max_facts=20)
        profile, _ = merge_session_facts(profile, other, {"Budget 700.": "p1"}, at(2))
    assert [(f.id, f.is_current, f.superseded_by) for f in profile.facts] == [("p1", False, "p2"), ("p2", True, None)]


def test_what_is_taken_back_leaves_the_profile_by_its_origin():
    """A fact forgotten in its session is forgotten everywhere."""
    session, _ = apply_diff(EMPTY, says("Budget 900."), at(1), max_facts=20)
    profile, _ = merge_session_facts(PROFILE, session, {}, at(1))
    assert remove_facts(profile, (), ("s1/f1",), at(2))[0].facts == ()
