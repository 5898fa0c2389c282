"""The shipped recipes and prompts against the documents and against the answers that the phases read."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import jsonschema
import pytest
from pydantic import BaseModel

from pandora_dagster.app.recipe_admin import called_recipes
from pandora_dagster.contracts import phase_outputs
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.recipes.lint import check_all, example_answers
from pandora_dagster.recipes.recipe_loader import RecipeLoader
from pandora_dagster.recipes.static_prompts import prompt_cases, select_prompts
from pandora_dagster.research.recipe_calls import DOCUMENTS_OF_RECIPE
from pandora_dagster.runtime.extractive.extractive_runtime import roles
from pandora_dagster.runtime.token_counter import TokenCounter
from pandora_dagster.tools.tool_registry import TOOL_NAMES, WRITING_TOOLS

ANSWERS: dict[str, type[BaseModel]] = {
    "phase0_query_analyzer": phase_outputs.QueryAnalysis,
    "phase1_reflection": phase_outputs.Reflection,
    "phase2_retrieval": phase_outputs.RetrievalPlan,
    "phase2_synthesis": phase_outputs.GatheredContext,
    "phase3_planner_chat": phase_outputs.TaskPlan,
    "phase3_planner_code": phase_outputs.TaskPlan,
    "phase4_executor_chat": phase_outputs.ExecutorStep,
    "phase4_executor_code": phase_outputs.ExecutorStep,
    "phase4_coordinator_chat": phase_outputs.ToolCall,
    "phase4_coordinator_code": phase_outputs.ToolCall,
    "phase6_validator": phase_outputs.ValidationVerdict,
    "phase7_summarizer": phase_outputs.TurnSummary,
}
FILLED_BY_CODE = {"original_query"}
BUDGETS = {
    "pipeline/phase0_query_analyzer": ("REFLEX", 1500, 500, 700, 300, 0),
    "pipeline/phase1_reflection": ("REFLEX", 2200, 600, 1200, 400, 0),
    "pipeline/phase2_retrieval": ("MIND", 5500, 800, 4200, 500, 0),
    "pipeline/phase2_synthesis": ("MIND", 6500, 700, 3800, 2000, 0),
    "pipeline/phase3_planner_chat": ("MIND", 5750, 1540, 2000, 2000, 210),
    "pipeline/phase3_planner_code": ("MIND", 5750, 1540, 2000, 2000, 210),
    "pipeline/phase4_executor_chat": ("MIND", 5000, 1000, 3500, 500, 0),
    "pipeline/phase4_executor_code": ("MIND", 5000, 1000, 3500, 500, 0),
    "pipeline/phase4_coordinator_chat": ("MIND", 8000, 2500, 3500, 2000, 0),
    "pipeline/phase4_coordinator_code": ("MIND", 12000, 3000, 6500, 2500, 0),
    "pipeline/phase5_synthesizer_chat": ("VOICE", 10000, 1318, 5500, 3000, 182),
    "pipeline/phase5_synthesizer_code": ("VOICE", 10000, 1318, 5500, 3000, 182),
    "pipeline/phase6_validator": ("MIND", 6000, 1500, 4000, 500, 0),
    "pipeline/phase7_summarizer": ("MIND", 10000, 700, 8600, 400, 300),
    "memory/l2_summary": ("NERVES", 5000, 600, 4000, 300, 100),
    "memory/conversation_summary": ("MIND", 7000, 900, 4900, 1100, 100),
    "memory/l3_digest": ("MIND", 4500, 700, 3000, 700, 100),
    "memory/session_facts": ("MIND", 7000, 900, 4500, 1300, 300),
    "memory/profile": ("MIND", 7000, 700, 4700, 1300, 300),
    **{
        f"compression/compress_{kind}": ("NERVES", 1000, 400, 500, 100, 0)
        for kind in ("context", "research", "tool_result", "prior_turn", "generic")
    },
    "compression/compress_page_doc": ("NERVES", 1000, 400, 500, 100, 0),
    "browser/screenshot_reader": ("EYES", 4000, 500, 1500, 2000, 0),
    "compression/verify_meaning": ("MIND", 3000, 500, 1900, 600, 0),
    "memory/fact_conflict": ("MIND", 2600, 500, 2000, 100, 0),
    "memory/fact_expiry": ("REFLEX", 1200, 400, 700, 100, 0),
    "memory/memory_query": ("REFLEX", 2500, 400, 2000, 100, 0),
    "memory/forget_request": ("REFLEX", 2500, 400, 2000, 100, 0),
    "tools/doc_search_query": ("REFLEX", 1600, 400, 1000, 200, 0),
    "tools/argument_filler": ("MIND", 3400, 500, 2400, 500, 0),
    "reflection/loop_detector": ("REFLEX", 1900, 400, 1400, 100, 0),
    "reflection/failure_lesson": ("MIND", 6500, 600, 5000, 900, 0),
    "research/strategy": ("MIND", 1900, 800, 700, 400, 0),
    "research/query_writer": ("REFLEX", 1600, 700, 700, 200, 0),
    "research/query_rewriter": ("REFLEX", 2300, 750, 1300, 250, 0),
    "research/result_selector": ("MIND", 8500, 900, 6000, 1600, 0),
    "research/claim_extractor": ("MIND", 8500, 1150, 6000, 1350, 0),
    "research/claim_verifier": ("MIND", 5550, 850, 3500, 1200, 0),
    "research/claim_merger": ("MIND", 9850, 950, 8000, 900, 0),
    "research/stop_judge": ("MIND", 5600, 800, 4500, 300, 0),
    "research/record_summary": ("MIND", 5000, 650, 4000, 350, 0),
    "research/report_writer": ("VOICE", 5650, 750, 4000, 900, 0),
    **{f"browser/{kind}_reader": ("MIND", 8500, 1150, 6000, 1350, 0) for kind in ("product", "list", "table", "article", "forum", "pdf")},
    **{f"research/{kind}_extractor": ("MIND", 8500, 1150, 6000, 1350, 0) for kind in ("price", "spec", "review")},
    **{f"research/{kind}_extractor": ("REFLEX", 8500, 1150, 6000, 1350, 0) for kind in ("availability", "date")},
    "research/page_relevance": ("REFLEX", 1950, 550, 1200, 200, 0),
    "research/source_credibility": ("MIND", 6000, 900, 3500, 1600, 0),
    "research/vendor_selector": ("MIND", 6000, 900, 3500, 1600, 0),
    "research/freshness_judge": ("REFLEX", 5100, 800, 4000, 300, 0),
    "research/contradiction_finder": ("MIND", 4300, 800, 2500, 1000, 0),
    "browser/page_type": ("REFLEX", 2900, 700, 2000, 200, 0),
    "browser/zone_confidence": ("MIND", 4600, 700, 3500, 400, 0),
    "browser/extraction_validator": ("MIND", 7200, 900, 6000, 300, 0),
    "browser/pagination_finder": ("REFLEX", 3200, 600, 2400, 200, 0),
    "browser/injection_screen": ("REFLEX", 6650, 750, 5000, 900, 0),
    "browser/link_ranker": ("REFLEX", 5800, 900, 4000, 900, 0),
    "browser/blocker_classifier": ("REFLEX", 3020, 720, 2000, 300, 0),
}


def schema_of(shipped: RecipeLoader, name: str) -> Mapping[str, Any]:
    schema = shipped.load(f"pipeline/{name}").recipe.output_schema
    assert schema is not None
    return schema


def examples(shipped: RecipeLoader, name: str) -> list[Any]:
    loaded = shipped.load(name)
    roles = ["\n\n".join(select_prompts(loaded, **case)) for case in prompt_cases(loaded)]
    return [json.loads(text) for role in roles for text in example_answers(role)]


def test_the_shipped_recipes_passes_every_check(shipped: RecipeLoader, counter: TokenCounter) -> None:
    """No fault in any recipe or prompt, the registry and the schema are fresh, and there is no notice to get used to."""
    called = called_recipes(shipped)
    checked = check_all(shipped, TOOL_NAMES, counter, lambda loaded: called.get(loaded.path), roles(), WRITING_TOOLS)
    assert (checked.faults, checked.notices) == ((), ())
    assert checked.approvals == ("pipeline/phase4_coordinator_code: risk_level high: memory.create waits for the user's approval",)


def test_the_shipped_recipes_have_the_budgets_of_the_documents(shipped: RecipeLoader) -> None:
    """Layer, total, prompt, input, output and reserve of every recipe (000 section 11.2, 004 section 7)."""
    found = {}
    for name in shipped.names():
        recipe = shipped.load(name).recipe
        b = recipe.token_budget
        found[name] = (str(recipe.model_layer), b.total, b.prompt, b.input, b.output, b.response_reserve)
    assert found == BUDGETS


@pytest.mark.parametrize("name", ANSWERS)
def test_the_examples_pass_the_schema_and_the_model(shipped: RecipeLoader, name: str) -> None:
    """What a prompt shows as an answer is one that the recipe and the phase both take, in the order in which it is written."""
    schema = schema_of(shipped, name)
    shown = examples(shipped, f"pipeline/{name}")
    assert shown
    for example in shown:
        jsonschema.validate(example, schema)
        ANSWERS[name].model_validate(example)
        order = [key for key in schema["properties"] if key in example]
        assert list(example) == order


def objects(schema: Mapping[str, Any], definitions: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(path, object schema) for every object with properties, references followed."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[-1]]
    if "properties" in schema:
        yield path, schema
    for key, child in schema.get("properties", {}).items():
        yield from objects(child, definitions, f"{path}.{key}")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from objects(schema[word], definitions, f"{path}[]")
    for branch in schema.get("anyOf", ()):
        yield from objects(branch, definitions, path)


def enums(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path, node in objects(schema, definitions):
        for key, child in node["properties"].items():
            target = definitions[child["$ref"].rsplit("/", 1)[-1]] if "$ref" in child else child
            if "enum" in target:
                found[f"{path}.{key}"] = sorted(target["enum"])
    return found


@pytest.mark.parametrize("name", ANSWERS)
def test_the_schema_is_that_of_the_answer(shipped: RecipeLoader, name: str) -> None:
    """Same objects, same properties, same words; whatever the model requires the schema requires; nothing further is let in."""
    schema, model = schema_of(shipped, name), ANSWERS[name].model_json_schema()
    ours = dict(objects(schema, {}))
    theirs = dict(objects(model, model.get("$defs", {})))
    assert set(ours) == set(theirs)
    for path, node in theirs.items():
        assert set(ours[path]["properties"]) == set(node["properties"]) - FILLED_BY_CODE
        assert set(node.get("required", ())) <= set(ours[path]["required"])
        assert ours[path]["additionalProperties"] is False
    assert enums(schema, {}) == enums(model, model.get("$defs", {}))


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("phase0_query_analyzer", {"intent": "shopping"}),
        ("phase1_reflection", {"confidence": 1.5}),
        ("phase2_retrieval", {"confidence": "high"}),
        ("phase2_synthesis", {"prior_turns": [{"turn": "808"}]}),
        ("phase3_planner_chat", {"next_step": "answer"}),
        ("phase4_executor_code", {"action": "DONE"}),
        ("phase4_coordinator_code", {"arguments": "none"}),
        ("phase6_validator", {"decision": "OK"}),
        ("phase7_summarizer", {"topics": ["one"]}),
        ("phase7_summarizer", {"extra": 1}),
    ],
)
def test_both_refuse_the_same_wrong_answers(shipped: RecipeLoader, name: str, spoil: dict[str, Any]) -> None:
    """An answer that the phase could not read is already stopped by the schema."""
    wrong = {**examples(shipped, f"pipeline/{name}")[0], **spoil}
    assert not jsonschema.Draft202012Validator(schema_of(shipped, name)).is_valid(wrong)
    with pytest.raises(ValueError, match="validation error"):
        ANSWERS[name].model_validate(wrong)


def test_the_thresholds_and_gates_of_the_documents(shipped: RecipeLoader) -> None:
    """000 section 14: confidence where it is asked for, evidence in phases 4, 5 and 6; compression never compresses its own input."""
    loaded = {name.split("/")[1]: shipped.load(name).recipe for name in shipped.names()}
    gates = {name: recipe.quality_gates for name, recipe in loaded.items()}
    assert {n for n, g in gates.items() if g.confidence_threshold == 0.7} == {"phase1_reflection", "phase2_retrieval", "phase6_validator"}
    assert {n.rsplit("_", 1)[0] for n, g in gates.items() if g.evidence_required} == {
        "phase4_coordinator",
        "phase5_synthesizer",
        "phase6",
    }
    assert {recipe.content_type for recipe in loaded.values() if not recipe.compression.enabled} == {*ContentType, None}
    assert [n for n, r in loaded.items() if r.compression.mode == "rewrite"] == []
    assert {n for n, r in loaded.items() if r.temperature == 0.3} == {
        "phase7_summarizer",
        "l2_summary",
        "l3_digest",
        "conversation_summary",
        "session_facts",
        "profile",
        *(n for n in loaded if n.startswith("compress_")),
    }


def test_the_roles_are_those_of_the_architecture(shipped: RecipeLoader) -> None:
    """Every recipe says what it is for, in the words that the embedded runtime knows."""
    roles = {shipped.load(name).recipe.role for name in shipped.names()}
    assert roles == {
        "query_analyzer",
        "reflection",
        "retrieval",
        "context_synthesis",
        "planner",
        "executor",
        "coordinator",
        "synthesizer",
        "validator",
        "summarizer",
        "fact_conflict",
        "fact_expiry",
        "memory_query",
        "forget_request",
        "doc_search_query",
        "argument_filler",
        "loop_detector",
        "failure_lesson",
        "compressor",
        "meaning_checker",
        "session_summarizer",
        "digest_builder",
        "conversation_summarizer",
        "fact_keeper",
        "profile_keeper",
        "screenshot_reader",
        *(name.partition("/")[2] for name in DOCUMENTS_OF_RECIPE),
    }


def test_shipped_recipes_name_their_schema_for_editors(shipped: RecipeLoader) -> None:
    """The first line of every recipe leads editors to `schema.json`."""
    for name in shipped.names():
        first = (shipped.recipes / f"{name}.yaml").read_text().splitlines()[0]
        assert first == "# yaml-language-server: $schema=../schema.json"


@pytest.mark.parametrize("name", ["phase2_retrieval", "phase2_synthesis"])
def test_what_chooses_and_gathers_knows_every_document_it_reads(shipped: RecipeLoader, name: str) -> None:
    """A document that the prompt does not name, or a banner over one, would be put into no field."""
    recipe = shipped.load(f"pipeline/{name}").recipe
    prompt = "\n".join((shipped.prompts.parent / entry.path).read_text() for entry in recipe.prompt_files)
    assert recipe.input_docs and [d for d in recipe.input_docs if f"`{d}`" not in prompt] == []


def test_gathering_knows_the_headers_that_loaded_texts_stand_under(shipped: RecipeLoader) -> None:
    """As `phases` writes them: earlier turns with their speakers, research, notes."""
    prompt = (shipped.prompts / "pipeline" / "phase2_synthesis.md").read_text()
    for header in ("PRIOR TURN ", "PRIOR TURNS ", "conversation summary", "Speakers: ", "CACHED RESEARCH", "NOTE ", "`stale`"):
        assert header in prompt, header


def test_intents_in_conditions_exist(shipped: RecipeLoader) -> None:
    """A block that waits for an intent nobody gives would never be part of a prompt."""
    whens = [entry.when for name in shipped.names() for entry in shipped.load(name).recipe.prompt_files if entry.when]
    assert whens
    assert {intent for when in whens for intent in when.intent or ()} <= set(get_args(phase_outputs.Intent))


def test_every_object_says_whether_more_may_follow(shipped: RecipeLoader) -> None:
    """The model server's grammar takes a missing `additionalProperties` for false, our validation for true: none is left to chance."""
    schemas = [schema for name in shipped.names() if (schema := shipped.load(name).recipe.output_schema)]
    found = [node for schema in schemas for _, node in objects(schema, {})]
    assert len(found) > len(schemas)
    assert all("additionalProperties" in node for node in found)
