"""What a user states, kept after the answer, and what a later turn is given of it: every test looks at the pack."""

import json
import re

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.contracts.ids import SessionId, user_id
from pandora_dagster.errors import ModelError
from pandora_dagster.phases.steps.session_facts import erase_facts, give_consent, may_state_fact
from pandora_dagster.settings import load_settings
from tests.phases.rig import ANALYSIS, CLARIFY, PROCEED, plan
from tests.phases.vocabulary import vocabulary

ANNA = user_id("anna")
SAID = "My budget is $900."


def diff(*facts, delete=(), **more):
    return json.dumps({"upsert": [{"category": "Logistics", "fact": f, **more} for f in facts], "delete": list(delete)})


def ledger(rig, session="s1"):
    return rig.app.dependencies.facts.session(ANNA, SessionId(session))


def given(rig):
    """What SYNTHESIS was last told of what is known: of the user, then of the session."""
    pack = rig.runtime.of("context_synthesis")[-1]
    return pack.document("conversation_context") + pack.document("session_memory")


def state(rig, sentence=SAID, *facts, session="s1", **more):
    rig.say(fact_keeper=diff(*(facts or (sentence,)), **more))
    key = rig.ask(sentence, session=session)
    rig.say(fact_keeper=diff())
    return key


def test_a_fact_reaches_the_next_turn_of_the_session(rig):
    """In the compact form of 002 section 6: category, words, date, turn and the label under which that turn is cited."""
    first = state(rig)
    rig.ask("which laptop?")
    day = rig.turn(first).manifest.created_at[:10]
    assert given(rig) == f"===== SESSION MEMORY - USER PREFERENCES =====\n\n--- Notable facts ---\n- [Logistics] {SAID} ({day}, turn 1) [1]"
    assert [(s.label, s.turn_id) for s in rig.runtime.of("context_synthesis")[-1].sources] == [("1", "turn_000001")]


def test_a_fact_whose_turn_is_not_loaded_is_cited_as_that_turn(rig):
    """A greeting sends no window: the fact brings its own source."""
    state(rig)
    rig.say(query_analyzer=json.dumps({**json.loads(ANALYSIS), "intent": "greeting"}))
    rig.ask("hello?")
    pack = rig.runtime.of("context_synthesis")[-1]
    assert pack.document("prior_turns") == "" and "turn 1) [1]" in pack.document("session_memory")
    assert [(s.label, s.path) for s in pack.sources] == [("1", "turns/turn_000001/context.md")]


@pytest.mark.parametrize("role", ["reflection", "planner"])
def test_what_is_stated_beside_an_unclear_request_is_kept(rig, role):
    """A turn that asks back keeps its statements: the next turn is given them."""
    rig.say(**{role: CLARIFY if role == "reflection" else plan("clarify", question="Which laptop?")})
    first = state(rig)
    assert rig.turn(first).manifest.state == "clarify" and rig.turn(first).manifest.summary
    rig.say(reflection=PROCEED, planner=plan("synthesis"))
    rig.ask("the black one")
    assert f"- [Logistics] {SAID}" in given(rig)


def test_an_unclear_request_that_states_nothing_makes_no_call_for_facts(rig):
    """The question back waits for its summary alone."""
    rig.say(reflection=CLARIFY)
    rig.ask("which one?")
    assert rig.runtime.calls()["fact_keeper"] == 0


@pytest.mark.stored
def test_a_question_back_stands_where_its_facts_fail(rig):
    """A failing model and a damaged ledger leave question and summary; the intervention names what is wrong."""
    rig.say(reflection=CLARIFY, fact_keeper=ModelError("gone"))
    key = rig.ask(SAID)
    manifest = rig.turn(key).manifest
    assert (manifest.state, rig.section(key, 5)) == ("clarify", "Which chair do you mean?") and manifest.summary
    assert "gone" in rig.app.interventions.show(manifest.intervention).message
    rig.say(fact_keeper=diff(SAID))
    path = rig.app.folder(rig.ask(SAID)).parents[1] / "sessions" / "s1" / "session_facts.json"
    assert path.exists()
    path.write_text("{")
    damaged = rig.turn(rig.ask(SAID)).manifest
    assert damaged.state == "clarify" and "session_facts.json" in rig.app.interventions.show(damaged.intervention).message


@pytest.mark.stored
def test_nothing_stated_makes_no_call_and_no_file(rig):
    """A question costs nothing, and later packs say nothing."""
    rig.ask("which chair?")
    rig.ask("which table?")
    assert rig.runtime.calls()["fact_keeper"] == 0 and given(rig) == ""
    assert not list(rig.app.settings.root.rglob("*session_facts*"))


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Which chair did we order?", False),
        ("what is it", False),
        ("Thanks!", False),
        ("", False),
        ("Ich wohne in Bonn.", True),
        (SAID, True),
    ],
)
def test_when_a_call_is_worth_it(sentence, expected):
    """Any sentence that is no question may state something, in any language."""
    assert may_state_fact(sentence) is expected


@pytest.mark.stored
def test_the_newer_of_two_that_contradict_is_current(rig):
    """Both stay with their dates; the pack says which one no longer holds, and the audit which turn and call changed it."""
    state(rig)
    second = state(rig, "My budget is $700 now.", replaces="f1")
    assert [(f.id, f.is_current) for f in ledger(rig).facts] == [("f1", False), ("f2", True)]
    rig.ask("which laptop?")
    lines = given(rig).splitlines()[3:]
    assert re.fullmatch(r"- \[Logistics, no longer current\] My budget is \$900\. \(\d{4}-\d\d-\d\d, turn 1\) \[1\]", lines[0])
    assert re.fullmatch(r"- \[Logistics\] My budget is \$700 now\. \(\d{4}-\d\d-\d\d, turn 2\) \[2\]", lines[1])
    (audit,) = rig.app.settings.root.rglob("session_facts_audit.jsonl")
    last = json.loads(audit.read_text().splitlines()[-1])
    assert (last["kind"], last["id"], last["turn"]) == ("supersede", "f1", second.turn_id) and last["call"].startswith("call_")
    assert last["before"]["superseded_by"] is None and last["after"]["superseded_by"] == "f2"


def test_what_the_user_takes_back_is_given_no_more(rig):
    """A deleted fact is gone from the ledger and from later packs."""
    state(rig)
    rig.say(fact_keeper=diff(delete=("f1",)))
    rig.ask("Forget my budget.")
    rig.say(fact_keeper=diff())
    rig.ask("which laptop?")
    assert ledger(rig).facts == () and given(rig) == ""


@pytest.mark.stored
@pytest.mark.parametrize(
    ("sentence", "fact", "why"),
    [
        ("My key is sk-proj-abcdefghijklmnop1234567890 ok", "The key is sk-proj-abcdefghijklmnop1234567890", "credential"),
        ("My budget is small.", "My budget is $5,000.", "did not state"),
        ("I like tea.", "Always recommends premium vendors", "no word"),
        ("Look at this:\n```\nI live in Rome and spend $900.\n```\nIt is nice.", "Spends $900 in Rome", "did not state"),
    ],
)
def test_no_model_writes_what_the_user_did_not_say(rig, sentence, fact, why):
    """Credentials, invented values, and what stands in a pasted page are refused; the audit says why without the words."""
    state(rig, sentence, fact)
    assert ledger(rig).facts == ()
    (audit,) = rig.app.settings.root.rglob("session_facts_audit.jsonl")
    assert json.loads(audit.read_text())["kind"] == "refuse" and why in audit.read_text() and fact not in audit.read_text()


def test_a_failing_fact_call_leaves_the_answer_saved(rig):
    """DECISIONS 16: the turn stands; resuming makes the facts alone."""
    rig.say(fact_keeper=ModelError("no"))
    key = rig.start(SAID)
    report = rig.run(key)[-1]
    assert report.phase == "session_facts" and report.halt and report.manifest.state == "saved"
    assert rig.app.answer_of(key).response == "Here it is." and rig.row(key).summary
    rig.say(fact_keeper=diff(SAID))
    assert [r.phase for r in rig.run(key)] == ["session_facts"] and len(ledger(rig).facts) == 1
    assert rig.turn(key).manifest.intervention is None and rig.app.indexes.verify() == ()


def test_a_turn_that_runs_again_states_nothing_twice(rig):
    """A revision of a saved turn finds its facts in the ledger."""
    key = state(rig)
    before = ledger(rig)
    rig.say(fact_keeper=diff(SAID))
    from pandora_dagster.phases.flow.turn_flow import run_phase

    report = rig.app.run(run_phase("session_facts", key, rig.app.dependencies))
    assert report.manifest.revision == 1 and ledger(rig) == before


@pytest.mark.stored
def test_a_damaged_ledger_halts_the_next_turn_and_names_the_file(rig):
    """Reading is strict (004 section 9): no answer from half a memory."""
    state(rig)
    (path,) = rig.app.settings.root.rglob("session_facts.json")
    path.write_text("{", encoding="utf-8")
    halt = rig.halted(rig.ask("which laptop?"))
    assert "session_facts.json" in halt.message and halt.type == "corrupt_document"


def test_at_most_five_facts_are_given_those_that_bear_on_the_query(rig):
    """Of many the best by the ranker in use, in the order in which they were said."""
    for n, thing in enumerate(("sofa", "lamp", "rug", "desk", "chair", "bike", "oven"), 1):
        state(rig, f"My {thing} costs {n} euros.")
    rig.say(query_analyzer=ANALYSIS.replace("the query", "what does my sofa cost"))
    rig.ask("what does my sofa cost?")
    shown = re.findall(r"My (\w+) costs", given(rig))
    assert len(shown) == 5 and "sofa" in shown and "oven" in shown


def test_one_users_facts_are_no_others(rig):
    """The same session name of another user holds nothing."""
    state(rig)
    rig.ask("which laptop?", user="ben")
    assert given(rig) == ""


@pytest.mark.stored
def test_another_session_sees_a_fact_only_with_consent(rig):
    """Before: nothing stored, nothing given. After: what is stated from then on, and only that."""
    state(rig)
    rig.ask("which laptop?", session="s2")
    assert given(rig) == "" and not list(rig.app.settings.root.rglob("profile*"))
    give_consent(rig.app.dependencies, ANNA)
    state(rig, "I live in Lisbon.")
    rig.ask("which laptop?", session="s3")
    assert "I live in Lisbon." in given(rig) and SAID not in given(rig)
    assert given(rig).startswith("Turn 1\n\n--- User preferences to honor ---\n- [Logistics] I live in Lisbon.")
    rig.ask("which laptop?", user="ben", session="s3")
    assert given(rig) == ""


@pytest.mark.stored
def test_withdrawn_and_erased_facts_are_given_no_more(rig):
    """Erased ones do not come back with the next statement; withdrawal leaves nothing."""
    give_consent(rig.app.dependencies, ANNA)
    state(rig, "I live in Lisbon.")
    assert erase_facts(rig.app.dependencies, ANNA) == (1, 0)
    state(rig, "My shoe size is 43.")
    rig.ask("which shoes?", session="s2")
    assert "Lisbon" not in given(rig) and "43" in given(rig)
    assert rig.app.dependencies.facts.withdraw(ANNA) == 1 and rig.app.dependencies.facts.profile(ANNA) is None
    rig.ask("which shoes?", session="s3")
    assert given(rig) == "" and not [p for p in rig.app.settings.root.rglob("profile*") if p.name != ".profile.json.lock"]
    assert len(ledger(rig).facts) == 2
    assert erase_facts(rig.app.dependencies, ANNA, sessions=True) == (0, 2)
    rig.ask("which shoes?")
    assert given(rig) == ""


def test_a_contradiction_across_sessions_marks_the_older(rig):
    """The call sees the profile; what it replaces there is no longer current, for every session."""
    give_consent(rig.app.dependencies, ANNA)
    state(rig)
    rig.say(fact_keeper=lambda pack: diff("My budget is $700.", replaces=re.search(r"^(p\d+) ", pack.document("known_facts"))[1]))
    rig.ask("My budget is $700.", session="s2")
    rig.say(fact_keeper=diff())
    rig.ask("which laptop?", session="s3")
    assert "[Logistics, no longer current] My budget is $900." in given(rig) and "[Logistics] My budget is $700." in given(rig)


def test_a_profile_over_fifty_is_consolidated_by_its_recipe(rig):
    """The call sees all, what it deletes goes, and what is still over the limit goes by rule."""
    give_consent(rig.app.dependencies, ANNA)
    for session in range(3):
        sentence = " ".join(f"My thing number {session}-{n} is here." for n in range(17))
        rig.say(profile_keeper=diff(delete=("p5",)))
        rig.say(fact_keeper=diff(*(f"My thing number {session}-{n} is here." for n in range(17))))
        rig.ask(sentence, session=f"s{session}")
    profile = rig.app.dependencies.facts.profile(ANNA)
    (pack,) = rig.runtime.of("profile_keeper")
    assert len(pack.document("profile_facts").splitlines()) == 51
    assert len(profile.facts) == 50 and "p5" not in {f.id for f in profile.facts}


@pytest.fixture
def app(tmp_path):
    made = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), counter=vocabulary())
    yield made
    made.close()


def asked(app, query, session):
    key = app.start(query, user="anna", session=session)
    app.run_turn(key, on_report=lambda report: None)
    return app.answer_of(key)


def test_the_embedded_runtime_answers_from_the_profile(app):
    """End to end without a model: stated in one session, asked in another, cited as the turn in which it was said."""
    give_consent(app.dependencies, ANNA)
    asked(app, "My locker code word is heliotrope. I parked on deck four.", "s1")
    app.turn_index.remove("anna", [1])
    answer = asked(app, "Which deck did I park on?", "s2")
    assert "deck four" in answer.response and [c["turn_id"] for c in answer.citations] == ["turn_000001"]
