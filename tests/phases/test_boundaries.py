"""A turn that grows: sections, section 4 and context.md within their budgets, originals beside, and nothing ever cut."""

import json
from dataclasses import replace

import pytest

from pandora_dagster.contracts.calls import Source
from pandora_dagster.contracts.ports import ToolOutcome
from pandora_dagster.errors import ModelTimeoutError, RuntimeUnreachableError
from tests.phases.rig import COMPLETE, ScriptedRuntime, command, plan, retrieval, tool

FILLER = "We all talked about how nice the weather had been and what everybody was going to do at the weekend with their families."


def long_text(start: int, paragraphs: int) -> str:
    return "\n\n".join(f"Chair CH{n}00X was sold for ${n}49.00 at store{n}.example.com. {FILLER}" for n in range(start, start + paragraphs))


class Telling:
    """A tool that tells more with every call."""

    name, description, writes = "doc.search", "tells", False
    parameters = {"type": "object"}  # noqa: RUF012 - a test's tool

    def __init__(self, *sizes: int) -> None:
        self.sizes, self.calls = sizes, 0

    def text(self, call: int) -> str:
        return long_text(100 * (call + 1), self.sizes[call])

    async def run(self, arguments, *, user, turn):
        told = self.text(self.calls)
        self.calls += 1
        return ToolOutcome(True, told, told, (Source("", "shop.md"),))


def shortens(pack):
    """A model that leaves the filler out."""
    return next(p.text for p in pack.parts if p.kind == "document").replace(FILLER, "")


@pytest.fixture
def growing(rig):
    """`growing(sizes...)`: a turn whose tool gives results of so many paragraphs."""

    def build(*sizes: int) -> Telling:
        telling = rig.house.kit.tools["doc.search"] = Telling(*sizes)
        rig.say(planner=plan("coordinator"), executor=[*[command()] * len(sizes), COMPLETE], coordinator=tool("doc.search"))
        rig.say(compressor=shortens)
        return telling

    return build


def phase_record(rig, key, phase):
    return next(p for p in rig.turn(key).manifest.phases if p.phase == phase)


def test_section_4_gives_older_results_less_and_keeps_the_newest_whole(rig, growing):
    """000 section 26: 1,500 tokens for what stood there; the calls with their status stay, toolresults.md has everything."""
    telling = growing(20, 30, 20)
    key = rig.ask()
    section, bundle = rig.section(key, 4), rig.turn(key).files["toolresults.md"]
    assert telling.text(2) in section and telling.text(0) not in section and telling.text(1) not in section
    assert all(f"### Result {n}: doc.search\n\n**Status:** success" in section for n in (1, 2, 3))
    assert "$10049.00" in section and "$22949.00" in section
    assert all(telling.text(call) in bundle for call in range(3))
    older = section.partition("### Result 3")[0]
    assert rig.house.kit.counter.count(older) <= 1_500


def test_the_phase_shows_what_became_of_every_fact(rig, growing):
    """The report has figures, checks, a table of facts, both texts; the manifest keeps the figures."""
    growing(40, 30)
    key = rig.start()
    report = next(r for r in rig.run(key) if r.phase == "tool_results")
    row = report.facts["compressions"][0]
    assert row["tokens_after"] < row["tokens_before"] and row["facts"] == row["kept"] + row["equal"] + row["recoverable"]
    assert report.facts["compressed_facts"][0]["outcome"] and FILLER in report.facts["compression_before"]
    checks = {v.gate: v.passed for v in report.verdicts}
    assert checks["facts_preserved"] and checks["within_budget"] and checks["is_a_summary"]
    assert phase_record(rig, key, "tool_results").report["facts"]["compressions"] == report.facts["compressions"]


def test_the_embedded_way_is_recorded_beside_the_other_calls(rig, growing):
    """A model that gives nothing usable: verbatim spans, under the runtime that made them, in the turn's own records."""
    growing(40, 30)
    rig.say(compressor="I'm sorry, but I can't help with that.")
    key = rig.ask()
    lines = [json.loads(line) for line in (rig.house.folder(key) / "calls.jsonl").read_text().splitlines()]
    made = [line for line in lines if line["recipe"] == "compress_tool_result" and line["runtime"] == "extractive"]
    assert made and made[0]["success"] and made[0]["compression_savings"] > 0
    assert not rig.house.interventions.list() and rig.turn(key).manifest.state == "saved"


@pytest.mark.parametrize("error", [RuntimeUnreachableError("429"), ModelTimeoutError("no answer within 30000 ms")])
def test_a_compressing_model_that_is_down_halts_the_turn_and_loses_nothing(error, rig, growing):
    """One intervention; when the model is back the turn goes on from the phase before."""
    growing(40, 30)
    rig.say(compressor=error)
    key = rig.ask()
    assert rig.halted(key).type in ("runtime_unreachable", "timeout") and rig.halted(key).phase == "tool_results"
    assert len(rig.house.interventions.list()) == 1
    growing(2)
    rig.run(key)
    assert rig.turn(key).manifest.state == "saved"


def test_a_context_over_8600_comes_back_to_7500_with_the_original_beside(rig, growing):
    """Level 2, after the phase that took it over: section 4 is smaller, section 0 and the answer are whole, the phase owns the original."""
    telling = growing(34, 58)
    words = " ".join(f"Please tell me whether chair number {n} has been paid for by me." for n in range(95))
    tasks = [{"description": f"Find out what became of chair {n} of the whole set, and when. " * 6} for n in range(8)]
    answer = "\n\n".join(f"Chair {n} was paid and sent to you as you had asked for [1]." for n in range(150))
    rig.say(synthesizer=answer, planner=json.dumps({**json.loads(plan("coordinator")), "tasks": tasks}))
    key = rig.ask(words)
    turn = rig.turn(key)
    assert rig.house.kit.counter.count(turn.context) <= 8_600
    whole = turn.files["section_4_whole.md"]
    assert telling.text(1) in whole and telling.text(1) not in rig.section(key, 4)
    assert rig.section(key, 0) == words and rig.section(key, 5) == answer
    assert "section_4_whole.md" in phase_record(rig, key, "tool_results").files


def test_a_prior_turn_over_its_limit_is_compressed_to_it(rig, growing):
    """DECISIONS 2: the chosen turn is there with every fact, within 1,500 tokens, and the stored turn is as it was."""
    growing(45)
    first = rig.ask("which chairs were sold?")
    before = rig.turn(first)
    rig.say(planner=plan("synthesis"), retrieval=retrieval(first.number))
    key = rig.ask("what was chair CH12000X sold for?")
    item = rig.runtime.of("context_synthesis")[-1].document("prior_turns")
    assert "$12049.00" in item and rig.house.kit.counter.count(item) <= 1_560
    assert phase_record(rig, key, "gathered_context").report["facts"]["compressions"][0]["document"] == f"turns/{first.turn_id}/context.md"
    assert rig.turn(first) == before


def test_switched_off_a_call_over_its_budget_halts(rig, growing):
    """COMPRESSION_ENABLED=false: no text is shortened, and none is cut."""
    growing(120)
    rig.house = replace(rig.house, kit=replace(rig.house.kit, summarizer=None))
    rig.house.kit.execution.use_fitter(None)
    key = rig.ask()
    assert rig.halted(key).type == "budget_exceeded" and not rig.runtime.of("compressor")


def test_no_prompt_and_no_stored_document_is_ever_cut(rig, growing):
    """DECISIONS 1: what a pack shows of a document is the document, or a recorded compression of it; stored texts are whole."""
    telling = growing(40, 45, 70)
    block = "\n".join(f"2026-03-04 10:{n % 60:02d}:00 INFO chair {n} was moved to hall {n}" for n in range(200))
    key = rig.ask(f"Why was my chair moved?\n\n```\n{block}\n```\n\nPlease be brief.")
    turn = rig.turn(key)
    assert block in rig.section(key, 0)
    for call in range(3):
        assert telling.text(call) in turn.files["toolresults.md"]
    records = {c["call_id"]: c for c in map(json.loads, (rig.house.folder(key) / "calls.jsonl").read_text().splitlines())}
    packs = [p for p in rig.runtime.packs if p.role != "compressor"]
    assert any(records[p.call_id]["compression_applied"] for p in packs)
    for pack in packs:
        assert pack.query == turn_query(turn) or "[attached document pasted_1" in pack.query
        if not records[pack.call_id]["compression_applied"]:
            assert all(line in known(turn, telling, rig.runtime) for line in pack.document("context.md").splitlines())


def turn_query(turn):
    return turn.context.split("## 1.")[0].removeprefix("## 0. User Query\n\n").removesuffix("\n\n")


def known(turn, telling, runtime: ScriptedRuntime) -> str:
    """Everything that was said in the turn, whole."""
    said = [turn.context, *turn.files.values(), *(telling.text(n) for n in range(3))]
    return "\n".join([*said, *(pack.query for pack in runtime.packs), *(pack.document("context.md") for pack in runtime.packs)])
