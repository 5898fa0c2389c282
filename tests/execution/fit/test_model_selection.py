"""A model that chooses units: the result is verbatim and within its target, whatever it answers; the record says who really chose."""

import re

import pytest

from pandora_dagster.compression.numbered_units import read_numbered
from pandora_dagster.contracts.enums import ContentType, InterventionType
from pandora_dagster.execution.call_faults import CallFault, CallFaultError
from pandora_dagster.execution.fit.compression_calls import MAX_CONCURRENT_CALLS
from tests.execution.conftest import FakeModel

WEATHER = "The wind was calm and everybody walked along the shore before they went home again."
DAYS = [f"On {day} May the shop sold chair CH{day}00X for ${day}49.00." for day in range(1, 25)]
REPORT = "\n\n".join(f"{sale} {WEATHER}" for sale in DAYS)


def units(request):
    return list(read_numbered(request.documents[0].text))


def choice(*words):
    """A model that keeps the units with one of these words, and nothing else."""
    return lambda request: {"keep": [u.number for u in units(request) if any(word in u.text for word in words)] or [1]}


NO_CHOICES = {
    "a text": lambda request: "Here is the shorter document.",
    "nothing": lambda request: {"keep": []},
    "another field": lambda request: {"units": [1]},
    "everything": lambda request: {"keep": [u.number for u in units(request)]},
    "unknown numbers": lambda request: {"keep": [1, 97]},
    "zero": lambda request: {"keep": [0]},
    "words": lambda request: {"keep": ["1", "2"]},
    "a failed call": lambda request: CallFault(InterventionType.SCHEMA_VIOLATION, "the answer is empty"),
}


def test_the_models_choice_is_kept_verbatim(open_engine, counter):
    """The wanted sales are there word for word, within the target, under the model's name."""
    model = FakeModel(choice("CH700X", "CH2100X"))
    made = (at := open_engine(model)).compress(REPORT, 200)
    assert DAYS[6] in made.text and DAYS[20] in made.text and counter.count(made.text) <= 200
    assert made.runtime == at.records[0].runtime == at.events[0][1]["runtime"] == "sglang"
    assert set(re.findall(r"On \d+ May[^.]*\.00\.", made.text)) <= set(DAYS)


def test_what_is_over_the_target_goes_from_the_end_of_the_order(open_engine, counter):
    """The first of the order stay; with several pieces, the first of each."""
    model = FakeModel(lambda request: {"keep": [u.number for u in reversed(units(request)) if "CH" in u.text]})
    made = open_engine(model).compress(REPORT, 200)
    assert DAYS[-1] in made.text and counter.count(made.text) <= 200
    assert made.runtime == "sglang"


def test_what_the_choice_leaves_free_is_filled(open_engine, counter):
    """A model that names too little wastes no budget."""
    made = open_engine(FakeModel(lambda request: {"keep": [1]})).compress(REPORT, 400)
    assert 300 < counter.count(made.text) <= 400


@pytest.mark.parametrize("manner", NO_CHOICES)
def test_an_answer_that_is_no_choice_leaves_it_to_the_structure(manner, open_engine, counter):
    """The text is the one that is made without a model, and the record names no model."""
    model = FakeModel(NO_CHOICES[manner])
    made = (at := open_engine(model)).compress(REPORT, 300)
    assert model.asked and made.text == open_engine().compress(REPORT, 300).text
    assert made.runtime == at.records[0].runtime == at.events[0][1]["runtime"] == "extractive"


def test_one_piece_without_a_choice_is_recorded_beside_the_model(open_engine, counter):
    """Both names; what the model chose elsewhere stays."""
    model = FakeModel(lambda request: {"keep": [99]} if "CH100X" in request.documents[0].text else choice("CH2400X")(request))
    made = (at := open_engine(model)).compress(REPORT, 300)
    assert made.runtime == at.records[0].runtime == "sglang+extractive"
    assert DAYS[-1] in made.text and counter.count(made.text) <= 300


def test_a_piece_is_within_the_call_and_says_its_budget(open_engine, counter):
    """Document, query and variables within 500 tokens; the shares of all pieces are within the target."""
    model = FakeModel(choice("CH"))
    open_engine(model).compress(REPORT, 300, query="which chair cost $349.00?")
    assert len(model.asked) > 1 and all(counter.count(r.documents[0].text) <= 450 for r in model.asked)
    assert sum(int(r.variables["target_tokens"]) for r in model.asked) <= 300
    assert {r.query for r in model.asked} == {"which chair cost $349.00?"}
    assert all(unit.tokens == counter.count(unit.text) for r in model.asked for unit in units(r))


def test_a_unit_comes_with_its_speaker(open_engine):
    """Headings and speakers stand without a number where their units are shown, in every piece, and come with what is kept."""
    talk = "\n".join(f"{'Ana' if n % 2 else 'Bo'}: On {n} May we sold chair CH{n}00X for ${n}49.00. {WEATHER}" for n in range(1, 25))
    model = FakeModel(choice("CH500X"))
    made = open_engine(model).compress(talk, 250)
    assert all("Ana:" in r.documents[0].text and "Bo:" in r.documents[0].text for r in model.asked)
    assert made.text[: made.text.index("CH500X")].rstrip().rpartition("Ana:")[2].count("Bo:") == 0


def test_section_0_headings_and_meta_blocks_never_reach_the_model(open_engine, counter):
    """They stand verbatim in the result, in their order; section 0 byte for byte."""
    meta = "```yaml\n_meta:\n  type: turn_context\n  relevant_turns: [811]\n```"
    head = "## 0. User Query\n\nWhich chair? It must not cost more than $500.\n\n"
    text = f"{head}## 2. Gathered Context\n\n### Relevant Prior Turns\n\n{meta}\n\n{REPORT}\n\n## 3. Task Plan\n\nAnswer the question.\n\n"
    model = FakeModel(choice("CH700X"))
    made = open_engine(model).compress(text, 400, ContentType.CONTEXT_DOC)
    assert made.runtime == "sglang" and made.text.startswith(head) and meta in made.text and DAYS[6] in made.text
    assert counter.count(made.text) <= 400
    assert not any("must not cost" in r.documents[0].text or "_meta" in r.documents[0].text for r in model.asked)


def test_the_newest_section_never_reaches_the_model_where_it_fits(open_engine):
    """A result of the last step was shortened to "short. also: ..." before the next step had read it."""
    newest = "## 4. Tool Execution\n\nThe stock tool says: chair CX777 is sold out until 5 June, and CX778 is left twice.\n\n"
    text = f"## 0. User Query\n\nWhich chair?\n\n## 2. Gathered Context\n\n{REPORT}\n\n{newest}"
    model = FakeModel(choice("CH700X"))
    made = open_engine(model).compress(text, 400, ContentType.CONTEXT_DOC)
    assert made.runtime == "sglang" and newest.strip() in made.text and DAYS[6] in made.text
    assert not any("CX777" in r.documents[0].text for r in model.asked)


def test_pieces_go_side_by_side_with_a_bound(open_engine):
    """At most four calls at a time."""
    model = FakeModel(choice("CH"))
    open_engine(model).compress(REPORT * 3, 600)
    assert 2 <= model.busiest <= MAX_CONCURRENT_CALLS


def test_a_text_of_too_many_calls_is_compressed_without_the_model(open_engine):
    """The bound on calls holds for any length, and the record names who shortened."""
    model = FakeModel(choice("CH"))
    made = (at := open_engine(model)).compress(REPORT * 40, 3_000)
    assert not model.asked and made.runtime == at.records[0].runtime == "extractive"


@pytest.mark.parametrize("kind", [InterventionType.RUNTIME_UNREACHABLE, InterventionType.TIMEOUT, InterventionType.CONFIG_ERROR])
def test_a_model_that_is_down_stops_the_compression(kind, open_engine):
    """One clear fault; the pieces that wait are not tried one by one."""
    model = FakeModel(lambda request: CallFault(kind, "429 too many requests"))
    with pytest.raises(CallFaultError, match="429"):
        open_engine(model).compress(REPORT * 3, 700)
    assert len(model.asked) <= MAX_CONCURRENT_CALLS


def test_what_the_sessions_limits_put_off_is_chosen_by_structure_and_says_so(open_engine):
    """Nothing is asked for after the first deferral, and the next compression asks again."""
    reason = "deferred: session s1 may make its next summarization call in 41 s"
    fault = CallFault(InterventionType.BUDGET_EXCEEDED, reason, deferred=True)
    model = FakeModel(lambda request: choice("CH")(request) if len(model.asked) <= 1 else fault)
    made = (at := open_engine(model)).compress(REPORT * 3, 700)
    assert made.text is not None and "extractive" in made.runtime
    assert made.deferred == reason == at.records[0].error and at.events[0][1]["deferred"] == reason and at.records[0].success
    asked = len(model.asked)
    assert asked <= 1 + MAX_CONCURRENT_CALLS
    at.compress(REPORT * 3, 700)
    assert len(model.asked) > asked


def test_a_credential_of_the_text_never_reaches_the_model(open_engine):
    """What the model chooses from has the place of the key, and not the key."""
    key = "sk-proj-9aZ31kQv7Lw2RtYx8Bn4Mc6Df0Gh5Jp1"
    model = FakeModel(choice("api_key"))
    made = open_engine(model).compress(f"{REPORT}\n\nThe api_key={key} is used by the shop.", 300)
    assert made.text and key not in made.text and model.asked
    assert not any(key in request.documents[0].text for request in model.asked)


def test_a_page_that_exceeds_one_call_is_chosen_from_in_pieces(open_engine, counter):
    """Every sentence of a visited page is offered to the page's recipe, in calls within their budget; what the model wants is kept."""
    model = FakeModel(choice("CH700X", "CH2100X"))
    at = open_engine(model)
    made = at.compress(f"main_text: {REPORT}", 300, kind=ContentType.PAGE_DOC)
    offered = "\n".join(request.documents[0].text for request in model.asked)
    assert {request.recipe for request in model.asked} == {"compression/compress_page_doc"} and len(model.asked) > 1
    assert all(sale in offered for sale in DAYS) and DAYS[6] in made.text and DAYS[20] in made.text
    assert made.runtime == "sglang" and counter.count(made.text) <= 300
