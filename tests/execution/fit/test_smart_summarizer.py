"""Calls whose documents are too large: what is compressed, in what order, what never; the query's own limits; the larger layer."""

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.recipe_schema import CompressionSettings
from pandora_dagster.errors import HaltError
from pandora_dagster.execution.fit.call_budget import CallLimit
from pandora_dagster.execution.fit.compression_log import CompressionLog
from pandora_dagster.execution.fit.smart_summarizer import SmartSummarizer, plan_compression
from pandora_dagster.execution.fit.summarization_engine import SummarizationEngine
from pandora_dagster.recipes.recipe_loader import open_recipes
from tests.execution.conftest import FakeStores

PARAGRAPH = (
    "The shop at store{n}.example.com sold chair number CH{n}00X for ${n}49.00 on {n} March 2026. It was a fine day and {filler}.\n\n"
)
FILLER = "we all talked about how nice the weather had been and what everybody was going to do at the weekend with their families"
QUERY = "which flight?"
DOCS = ("context.md", "turn_summaries", "research.md", "notes")


def paragraphs(count: int) -> str:
    return "".join(PARAGRAPH.format(n=n, filler=FILLER) for n in range(1, count + 1))


def context(body: str, query: str = QUERY) -> InputDocument:
    return InputDocument("context.md", f"## 0. User Query\n\n{query}\n\n## 2. Gathered Context\n\n{body}\n\n## 3. Task Plan\n\nAnswer.\n\n")


@pytest.fixture
def fitting_rig(rig, counter, make_recipe):
    """`fitting_rig(*script, **recipe fields)`: an executor that compresses by structure, over a recipe with 600 tokens of input."""

    def build(*script, limit=None, prompt=500, input=600, **fields):
        budget = {"total": prompt + input + 400, "prompt": prompt, "input": input, "output": 400}
        values = {"token_budget": budget, "input_docs": DOCS, "input_sections": ("§0", "§2", "§3"), **fields}
        made = rig(*script, recipe=make_recipe(**values), **({"limit": limit} if limit else {}))
        logged, made.events = FakeStores(), []
        log = CompressionLog(logged, made.executor._clock, lambda: "call_c", lambda event, **more: made.events.append((event, more)))
        engine = SummarizationEngine(recipes=open_recipes(), counter=counter, clock=made.executor._clock, log=log)
        made.executor.use_fitter(SmartSummarizer(engine, counter, log))
        made.logged = logged.records
        return made

    return build


def test_a_context_over_the_input_budget_is_compressed_in_the_pack(fitting_rig):
    """The query verbatim, the facts there, the tokens saved in the record; the request's own document is untouched."""
    made, given = fitting_rig(), context(paragraphs(14))
    result = made.call(documents=(given,))
    sent = made.runtime.packs[0].document("context.md")
    assert made.runtime.packs[0].query == QUERY and "User Query" not in sent and "$1449.00" in sent
    assert result.record.compression_applied and result.record.compression_savings > 0
    assert result.record.tokens.input <= 600
    ((event, line),) = made.events
    assert (event, line["recipe"], line["compressed_by"]) == ("smart_summarization", "planner_chat", "compress_context")
    assert given == context(paragraphs(14))


def test_the_users_own_words_focus_a_compression_beside_a_paste(fitting_rig):
    """A query over 200 tokens focused nothing, though its question is a few words."""
    made = fitting_rig(input=1_800)
    made.call(query=f"What does chair CH2300X cost?\n\n{LOG}", documents=(context("short"), InputDocument("notes", paragraphs(60))))
    assert "CH2300X" in made.runtime.packs[0].document("notes")


def test_the_lowest_priority_gives_way_first(fitting_rig):
    """Descriptions and history before claims; what fits then stays whole."""
    made = fitting_rig(input=1_500)
    research = "## Research Findings\n\n" + paragraphs(6)
    made.call(documents=(context("short"), InputDocument("notes", paragraphs(30)), InputDocument("research.md", research)))
    pack = made.runtime.packs[0]
    assert (
        pack.document("research.md") == research
        and pack.document("context.md") == context("short").text.partition("\n\n## 2.")[2].join(("## 2.", "")).rstrip()
    )
    assert 0 < len(pack.document("notes")) < len(paragraphs(30))


@pytest.mark.parametrize("kept", ["notes", "section_2"])
def test_what_the_recipe_preserves_stays_whole(kept, fitting_rig):
    """A document or section that `compression.preserve` names is not touched; the others make the room."""
    made = fitting_rig(input=1_100, compression=CompressionSettings(preserve=("section_0", kept)))
    body, notes = paragraphs(14), paragraphs(14)
    made.call(documents=(context(body), InputDocument("notes", notes)))
    pack = made.runtime.packs[0]
    assert (pack.document("notes") == notes) == (kept == "notes")
    assert (body.strip() in pack.document("context.md")) == (kept == "section_2")


def test_a_preserved_section_stays_while_its_own_document_makes_the_room(fitting_rig):
    """The largest section, which gives way first, stays to the letter; another of the same context.md is shortened instead."""
    made = fitting_rig(input=1_500, input_sections=("§0", "§2", "§4"), compression=CompressionSettings(preserve=("section_0", "section_2")))
    text = f"## 0. User Query\n\n{QUERY}\n\n## 2. Gathered Context\n\n{paragraphs(14)}\n\n## 4. Tool Execution\n\n{paragraphs(13)}\n\n"
    made.call(documents=(InputDocument("context.md", text),))
    sent = made.runtime.packs[0].document("context.md")
    assert paragraphs(14).strip() in sent and "## 4. Tool Execution" in sent and len(sent) < 0.95 * len(text)


def large_unit(first: int) -> str:
    """One sentence of about 900 tokens: it is kept whole or left out."""
    return "Codes " + " ".join(f"{(first + n) * 2654435761 % 2**32:08x}" for n in range(200)) + "."


def test_a_document_that_cannot_give_the_most_gives_what_it_can(fitting_rig):
    """Where not one of its units fits the smallest share, the next larger share is tried before it stays whole."""
    notes = "\n\n".join(large_unit(n * 300) for n in range(3))
    made = fitting_rig(input=2_400)
    made.call(documents=(context("short"), InputDocument("notes", notes), InputDocument("research.md", "## Findings\n\n" + paragraphs(30))))
    pack = made.runtime.packs[0]
    assert large_unit(0) in pack.document("notes") or large_unit(300) in pack.document("notes") or large_unit(600) in pack.document("notes")
    assert len(pack.document("notes")) < 0.75 * len(notes)


def test_a_recipe_that_does_not_allow_compression_halts(fitting_rig):
    """`compression.enabled: false`: the budget HALTs the call."""
    made = fitting_rig(compression=CompressionSettings(enabled=False))
    with pytest.raises(HaltError):
        made.call(documents=(context(paragraphs(14)),))
    assert made.stores.opened[0].type == "budget_exceeded" and not made.runtime.packs


def test_a_unit_that_does_not_fit_halts(fitting_rig):
    """It is never cut: fact_loss, with the figures, and nothing is sent."""
    made = fitting_rig(input=400, quality_gates={"max_retries": 0})
    with pytest.raises(HaltError, match="not one unit fits"):
        made.call(documents=(context("short"), InputDocument("notes", large_unit(0))))
    assert made.stores.opened[0].type == "fact_loss" and not made.runtime.packs
    assert any(record.gates == {"within_budget": False} for record in made.logged)


def test_one_error_among_much_text_is_kept_to_the_letter(fitting_rig):
    """The priority order's CRITICAL."""
    made = fitting_rig()
    made.call(documents=(context(paragraphs(7) + "Error: payment gateway timed out at 10:31.\n\n" + paragraphs(7)),))
    assert "Error: payment gateway timed out at 10:31." in made.runtime.packs[0].document("context.md")


LOG = "\n".join(f"2026-03-04 10:{m:02d}:00 INFO worker {m} moved file number {m}00 to the archive" for m in range(50))


def test_the_persons_words_stay_and_the_pasted_block_travels_attached(fitting_rig):
    """DECISIONS 3: the query refers to the block, and a document that repeats it too; the block is compressed as a document."""
    query = f"Why is my chair late?\n\n```\n{LOG}\n```\n\nPlease answer today."
    made = fitting_rig()
    made.call(query=query, documents=(context("short", query), InputDocument("notes", f"They said: {query}")))
    pack = made.runtime.packs[0]
    assert pack.query.startswith("Why is my chair late?") and pack.query.endswith("Please answer today.")
    assert "pasted_1" in pack.query and "pasted_1" in pack.document("notes") and "worker 7" not in pack.document("notes")
    assert pack.document("pasted_1") and len(pack.document("pasted_1")) < len(LOG)


def test_words_over_a_small_layers_input_go_to_the_next_larger_one(fitting_rig):
    """They stand once, verbatim; the larger layer has the call's own limit, and the record says so."""
    words = " ".join(f"I would like to know whether chair {n} was paid by me." for n in range(150))
    made = fitting_rig(model_layer="REFLEX")
    result = made.call(query=words, documents=(context("short", words),))
    pack = made.runtime.packs[0]
    assert pack.layer is ModelLayer.MIND and pack.query == words
    assert result.record.escalated and result.record.tokens.budget == 12_000


@pytest.mark.parametrize(("layer", "limit"), [("MIND", CallLimit()), ("REFLEX", CallLimit(total=2_000, reserve=500))])
def test_words_that_no_layer_takes_halt(layer, limit, fitting_rig):
    """No larger layer, or none that is large enough (DEFAULT_CONTEXT_BUDGET): budget_exceeded, nothing is cut or sent."""
    words = " ".join(f"I would like to know whether chair {n} was paid by me." for n in range(150))
    made = fitting_rig(model_layer=layer, limit=limit)
    with pytest.raises(HaltError):
        made.call(query=words, documents=(context("short", words),))
    assert made.stores.opened[0].type == "budget_exceeded" and not made.runtime.packs


def test_the_plan_says_what_it_would_do(counter, make_recipe):
    """Nothing where all fits; else the steps, and the tokens that no step saves."""

    def plan_of(*documents):
        return plan_compression(documents, make_recipe(), {}, budget_tokens=1_000, count=counter.count)

    small = InputDocument("notes", "short")
    assert plan_of(small) is None
    plan = plan_of(small, InputDocument("prior_turns", paragraphs(40)))
    assert [step.name for step in plan.steps] == ["prior_turns"] and plan.over == 0
    assert plan.total_tokens > 1_000
    assert plan_of(InputDocument("tools", paragraphs(40))).over > 0


REFERENCES = "### Source References\n\n- [1] `turns/turn_000001/context.md`\n- [2] `turns/turn_000002/context.md`"
FACT = "Chair number CH{n}00X costs ${n}49.00 at store{n}.example.com, and {filler}."


def judged(answer: str, *, facts: int = 10) -> InputDocument:
    """context.md whose section 2 quotes `facts` facts of turn 1 and of turn 2."""
    turns = (
        f"**Turn {turn}** (high) [{turn}]\n\n" + "\n".join(f"- {FACT.format(n=10 * turn + n, filler=FILLER)}" for n in range(facts))
        for turn in (1, 2)
    )
    body = "\n\n".join(("### Relevant Prior Turns", *turns, REFERENCES))
    return InputDocument(
        "context.md", f"## 0. User Query\n\n{QUERY}\n\n## 2. Gathered Context\n\n{body}\n\n## 5. Synthesis\n\n{answer}\n\n"
    )


JUDGE = {
    "input_sections": ("§0", "§2", "§5"),
    "compression": CompressionSettings(preserve=("section_0", "section_5", "cited_passages")),
}


def test_a_judged_answer_is_whole_and_what_it_cites_comes_first(fitting_rig):
    """Section 5 and each passage that is sent are verbatim; passages of another source go first, then those far from the answer."""
    made = fitting_rig(**JUDGE)
    answer = "Chair number CH2300X costs $2349.00 [2], and the store23.example.com sells it [2]."
    made.call(documents=(judged(answer),))
    sent = made.runtime.packs[0].document("context.md")
    lines = [line for line in sent.splitlines() if line.startswith("- Chair")]
    assert answer in sent and REFERENCES in sent and "passages left out for room]" in sent
    assert f"- {FACT.format(n=23, filler=FILLER)}" in lines and all(line in judged(answer).text for line in lines)
    assert len([line for line in lines if "CH2" in line]) > len([line for line in lines if "CH1" in line])
    assert made.logged == []  # no compression ran


def test_a_judged_answer_over_the_budget_halts(fitting_rig):
    """Section 5 is never shortened: the HALT names its tokens, and says what to do."""
    made = fitting_rig(**JUDGE)
    with pytest.raises(HaltError, match=r"section 5 with \d+ tokens .* judged whole") as halted:
        made.call(documents=(judged(paragraphs(16)),))
    assert "shorter answer" in halted.value.hint and made.runtime.packs == []
