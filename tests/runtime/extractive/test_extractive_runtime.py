"""The runtime as a ModelRuntime: its name, its records, its refusal, its time."""

import asyncio

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime
from pandora_dagster.errors import ModelRejectedError
from pandora_dagster.phases.flow.phase_table import TOOL_RECIPES
from pandora_dagster.research.recipe_calls import DOCUMENTS_OF_RECIPE
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime, roles
from tests.processor_time import in_units_of_work
from tests.runtime.extractive.packs import TOOLS, context, make_pack, section2, source

DOCUMENTS = {
    "context.md": context(
        "which lamp was cheapest?", s2=section2((3, "1", "Compared three lamps", "The Nordlys lamp was cheapest at $41"))
    ),
    "tools": TOOLS,
    "command": "Search the documents for: lamps (tool: doc.search)",
    "entries": "[1] The Nordlys lamp costs $41.",
    "text_to_compress": "The Nordlys lamp costs $41.\nIt is blue.",
}


def test_fills_the_port(runtime: ExtractiveRuntime) -> None:
    """It can stand wherever a ModelRuntime is asked for, without limit and without temperature."""
    port: ModelRuntime = runtime
    assert (port.name, port.context_limit(ModelLayer.MIND), port.temperature(ModelLayer.VOICE)) == ("extractive", None, 0.0)
    asyncio.run(port.aclose())


@pytest.mark.parametrize("layer", list(ModelLayer))
def test_never_passes_for_a_model(runtime: ExtractiveRuntime, layer: ModelLayer) -> None:
    """Whatever the layer, the answer says that `extractive` made it."""
    assert runtime.model(layer) == "extractive"


@pytest.mark.parametrize("role", list(roles()))
def test_answers_every_role_with_usage_and_latency(runtime: ExtractiveRuntime, role: str) -> None:
    """Each shipped role has an answer with counted tokens and the time that passed."""
    answer = asyncio.run(runtime.complete(make_pack(role, "which lamp was cheapest?", DOCUMENTS), timeout_s=1))
    assert (answer.runtime, answer.model, answer.finish_reason) == ("extractive", "extractive", "stop")
    assert answer.text
    assert answer.usage.prompt > answer.usage.output > 0
    assert answer.latency_ms == pytest.approx(2.0)


def test_unknown_role_is_refused_with_the_remedy(runtime: ExtractiveRuntime) -> None:
    """A role nobody knows is rejected, never guessed, and the message says what to do."""
    with pytest.raises(ModelRejectedError, match="role 'poet'") as raised:
        asyncio.run(runtime.complete(make_pack("poet", "a poem please"), timeout_s=1))
    assert "sglang" in raised.value.hint and not raised.value.retryable


@pytest.mark.parametrize("role", list(roles()))
def test_same_pack_same_answer(runtime: ExtractiveRuntime, role: str) -> None:
    """Nothing but the pack decides: twice the same pack gives the same text."""
    pack = make_pack(role, "which lamp was cheapest?", DOCUMENTS)
    texts = {asyncio.run(runtime.complete(pack, timeout_s=1)).text for _ in range(3)}
    assert len(texts) == 1


@pytest.mark.parametrize("role", list(roles()))
@pytest.mark.parametrize(
    "query", ["when did the apple trees bloom? " * 3000, "x" * 6000, "remember that " + "I prefer red lamps " * 2000, "\n" * 5000]
)
def test_a_huge_query_never_makes_a_huge_answer(runtime: ExtractiveRuntime, role: str, query: str) -> None:
    """Whatever is pasted as a query, each role answers within the tokens that its call may write."""
    pack = make_pack(role, query, {**DOCUMENTS, "context.md": context(query, s5="$41 [1]"), "text_to_compress": query}, limit=300)
    assert asyncio.run(runtime.complete(pack, timeout_s=1)).usage.output <= 300


def test_reads_a_full_input_quickly(runtime: ExtractiveRuntime) -> None:
    """5,500 tokens of section 4 are answered in well under a tenth of a second, in units of work that a busy machine does as slowly."""
    rows = "\n\n".join(
        f"Shelf {n} holds {n * 7} jars of plum jam from farm F{n:03d}, delivered on 2025-03-{n % 28 + 1:02d}." for n in range(170)
    )
    listed = "### Source References\n\n- [1] `turns/turn_000001/context.md` - Shelves"
    pack = make_pack(
        "synthesizer",
        "how many jars of jam does shelf 77 hold?",
        {"context.md": context("q", s4=f"{rows}\n\n{listed}")},
        sources=[source("1", 1)],
    )
    answers = []
    units = in_units_of_work(lambda: answers.append(asyncio.run(runtime.complete(pack, timeout_s=10))))
    assert units < 66, units
    assert answers[-1].text.startswith("Shelf 77 holds 539 jars") and "\n" not in answers[-1].text


def test_shipped_roles_are_the_documented_ones() -> None:
    """The table of roles is the list in docs/reference/call-documents.md."""
    chat = ["query_analyzer", "reflection", "retrieval", "context_synthesis", "planner", "executor", "coordinator"]
    research = [name.partition("/")[2] for name in DOCUMENTS_OF_RECIPE]
    kept = ["session_summarizer", "digest_builder", "conversation_summarizer", "fact_keeper", "profile_keeper"]
    judging = [recipe.name.partition("/")[2] for recipe in TOOL_RECIPES]
    assert sorted(roles()) == sorted(
        [
            *chat,
            "synthesizer",
            "validator",
            "summarizer",
            "compressor",
            "meaning_checker",
            *kept,
            *judging,
            *research,
            "screenshot_reader",
            "failure_lesson",
        ]
    )
