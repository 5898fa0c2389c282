"""The rolling summary of a session: when it is made, what it holds, what a later turn is given."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import jsonschema
import pytest

from pandora_dagster.app import open_app
from pandora_dagster.compression.summarization_rate import LimiterState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack
from pandora_dagster.contracts.phase_outputs import RetrievalPlan
from pandora_dagster.contracts.user.conversations import ConversationDigest, ConversationSummary
from pandora_dagster.errors import RuntimeUnreachableError
from pandora_dagster.phases.flow import turn_flow
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.user.session_files import LimiterFiles
from tests.phases.gather.test_prior_turns import asked, conversation, report_ways, sent
from tests.phases.vocabulary import vocabulary

ANNA, LONG = UserId("anna"), SessionId("long")
TURN = re.compile(r"^\[turn (\d+), ", re.MULTILINE)


@pytest.fixture
def app(tmp_path):
    made = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), counter=vocabulary())
    yield made
    made.close()


def one_turn(app, query, session="long"):
    key, reports = app.start(query, user="anna", session=session), {}
    app.run_turn(key, on_report=lambda report: reports.__setitem__(report.phase, report))
    return key, reports


def test_a_long_session_is_summed_up_and_the_next_turn_is_given_it(app):
    """41 turns on the embedded runtime: 33 are rolled up; the next pack holds the eight newest, the summary, and says so."""
    _, reports = asked(app, "Please note: the rug must cost at most 50 euros.")
    report = reports["conversation_summary"]
    assert report.facts["triggered"] and report.facts["covered_turns"] == "1-33" and report.halt is None
    assert {v.gate: v.passed for v in report.verdicts} == {"schema_validation": True, "timeout_ms": True, "no_fact_changed": True}
    stored = app.dependencies.conversations.find(ANNA, LONG)
    assert stored.turns == tuple(range(1, 34)) and stored.runtime == "extractive" and stored.made_by == "turn_000041"
    assert stored.call_id == report.calls[-1].call_id and len(report.section.split()) <= 500

    _, reports = one_turn(app, "Where do zebras sleep?")
    ways, pack = sent(app, reports["gathered_context"])
    assert "===== PRIOR TURNS " in pack and stored.digest.summary in pack
    seen = report_ways(reports["gathered_context"])
    rolled = {n for n, how in seen.items() if how == "rolled up"}
    assert rolled and rolled == set(range(1, 34)) - set(ways) and {n: h for n, h in seen.items() if n not in rolled} == ways
    assert set(range(34, 42)) <= set(ways) and "in the summary of the conversation " in pack.split("\n\n=====")[0]
    assert reports["conversation_summary"].facts["triggered"] is False and reports["conversation_summary"].calls == ()
    assert "2 messages since the summary" in reports["conversation_summary"].facts["why"]


class Unmindful(ExtractiveRuntime):
    """The embedded runtime, whose RETRIEVAL finds nothing."""

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        made = await super().complete(pack, timeout_s=timeout_s, on_words=on_words)
        return replace(made, text=RetrievalPlan(confidence=0.9).model_dump_json()) if pack.role == "retrieval" else made


def test_what_only_the_summary_says_is_answered_and_cited(tmp_path):
    """A limit of turn 1, which neither retrieval nor the window brings back, is found in the summary and leads to its file."""
    runtime = Unmindful(vocabulary(), lambda: datetime.now(UTC))
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), runtime=runtime, counter=vocabulary())
    lines = ["My sister must never eat walnuts.", *["It rains."] * 3, *(f"Tell me about town {n}." for n in range(5, 21))]
    messages = [m for line in lines for m in ({"role": "user", "content": line}, {"role": "assistant", "content": "It lies by the sea."})]
    told_once = {"id": "long", "user_id": "anna", "created_at": "2026-09-03T08:12:00Z", "messages": messages}
    app.transfer.import_conversations([json.dumps(told_once).encode()], where="test")
    one_turn(app, "Tell me about town 21.")
    assert app.dependencies.conversations.find(ANNA, LONG).digest.user_needs == ("My sister must never eat walnuts. (turn 1)",)
    key, reports = one_turn(app, "What must my sister never eat?")
    pack = sent(app, reports["gathered_context"])[1]
    assert "- My sister must never eat walnuts. (turn 1)" in pack and "PRIOR TURN 1 (" not in pack
    answer = app.answer_of(key)
    assert answer.state == "saved" and "walnuts" in answer.response
    assert "sessions/long/conversation_summary.json" in [c["path"].rpartition("anna/")[2] for c in answer.citations]
    app.close()


def test_an_earlier_turn_run_again_sees_no_later_summary(app):
    """Turn 41 again, after its session was summed up: its pack and the stored summary are as they were."""
    key, _ = asked(app, "What does the rug number 9 cost?")
    before = app.dependencies.conversations.find(ANNA, LONG)
    one_turn(app, "And the lamp number 8?")
    old = TurnKey(ANNA, before.last_turn - 3)
    assert old.number in before.turns

    again = [app.run(turn_flow.run_phase(name, key, app.dependencies)) for name in ("saved_turn", "turn_summary", "conversation_summary")]
    assert again[-1].facts["triggered"] is False and app.dependencies.conversations.find(ANNA, LONG) == before


@pytest.mark.parametrize(
    "answer", ["no JSON", json.dumps(ConversationDigest(summary="The Kallax costs 99 euros.").model_dump(mode="json"))]
)
def test_a_summary_that_fails_takes_nothing(rig, answer):
    """Unreadable or untrue: the answer stands, nothing is stored, the intervention says why; resuming makes it."""
    rig.app.transfer.import_conversations([conversation()], where="test")
    rig.say(conversation_summarizer=answer)
    key = rig.start(session="long")
    (report,) = [report for report in rig.run(key) if report.halt]
    assert report.phase == "conversation_summary" and report.manifest.state == "saved"
    assert report.manifest.summary and rig.app.answer_of(key).response.startswith("Here it is [1]")
    assert rig.app.dependencies.conversations.find(ANNA, LONG) is None and rig.app.indexes.verify() == ()
    rig.say(conversation_summarizer=json.dumps({**empty(), "summary": "They spoke of a rug.", "key_themes": ["rug"]}))
    assert [r.phase for r in rig.run(key)] == ["conversation_summary"]
    assert rig.turn(key).manifest.intervention is None and rig.app.dependencies.conversations.find(ANNA, LONG).turns[-1] == 33


def empty():
    return {**ConversationDigest(summary="x").model_dump(mode="json")}


def test_it_is_carried_on_every_ten_turns(rig):
    """After one at turn 15, which covers seven turns, nothing until turn 25; that call reads the summary and the ten turns after it."""
    limits = [f"I must not pay more than {n} euros." for n in range(1, 24)]
    messages = [m for line in limits for m in ({"role": "user", "content": line}, {"role": "assistant", "content": "Noted."})]
    recorded = {"id": "long", "user_id": "anna", "created_at": "2026-09-03T08:12:00Z", "messages": messages}
    rig.app.transfer.import_conversations([json.dumps(recorded).encode()], where="test")
    stands = ConversationDigest(summary="They spoke of money.", user_needs=tuple(f"{limits[n - 1]} (turn {n})" for n in range(1, 8)))
    store = rig.app.dependencies.conversations
    store.save(summary_of(stands, tuple(range(1, 8))))
    rig.say(conversation_summarizer=json.dumps({**empty(), "summary": "They spoke of euros."}))
    first = {r.phase: r for r in rig.run(rig.start(session="long"))}["conversation_summary"]
    assert first.facts["triggered"] is False and "18 messages since" in first.facts["why"] and first.calls == ()
    second = {r.phase: r for r in rig.run(rig.start(session="long"))}["conversation_summary"]
    assert second.facts["covered_turns"] == "1-17" and len(second.facts["put_back"]) == 17
    (pack,) = rig.runtime.of("conversation_summarizer")
    assert "They spoke of money." in pack.document("previous_summary")
    assert [f"[turn {n}," in pack.document("turns") for n in range(1, 26)] == [7 < n < 18 for n in range(1, 26)]
    assert store.find(ANNA, LONG).digest.user_needs == tuple(f"{limits[n - 1]} (turn {n})" for n in range(1, 18))


def summary_of(digest, turns):
    made = {"created_at": "2026-09-03T09:00:00Z", "made_by": "turn_000015", "runtime": "scripted", "recipe": "conversation_summary"}
    ids = {"recipe_version": "a", "prompt_version": "b", "call_id": "call_1"}
    return ConversationSummary(user_id="anna", session_id="long", turns=turns, digest=digest, tokens=100, **made, **ids)


def test_a_crash_between_summary_and_turn_makes_it_once(rig, monkeypatch):
    """The file stands, the manifest does not know: resuming finds nothing due and asks no model again."""
    rig.app.transfer.import_conversations([conversation()], where="test")
    rig.say(conversation_summarizer=json.dumps({**empty(), "summary": "They spoke of a rug."}))
    save = type(rig.app.dependencies.conversations).save

    def dies(store, summary):
        save(store, summary)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(rig.app.dependencies.conversations), "save", dies)
    key = rig.start(session="long")
    with pytest.raises(KeyboardInterrupt):
        rig.run(key)
    monkeypatch.undo()
    assert rig.app.pending_phases(key) == ("conversation_summary", "session_facts")
    report, _ = rig.run(key)
    assert report.facts["triggered"] is False and report.facts["covered"] == 33 and len(rig.runtime.of("conversation_summarizer")) == 1


@pytest.mark.stored
def test_a_model_that_is_gone_and_a_damaged_file_stop_nothing_else(rig):
    """The turn is saved either way; a damaged summary is not sent, and the phase says where it lies."""
    rig.app.transfer.import_conversations([conversation()], where="test")
    gone = RuntimeUnreachableError("127.0.0.1:30000: refused")
    gone.retryable = False
    rig.say(conversation_summarizer=gone)
    assert rig.turn(rig.ask(session="long")).manifest.state == "saved"
    path = rig.app.settings.root / "users" / "anna" / "sessions" / "long" / "conversation_summary.json"
    path.write_text("{}")
    key = rig.ask(session="long")
    manifest = rig.turn(key).manifest
    assert manifest.state == "saved" and manifest.summary and "PRIOR TURNS" not in rig.runtime.of("context_synthesis")[-1].user
    assert str(path) in rig.app.interventions.show(manifest.intervention).message


def test_long_turns_take_several_calls_within_their_room(app):
    """Turns of some 900 tokens: each call keeps to its input, and what is left waits for the next turn."""
    _, reports = asked(app, "Where do zebras sleep?", answer_words=70)
    calls, facts = reports["conversation_summary"].calls, reports["conversation_summary"].facts
    room = app.recipes.get("memory/conversation_summary", "chat").recipe.token_budget.input
    assert 2 <= len(calls) <= 8 and all(call.tokens.input <= room for call in calls)
    stored = app.dependencies.conversations.find(ANNA, LONG)
    assert len(stored.turns) + facts.get("left_for_later", 0) == 33 and stored.tokens < 1_000


@pytest.mark.stored
def test_a_call_that_the_sessions_limits_put_off_is_left_for_the_next_turn(rig):
    """Nine calls in this minute: the tenth is made and kept, the rest waits; no HALT, and the next turn goes on from there."""
    rig.app.transfer.import_conversations([conversation(70)], where="test")
    rig.say(conversation_summarizer=json.dumps({**empty(), "summary": "They spoke of a rug."}))
    limits, store = LimiterFiles(rig.app.settings.root), rig.app.dependencies.conversations
    limits.save(ANNA, LONG, LimiterState(calls=(time.time(),) * 9, session_calls=9))
    key = rig.start(session="long")
    report = {r.phase: r for r in rig.run(key)}["conversation_summary"]
    first = store.find(ANNA, LONG)
    assert report.halt is None and len(report.calls) == 1 == len(rig.runtime.of("conversation_summarizer"))
    assert report.facts["deferred"].startswith("conversation_summary: deferred: session long may make its next summarization call in ")
    assert report.facts["left_for_later"] == 33 - len(first.turns) > 0 and rig.app.pending_phases(key) == ()
    assert "no_fact_changed" in {v.gate for v in report.verdicts}

    report = {r.phase: r for r in rig.run(rig.start(session="long"))}["conversation_summary"]
    assert report.calls == () and store.find(ANNA, LONG) == first and "no_fact_changed" not in {v.gate for v in report.verdicts}
    assert report.facts["left_for_later"] == 34 - len(first.turns)

    limits.save(ANNA, LONG, LimiterState())
    report = {r.phase: r for r in rig.run(rig.start(session="long"))}["conversation_summary"]
    assert "deferred" not in report.facts and store.find(ANNA, LONG).turns == tuple(range(1, 36))
    assert [n for pack in rig.runtime.of("conversation_summarizer") for n in map(int, TURN.findall(pack.document("turns")))] == [
        *range(1, 36)
    ]


def test_the_shipped_example_passes_its_schema(app):
    """What the prompt shows as an answer is one that recipe and phase take; both know the same fields."""
    loaded = app.recipes.load("memory/conversation_summary")
    text = loaded.prompts[0][1].split("```json\n")[1].split("\n```")[0]
    schema = dict(loaded.recipe.output_schema)
    jsonschema.validate(json.loads(text), schema)
    ConversationDigest.model_validate_json(text)
    assert set(schema["properties"]) == set(schema["required"]) == set(ConversationDigest.model_fields)


def told_in(lines, answer="Noted."):
    messages = [m for line in lines for m in ({"role": "user", "content": line}, {"role": "assistant", "content": answer})]
    return json.dumps({"id": "long", "user_id": "anna", "created_at": "2026-09-03T08:12:00Z", "messages": messages}).encode()


def test_a_session_that_begins_with_a_greeting_is_summed_up(app):
    """A greeting before the matter is no reply to the reader: the matter stands without it."""
    lines = ["Hello, I plan a trip to Porto and need help to know what to pack.", *(f"Tell me about town {n}." for n in range(2, 21))]
    app.transfer.import_conversations([told_in(lines)], where="test")
    _, reports = one_turn(app, "Tell me about town 21.")
    assert reports["conversation_summary"].halt is None and "session_facts" in reports
    summary = app.dependencies.conversations.find(ANNA, LONG).digest.summary
    assert summary.startswith("I plan a trip to Porto and need help to know what to pack.") and "Hello" not in summary


def test_facts_are_kept_beside_a_summary_that_halted_and_the_halt_stays(rig):
    """What follows a saved turn goes on by itself: the intervention stands until its own phase is done, and that phase is left to do."""
    rig.app.transfer.import_conversations([conversation()], where="test")
    rig.say(conversation_summarizer="no JSON")
    key = rig.start(session="long")
    (halt,) = [report.halt for report in rig.run(key) if report.halt]
    assert rig.turn(key).manifest.has_finished("session_facts")
    assert rig.turn(key).manifest.intervention == halt.id and rig.app.pending_phases(key) == ("conversation_summary",)
    assert rig.run(key)[-1].halt and rig.app.pending_phases(key) == ("conversation_summary",)
    rig.say(conversation_summarizer=json.dumps({**empty(), "summary": "They spoke of a rug."}))
    assert [r.phase for r in rig.run(key)] == ["conversation_summary"]
    manifest = rig.turn(key).manifest
    assert manifest.intervention is None and manifest.revision == 0 and manifest.has_finished("session_facts")
    assert rig.app.pending_phases(key) == () and rig.app.indexes.verify() == ()


def test_a_changed_limit_supersedes_the_older_and_the_summary_shows_both(app):
    """Session facts: the newer is current, the older ends with its date. Rolling summary: both with their turns, in order."""
    older, newer = "For my trips I must not spend more than 900 euros on hotels.", "Actually, my limit is now 1100 euros instead of 900."
    one_turn(app, older)
    key, _ = one_turn(app, newer)
    facts = {f.fact: f for f in app.dependencies.facts.session(ANNA, LONG).facts}
    assert facts[newer].is_current and not facts[older].is_current
    assert facts[older].superseded_by == facts[newer].id and facts[older].superseded_at == app.turns.load(key).manifest.created_at
    for n in range(3, 16):
        one_turn(app, f"Which trains leave from town {n}?")
    assert app.dependencies.conversations.find(ANNA, LONG).digest.user_needs == (f"{older} (turn 1)", f"{newer} (turn 2)")


def test_what_a_session_was_reported_is_noted_and_answered_in_a_kindred_word(app):
    """A statement gets its own words back, thanks a courtesy; `allergy` finds `allergic`, cited."""
    one_turn(app, "I am allergic to peanuts.")
    key, _ = one_turn(app, "Actually, my limit is now 1100 euros instead of 900.")
    assert app.answer_of(key).response == "Noted: Actually, my limit is now 1100 euros instead of 900."
    assert app.answer_of(one_turn(app, "Thank you, that helps.")[0]).response == "You are welcome."
    key, _ = one_turn(app, "Which allergy do I have?")
    assert "I am allergic to peanuts" in app.answer_of(key).response and app.turns.load(key).manifest.state == "saved"
