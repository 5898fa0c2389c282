"""The summary of a turn: what must hold of it before it stands in the turn index (004 section 11.2)."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.phase_outputs import TurnSummary
from pandora_dagster.phases.steps.turn_completion import SUMMARIZER
from tests.phases.rig import open_rig

SOUND = {
    "summary": "Compared lamps.",
    "topics": ["lamp", "hall"],
    "intent": "commerce",
    "has_research": True,
    "research_topic": "commerce.lamp",
}
FAULTY = {
    "research without its topic": {"research_topic": None},
    "research that leaves its topic out": {"research_topic": ...},
    "a topic without research": {"has_research": False},
    "a topic that is no id": {"research_topic": "x y"},
    "a topic in capitals": {"research_topic": "Commerce.Lamp"},
    "a topic with a line end": {"research_topic": "commerce.lamp\n"},
    "a topic without end": {"research_topic": "a" * 59 + ".b" * 2 + "c" * 59},
    "no topics": {"topics": []},
    "an empty keyword": {"topics": ["lamp", ""]},
    "a blank keyword": {"topics": ["lamp", " \n"]},
    "a keyword twice": {"topics": ["lamp", "hall", "lamp"]},
    "no words": {"summary": "  "},
}


def answer(changed):
    return {name: value for name, value in {**SOUND, **changed}.items() if value is not ...}


@pytest.mark.parametrize("case", FAULTY)
def test_a_faulty_summary_is_asked_for_again_and_never_stored(rig, case):
    """It fails the schema gate, is retried as any answer, then HALTs; the answer of the turn stands."""
    rig.say(summarizer=[json.dumps(answer(FAULTY[case])), json.dumps(SOUND)])
    key = rig.ask()
    assert rig.runtime.calls()["summarizer"] == 2 and rig.row(key).topics == ("lamp", "hall")
    rig.say(summarizer=json.dumps(answer(FAULTY[case])))
    key = rig.ask()
    manifest = rig.turn(key).manifest
    assert rig.runtime.calls()["summarizer"] == 5 and manifest.summary is None and manifest.state == TurnState.SAVED
    assert rig.app.interventions.show(manifest.intervention).phase == "turn_summary"


def test_a_sound_summary_is_stored(rig):
    """With research and its topic, and without both, however the absence is written."""
    for changed in ({}, {"has_research": False, "research_topic": None}, {"has_research": False, "research_topic": ...}):
        rig.say(summarizer=json.dumps(answer(changed)))
        row = rig.row(rig.ask())
        assert (row.has_research, row.research_topic) == (("research_topic" not in changed), answer(changed).get("research_topic"))


TOPICS = st.sampled_from([None, "commerce.lamp", "a", "a.b.c.d", "a.b.c.d.e", "x y", "", "-a", "a_b-c.d", "a\n", "A", "ä.b", "a" * 61])


@given(
    st.lists(st.sampled_from(["lamp", "hall", "", " ", "Lamp"]), max_size=6),
    st.booleans(),
    TOPICS,
    st.sampled_from(["Compared lamps.", "", " "]),
)
def test_schema_and_shape_forbid_the_same(schema, topics, researched, topic, summary):
    """What the gate lets through, the phase can read, and the other way round: no HALT without a second try."""
    value = {**SOUND, "topics": topics, "has_research": researched, "research_topic": topic, "summary": summary}
    try:
        TurnSummary.model_validate(value)
        reads = True
    except ValidationError:
        reads = False
    assert jsonschema.Draft202012Validator(schema).is_valid(value) is reads


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    """The shipped recipe's output schema."""
    made = open_rig(tmp_path_factory.mktemp("schema") / "store")
    yield dict(made.app.recipes.load(SUMMARIZER).recipe.output_schema)
    made.app.close()
