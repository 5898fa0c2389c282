"""A fact that a model offers as better words of another, though it says another value: what a later turn is given."""

from tests.phases.steps.test_session_facts import given, ledger, state


def test_another_value_under_a_known_id_reaches_the_pack_beside_the_older(rig):
    """Both with their dates, the newer current (002 section 4); better words of it stay one fact."""
    first = state(rig)
    second = state(rig, "My budget is $700 now.", id="f1")
    assert [(f.fact, f.is_current) for f in ledger(rig).facts] == [("My budget is $900.", False), ("My budget is $700 now.", True)]
    rig.ask("which laptop?")
    days = [rig.turn(key).manifest.created_at[:10] for key in (first, second)]
    assert f"- [Logistics, no longer current] My budget is $900. ({days[0]}, turn 1)" in given(rig)
    assert f"- [Logistics] My budget is $700 now. ({days[1]}, turn 2)" in given(rig)
    state(rig, "Now my budget is $700.", id="f2")
    assert [f.fact for f in ledger(rig).facts if f.is_current] == ["Now my budget is $700."] and len(ledger(rig).facts) == 2
