"""A turn that grows: sections, section 4 and context.md within their budgets, originals beside, and nothing ever cut."""

import json
import re
from dataclasses import replace

import pytest

from pandora_dagster.compression.numbered_units import read_numbered
from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.contracts.ports.tool import ToolOutcome, ToolSpec
from pandora_dagster.errors import ModelTimeoutError, RuntimeUnreachableError
from pandora_dagster.phases.flow.turn_flow import run_phase
from tests.phases.rig import COMPLETE, command, plan, retrieval, tool

FILLER = "We all talked about how nice the weather had been and what everybody was going to do at the weekend with their families."


def long_text(start: int, paragraphs: int) -> str:
    return "\n\n".join(f"Chair CH{n}00X was sold for ${n}49.00 at store{n}.example.com. {FILLER}" for n in range(start, start + paragraphs))


class Telling:
    """A tool that tells more with every call."""

    spec = ToolSpec("doc.search", "tells", {"type": "object"})

    def __init__(self, *sizes: int) -> None:
        self.sizes, self.calls = sizes, 0

    def text(self, call: int) -> str:
        return long_text(100 * (call + 1), self.sizes[call])

    async def run(self, run):
        message = self.text(self.calls)
        self.calls += 1
        return ToolOutcome(True, message, message, (Source("", "shop.md"),))


def shortens(pack):
    """A model that chooses everything but the filler."""
    units = read_numbered(next(p.text for p in pack.parts if p.kind == "document"))
    return json.dumps({"keep": [unit.number for unit in units if unit.text not in FILLER] or [1]})


@pytest.fixture
def growing(rig):
    """`growing(sizes...)`: a turn whose tool gives results of so many paragraphs."""

    def build(*sizes: int) -> Telling:
        telling = rig.app.dependencies.tools["doc.search"] = Telling(*sizes)
        rig.say(planner=plan("coordinator"), executor=[*[command()] * len(sizes), COMPLETE])
        rig.say(coordinator=[tool("doc.search", query=f"chair {call}") for call in range(len(sizes))])
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
    assert rig.app.dependencies.counter.count(older) <= 1_500


def test_the_phase_shows_what_became_of_every_fact(rig, growing):
    """The report has figures, checks, a table of facts, both texts; the manifest keeps the figures."""
    growing(40, 30)
    key = rig.start()
    report = next(r for r in rig.run(key) if r.phase == "tool_results")
    row = report.facts["compressions"][0]
    assert row["tokens_after"] < row["tokens_before"]
    assert row["facts"] == sum(row[name] for name in ("kept", "equal", "recoverable", "missing"))
    assert report.facts["compressed_facts"][0]["outcome"] and FILLER in report.facts["compression_before"]
    checks = {v.gate: v.passed for v in report.verdicts}
    assert checks["no_fact_changed"] and checks["within_budget"] and checks["is_a_summary"]
    assert phase_record(rig, key, "tool_results").report["facts"]["compressions"] == report.facts["compressions"]


@pytest.mark.stored
def test_the_embedded_way_is_recorded_beside_the_other_calls(rig, growing):
    """A model that gives nothing usable: verbatim spans, under the runtime that made them, in the turn's own records."""
    growing(40, 30)
    rig.say(compressor="I'm sorry, but I can't help with that.")
    key = rig.ask()
    lines = [json.loads(line) for line in (rig.app.folder(key) / "calls.jsonl").read_text().splitlines()]
    made = [line for line in lines if line["recipe"] == "compress_tool_result" and line["runtime"] == "extractive"]
    assert made and made[0]["success"] and made[0]["compression_savings"] > 0
    assert not rig.app.interventions.list() and rig.turn(key).manifest.state == "saved"


@pytest.mark.parametrize("error", [RuntimeUnreachableError("429"), ModelTimeoutError("no answer within 30000 ms")])
def test_a_compressing_model_that_is_down_halts_the_turn_and_loses_nothing(error, rig, growing):
    """One intervention; when the model is back the turn goes on from the phase before."""
    growing(40, 30)
    rig.say(compressor=error)
    key = rig.ask()
    assert rig.halted(key).type in ("runtime_unreachable", "timeout") and rig.halted(key).phase == "tool_results"
    assert len(rig.app.interventions.list()) == 1
    growing(2)
    rig.run(key)
    assert rig.turn(key).manifest.state == "saved"


def test_a_context_over_8600_comes_back_to_7500_with_the_original_beside(rig, growing):
    """Level 2, after the phase that took it over: section 4 is smaller, section 0 is whole, the phase owns the original."""
    telling = growing(34, 58)
    words = " ".join(f"Please tell me whether chair number {n} has been paid for by me." for n in range(95))
    tasks = [{"description": f"Find out what became of chair {n} of the whole set, and when. " * 9} for n in range(8)]
    answer = "\n\n".join(f"Was chair {n} paid and sent to you as you had asked for [1]?" for n in range(150))
    rig.say(synthesizer=answer, planner=json.dumps({**json.loads(plan("coordinator")), "tasks": tasks}))
    key = rig.ask(words)
    turn = rig.turn(key)
    assert rig.app.dependencies.counter.count(turn.context) <= 8_600
    whole = turn.files["section_4_whole.md"]
    assert telling.text(1) in whole and telling.text(1) not in rig.section(key, 4)
    assert rig.section(key, 0) == words and turn.files["response.md"] == answer + "\n"
    assert "section_4_whole.md" in phase_record(rig, key, "tool_results").files


def test_an_answer_over_its_budget_is_whole_for_its_validation_and_for_the_user(rig):
    """000 section 11.3 and 001 section 7: section 5 is compressed once section 6 has judged it; response.md, the printed answer and its
    citations are whole, and the section leads there. Another validation judges the whole answer again."""
    stored = rig.app.dependencies.tools["doc.search"] = Telling(2)
    rig.say(planner=plan("coordinator"), executor=[command(), COMPLETE], coordinator=tool("doc.search"), compressor=shortens)
    answer = "\n\n".join(f"Was chair CH{n}00X paid with ${n}49.00 [1]? {FILLER[:-1]}?" for n in range(1, 61))
    rig.say(synthesizer=answer)
    key = rig.ask("which chairs were paid?")
    turn, section = rig.turn(key), rig.section(key, 5)
    assert turn.manifest.state == "saved" and stored.calls == 1
    assert rig.app.dependencies.counter.count(section) <= 2_000 and section.endswith("Whole answer: `response.md`")
    assert "$6049.00" in section and "[1]" in section
    assert turn.files["response.md"] == answer + "\n" and rig.app.answer_of(key).response == answer
    assert [c["label"] for c in rig.app.answer_of(key).citations] == ["1"]
    assert phase_record(rig, key, "validation").report["facts"]["compressions"][0]["document"] == "response.md"
    judged = rig.runtime.of("validator")
    rig.app.run(run_phase("validation", key, rig.app.dependencies))
    again = rig.runtime.of("validator")[len(judged) :]
    assert again[0].document("context.md") == judged[0].document("context.md")
    assert answer in judged[0].document("context.md")


def test_later_turns_and_searches_read_the_whole_of_an_answer_over_its_budget(rig, growing):
    """What the compression of section 5 left out is in the index row, found by a search and read as a prior turn; a rebuild agrees."""
    growing(2)
    answer = "\n\n".join(f"Was chair CH{n}00X paid with ${n}49.00 [1]? {FILLER[:-1]}?" for n in range(1, 61))
    rig.say(synthesizer=answer)
    first = rig.ask("which chairs were paid?")
    section = rig.section(first, 5)
    assert section.count(FILLER) < 30 and section.endswith("Whole answer: `response.md`")
    assert answer in rig.row(first).text
    found = rig.app.turn_index.messages("anna", "weekend families", limit=1)
    assert [(m.turn_id, m.message_id) for m in found] == [(first.turn_id, "answer")] and answer in found[0].text
    assert rig.app.indexes.verify() == ()
    rig.say(planner=plan("synthesis"), retrieval=retrieval(first.number))
    key = rig.ask("who planned a weekend with the families?")
    row = phase_record(rig, key, "gathered_context").report["facts"]["compressions"][0]
    assert row["document"] == f"turns/{first.turn_id}/context.md" and row["tokens_before"] > rig.app.dependencies.counter.count(answer)


def test_a_prior_turn_over_its_limit_is_compressed_to_it(rig, growing):
    """DECISIONS 2: the chosen turn is there with every fact, within 1,500 tokens, and the stored turn is as it was."""
    growing(45)
    first = rig.ask("which chairs were sold?")
    before = rig.turn(first)
    rig.say(planner=plan("synthesis"), retrieval=retrieval(first.number))
    key = rig.ask("what was chair CH12000X sold for?")
    item = rig.runtime.of("context_synthesis")[-1].document("prior_turns")
    assert "$12049.00" in item and rig.app.dependencies.counter.count(item) <= 1_560
    assert phase_record(rig, key, "gathered_context").report["facts"]["compressions"][0]["document"] == f"turns/{first.turn_id}/context.md"
    assert rig.turn(first) == before


def test_switched_off_a_call_over_its_budget_halts(rig, growing):
    """COMPRESSION_ENABLED=false: no text is shortened, and none is cut."""
    growing(120)
    rig.app = replace(rig.app, dependencies=replace(rig.app.dependencies, summarizer=None))
    rig.app.dependencies.execution.use_fitter(None)
    key = rig.ask()
    assert rig.halted(key).type == "budget_exceeded" and not rig.runtime.of("compressor")


def test_no_prompt_and_no_stored_document_is_ever_cut(rig, growing):
    """DECISIONS 1, compared with what was said before anything was stored: the user's words, what the tool told, what the models
    answered. Stored texts are these, whole. What a pack shows of a document is the stored text line by line; a line that is not comes
    from a recorded compression of exactly that document, whose table has a verdict for every fact."""
    telling = growing(40, 45, 70)
    block = "\n".join(f"2026-03-04 10:{n % 60:02d}:00 INFO chair {n} was moved to hall {n}" for n in range(200))
    words = f"Why was my chair moved?\n\n```\n{block}\n```\n\nPlease be brief."
    answer = "\n\n".join(f"Was chair CH{n}00X paid with ${n}49.00 [1]? {FILLER[:-1]}?" for n in range(1, 61))
    rig.say(synthesizer=answer)
    key = rig.start(words)
    reports = rig.run(key)
    turn, message = rig.turn(key), [telling.text(call) for call in range(3)]
    assert rig.section(key, 0) == words and turn.files["response.md"] == answer + "\n"
    assert all(text in turn.files["toolresults.md"] for text in message)
    shortened = {row["document"].rpartition(": ")[2]: r["compression_after"] for r in (x.facts for x in reports) for row in rows_of(r)}
    assert {"toolresults.md", "response.md", "pasted_1", "context.md"} <= shortened.keys()
    made = "\n".join(r.facts.get("compression_after", "") for r in reports)
    texts = [text.splitlines() for text in (block, answer, *message)]
    for pack in (p for p in rig.runtime.packs if p.role != "compressor"):
        assert pack.query == words or "[attached document pasted_1" in pack.query
        for part in (p for p in pack.parts if p.kind == "document"):
            assert not cut(part.text, texts, made), (pack.role, part.name)
    assert not cut(turn.context, texts, made)


def cut(text, texts, made):
    """Lines of facts in `text` that are neither of a text that stands there whole nor of a recorded compression."""
    lines, compressed = text.splitlines(), set(made.splitlines())
    whole = {line for stretch in texts if set(stretch) <= set(lines) for line in stretch}
    return [line for line in lines if FACT.search(line) and line not in whole and line not in compressed]


FACT = re.compile(r"CH\d+00X|\bINFO\b")
"""Marks a line that only the user, the tool or the answer can have said."""


def rows_of(facts):
    """The compressions of a phase; every fact of each has a verdict."""
    found = facts.get("compressions", [])
    outcomes = ("kept", "equal", "recoverable", "dropped_by_rule", "missing", "mutated")
    assert all(row["facts"] + row["invented"] == sum(row[o] for o in outcomes) + row["invented"] for row in found)
    return found


BAD = {
    "nothing": "",
    "longer": lambda pack: document(pack) + " And so on, as was said before in many more words." * 40,
    "the prompt": lambda pack: pack.system,
    "a refusal": "I'm sorry, but I can't help with that.",
    "another text": lambda pack: document(pack).replace(FILLER, "").replace("49.00", "94.50"),
    "unknown numbers": '{"keep": [1, 98]}',
    "everything": lambda pack: json.dumps({"keep": [unit.number for unit in read_numbered(document(pack))]}),
    "cut in the middle": lambda pack: (document(pack)[: len(document(pack)) // 2], "length")[0],
}


def document(pack):
    return next(p.text for p in pack.parts if p.kind == "document")


@pytest.mark.parametrize("manner", BAD)
def test_a_turn_with_a_bad_compressing_model_keeps_every_critical_fact(manner, rig, growing):
    """Whatever it answers: bounded calls, the turn goes on, the original is untouched, nothing that failed its verification is stored."""
    telling = growing(40, 30)
    rig.say(compressor=BAD[manner])
    key = rig.start()
    report = next(r for r in rig.run(key) if r.phase == "tool_results")
    turn, section = rig.turn(key), rig.section(key, 4)
    assert turn.manifest.state == "saved" and not rig.app.interventions.list()
    assert len(rig.runtime.of("compressor")) <= 10  # one live session's minute
    assert all(telling.text(call) in turn.files["toolresults.md"] for call in range(2))
    row = report.facts["compressions"][0]
    assert row["mutated"] == row["invented"] == 0 and row["tokens_after"] < row["tokens_before"]
    assert {v.gate: v.passed for v in report.verdicts}["no_fact_changed"]
    sold = dict(re.findall(r"CH(\d+)00X was sold for \$(\d+)49\.00", section))
    assert sold and all(chair == price for chair, price in sold.items())
    assert "can't help" not in section and "94.50" not in section
