"""A long session on the embedded runtime: which of its turns a call sees whole, as summaries, or not at all."""

import json
import re

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.settings import load_settings
from tests.phases.vocabulary import vocabulary

TURNS = 40
ITEMS = ("lamp", "rug", "kettle", "shelf", "curtain", "mirror", "stool", "clock")
_HEAD = re.compile(r"^===== PRIOR TURN (\d+) \(\d{4}-\d\d-\d\d(, summary)?\) \[\d+\] =====$", re.MULTILINE)


def conversation(answer_words=0):
    messages = []
    for n in range(1, TURNS + 1):
        item = ITEMS[n % len(ITEMS)]
        more = "".join(f" Shop {n}-{w} has it in {w} days." for w in range(answer_words))
        messages += [
            {"role": "user", "content": f"What does {item} number {n} cost? I keep a list."},
            {"role": "assistant", "content": f"The {item} number {n} costs {100 + n} euros. It weighs {n} kilos.{more}"},
        ]
    return json.dumps({"id": "long", "user_id": "anna", "created_at": "2026-09-03T08:12:00Z", "messages": messages}).encode()


@pytest.fixture
def app(tmp_path):
    made = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), counter=vocabulary())
    yield made
    made.close()


def asked(app, query, *, answer_words=0):
    """The reports of one live turn after an imported session of forty."""
    app.transfer.import_conversations([conversation(answer_words)], where="test")
    key, reports = app.start(query, user="anna", session="long"), {}
    app.run_turn(key, on_report=lambda report: reports.__setitem__(report.phase, report))
    return key, reports


def sent(app, report):
    """Turn -> how it stands in the pack that the vault kept of the phase's call."""
    pack = json.loads(app.vault.read(report.calls[-1].pack_ref))["user"]
    return {int(number): "summary" if summary else "whole" for number, summary in _HEAD.findall(pack)}, pack


def report_ways(report):
    """Turn -> how, as the phase's report says it."""
    found = {}
    for row in report.facts["window"]:
        for run in row["turn"].split(", "):
            first, _, last = run.partition("-")
            found |= dict.fromkeys(range(int(first), int(last or first) + 1), row["how"])
    return found


def test_forty_turns_go_whole_as_summaries_or_stay_out(app):
    """The newest five whole, seven more as summaries, 28 left out but for what the query asks for; pack and report agree."""
    key, reports = asked(app, "What does the rug number 9 cost?")
    ways, pack = sent(app, reports["gathered_context"])
    plan = json.loads(app.turns.load(key).files["retrieval_plan.json"])["relevant_turns"]
    assert 9 in plan and ways[9] == "whole" and not {36, 37, 38, 39, 40} - set(ways)
    assert {n for n, how in ways.items() if how == "whole"} - set(plan) == {36, 37, 38, 39, 40} - set(plan)
    assert {n for n, how in ways.items() if how == "summary"} == set(range(29, 36)) - set(plan)
    assert report_ways(reports["gathered_context"]) == {n: ways.get(n, "left out") for n in range(1, TURNS + 1)}
    assert "Turns of this session: whole " in pack and "It weighs 38 kilos." in pack
    assert "109 euros" in app.answer_of(key).response


def test_the_calls_that_see_summaries_say_which(app):
    """Phases 0, 1 and 2 read one line a turn; their reports tell what the pack holds."""
    _, reports = asked(app, "What does the rug number 9 cost?")
    for phase in ("query_analysis", "reflection", "retrieval_plan"):
        _, pack = sent(app, reports[phase])
        offered = {int(n) for n in re.findall(r'"turn_id": (\d+)', pack)}
        assert {n for n, how in report_ways(reports[phase]).items() if how == "summary"} == offered and len(offered) < TURNS
    assert set(range(35, 41)) <= offered


def test_long_turns_keep_their_limits_and_none_that_is_protected_is_dropped(app):
    """Turns of some 900 tokens: each of the newest six is there, whole or as its summary, and the pack stays in its budget."""
    _, reports = asked(app, "Where do zebras sleep?", answer_words=70)
    ways, _ = sent(app, reports["gathered_context"])
    call = reports["gathered_context"].calls[-1]
    assert set(range(35, 41)) <= set(ways) and set(ways.values()) == {"whole", "summary"} and ways[40] == "whole"
    assert "protected; no room for it whole" in [row["why"] for row in reports["gathered_context"].facts["window"]]
    assert report_ways(reports["gathered_context"]) == {n: ways.get(n, "left out") for n in range(1, TURNS + 1)}
    assert call.tokens.input <= app.recipes.get("pipeline/phase2_synthesis", "chat").recipe.token_budget.input


def test_a_turn_that_cannot_be_read_goes_as_its_summary(app):
    """Nobody asked for it by name, so it stops nothing; the report says why it is not whole."""
    app.transfer.import_conversations([conversation()], where="test")
    (app.folder(TurnKey(UserId("anna"), 38)) / "context.md").write_text("damaged", encoding="utf-8")
    _, reports = asked(app, "Where do zebras sleep?")
    assert reports["gathered_context"].halt is None and sent(app, reports["gathered_context"])[0][38] == "summary"
    assert {"turn": "38", "how": "summary", "why": "its documents cannot be read"} in reports["gathered_context"].facts["window"]


def test_a_session_of_its_own_sees_no_other(rig):
    """The window is the session's: turns of another one come by retrieval alone."""
    for _ in range(2):
        rig.ask(session="s1")
    rig.ask(session="s2")
    assert rig.runtime.of("context_synthesis")[-1].document("prior_turns") == ""
