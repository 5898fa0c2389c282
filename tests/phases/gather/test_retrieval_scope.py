"""How far a turn looks back: references to earlier talk, sessions that are linked."""

import json

from pandora_dagster.contracts.ids import SessionId, user_id
from tests.phases.rig import ANALYSIS, retrieval

ANNA = user_id("anna")


def linked(rig, session):
    return rig.app.dependencies.facts.session(ANNA, SessionId(session)).linked_sessions


def offered(rig, role="retrieval", name="turn_summaries"):
    return [json.loads(line)["turn_id"] for line in rig.runtime.of(role)[-1].document(name).splitlines()]


def test_a_reference_to_earlier_talk_looks_deeper(rig):
    """Forty turns are offered instead of twenty; the phase tells why."""
    for n in range(45):
        rig.ask(f"zebra {n}", session=f"other{n}")
    rig.say(query_analyzer=ANALYSIS.replace("the query", "zebra"))
    rig.ask("tell zebra facts", session="plain")
    plain = len(offered(rig))
    rig.say(query_analyzer=ANALYSIS.replace("the query", "zebra").replace('"intent": "query"', '"intent": "recall"'))
    key = rig.start("what did I say about zebra?", session="back")
    report = next(r for r in rig.run(key) if r.phase == "retrieval_plan")
    assert plain == 20 < len(offered(rig)) == 40
    assert (report.facts["retrieval_depth"], report.facts["depth_why"]) == ("full", "the query refers back: recall")


def test_a_session_whose_turn_was_cited_is_linked(rig):
    """The next question of the session ranks that session's turns higher."""
    rig.ask("zebra", session="s1")
    rig.say(retrieval=retrieval(1))
    rig.ask("zebra", session="s2")
    assert linked(rig, "s2") == ("s1",)
    assert linked(rig, "s1") == ()


def test_a_linked_session_is_offered_before_its_equals(rig):
    """Of seven equal turns five are offered; the one that stayed out comes in once its session is linked."""
    for n in range(7):
        rig.ask("zebra stripes", session=f"other{n}")
    rig.say(query_analyzer=ANALYSIS.replace("the query", "zebra stripes").replace('"intent": "query"', '"intent": "navigation"'))
    rig.ask("open zebra stripes", session="new")
    left_out = min(set(range(1, 8)) - set(offered(rig)))

    def link(known):
        return known.model_copy(update={"linked_sessions": (f"other{left_out - 1}",)}), ()

    rig.app.dependencies.facts.change_session(ANNA, SessionId("new"), link)
    rig.ask("open zebra stripes", session="new")
    assert left_out in offered(rig)
