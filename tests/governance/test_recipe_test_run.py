"""Recipe tests: what an expectation holds, what a recipe's tests find, how a faulty one is reported."""

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from pydantic import ValidationError

from pandora_dagster.app import recipe_admin
from pandora_dagster.app.recipe_admin import open_dry_run
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.recipe_schema import ASSERTIONS, Expectation, RecipeTest
from pandora_dagster.governance.promotion import ChangeAttribution, assign, roll_back
from pandora_dagster.governance.recipe_test_run import RecipeTestOutcome, junit_xml, unmet_expectations
from pandora_dagster.recipes.lint import example_answers
from pandora_dagster.recipes.recipe_loader import RecipeLoader, check_file, open_recipes
from pandora_dagster.settings import load_settings
from tests.fakes.model_runtimes import SequenceRuntime
from tests.governance.recipe_copies import copied, edit

ANSWER: dict[str, Any] = {"decision": "PROCEED", "confidence": 0.8, "tasks": [{"tool": "doc.search"}], "text": "It is blue [2]."}


def run(folder, name="", **more):
    settings = load_settings({"PANDORA_RECIPES": str(folder), "PANDORA_ROOT": str(folder / "none")})
    return recipe_admin.run_tests(settings, recipe_admin.open_recipe_admin(settings), name, **more)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"field": "decision", "equals": "PROCEED"}, {"field": "decision", "equals": "CLARIFY"}),
        ({"field": "tasks[0].tool", "one_of": ["doc.search"]}, {"field": "tasks[1].tool", "one_of": ["doc.search"]}),
        ({"field": "text", "contains": "blue"}, {"field": "text", "contains": "red"}),
        ({"field": "text", "lacks": "red"}, {"field": "text", "lacks": "blue"}),
        ({"field": "text", "matches": r"bl\w+"}, {"field": "text", "matches": r"^blue"}),
        ({"field": "confidence", "at_least": 0.8}, {"field": "confidence", "at_least": 0.81}),
        ({"field": "tasks", "at_most": 1}, {"field": "tasks", "at_most": 0}),
        ({"field": "text", "cites": ["2"]}, {"field": "text", "cites": ["2", "3"]}),
        ({"contains": "tasks"}, {"field": "decision.more", "equals": None}),
    ],
)
def test_an_expectation_holds_or_says_why(good, bad):
    """Each word, on a value that meets it and on one that does not; the fault names place and expectation."""
    assert list(unmet_expectations(Expectation(**good), ANSWER)) == []
    fault = next(unmet_expectations(Expectation(**bad), ANSWER))
    assert fault.startswith(f"{bad.get('field')}: ") and f"expected {Expectation(**bad).assertion} " in fault


def test_every_assertion_is_tried_above():
    """A new word needs a line of its own there."""
    assert set(ASSERTIONS) == {"equals", "one_of", "contains", "lacks", "matches", "at_least", "at_most", "cites"}


@pytest.mark.parametrize(
    ("expectation", "says"),
    [
        ({"field": "x"}, "none given: expected exactly one of equals"),
        ({"equals": 1, "lacks": "x"}, "equals, lacks given: expected exactly one"),
        ({"field": "a..b", "equals": 1}, "expected a place such as"),
        ({"matches": "("}, "expected a regular expression"),
    ],
)
def test_a_faulty_expectation_is_refused(expectation, says):
    """When it is read, not when it is run."""
    with pytest.raises(ValidationError, match=says):
        Expectation(**expectation)
    with pytest.raises(ValidationError, match="nothing is expected"):
        RecipeTest(name="t", query="q")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("equals: PROCEED", "equal: PROCEED", ": tests[0].expect[0].equal: unknown assertion: expected one of equals, one_of"),
        ("    query: Which desk is at most", "    ask: Which desk is at most", ": tests[0].ask: unknown field: expected one of query"),
    ],
)
def test_a_faulty_test_is_reported_at_lint_and_stops_no_call(tmp_path, old, new, says):
    """With its line; the recipe itself runs on."""
    folder = copied(tmp_path)
    edit(folder, "recipes/pipeline/phase1_reflection.yaml", old, new)
    faults = check_file(folder / "recipes" / "pipeline" / "phase1_reflection.yaml")
    assert any(says in fault and ".yaml:" in fault for fault in faults), faults
    assert open_recipes(folder).load("pipeline/phase1_reflection").name == "reflection"


def test_tests_are_no_part_of_a_version(tmp_path):
    """What a call cannot notice changes neither hash nor history."""
    folder = copied(tmp_path)
    edit(folder, "recipes/pipeline/phase1_reflection.yaml", "equals: PROCEED", "equals: CLARIFY")
    changed, shipped = open_recipes(folder), open_recipes()
    assert changed.load_with_tests("pipeline/phase1_reflection").version == shipped.load("pipeline/phase1_reflection").version
    assert changed.load("pipeline/phase1_reflection").recipe.tests == ()


def test_the_shipped_recipes_pass_their_tests(tmp_path):
    """Each has some, and the embedded runtime meets them."""
    outcomes = run(copied(tmp_path))
    assert {o.recipe for o in outcomes} == set(open_recipes().names())
    assert [(o.recipe, o.test, o.faults) for o in outcomes if not o.passed] == []
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", open_recipes().names())
def test_the_shipped_tests_fail_on_another_answer(tmp_path, name):
    """The answers that a recipe's own prompt shows as examples have its shape, and are no answers to its tests."""
    examples = example_answers("\n\n".join(text for _, text in open_recipes().load(name).prompts))
    folder = copied(tmp_path)
    outcomes = [outcome for example in examples for outcome in run(folder, name, runtime=SequenceRuntime([example]))]
    assert outcomes and any(not outcome.passed for outcome in outcomes)


def test_recipes_are_tested_as_they_are_in_production(tmp_path, monkeypatch):
    """On the assigned layer; what a call calls in its turn is what is pinned there."""
    folder = copied(tmp_path)
    settings = load_settings({"PANDORA_RECIPES": str(folder), "PANDORA_ROOT": str(tmp_path / "store")})
    other = "compression/compress_generic"
    opened = recipe_admin.open_recipe_admin(settings)
    first = opened.recipes.load_file(other)
    opened.versions.keep(first)
    edit(folder, f"recipes/{other}.yaml", first.recipe.description, "Another one.")
    opened.versions.keep(opened.recipes.load_file(other))
    roll_back(opened.ctx, other, ChangeAttribution("ann", "worse"))
    assign(opened.ctx, "pipeline/phase1_reflection", ModelLayer.MIND, ChangeAttribution("ann", "slow"))
    asked: list[RecipeLoader] = []

    def trying(settings, loader, counter, **more):
        asked.append(loader)
        return open_dry_run(settings, loader, counter, **more)

    monkeypatch.setattr(recipe_admin, "open_dry_run", trying)
    runtime = SequenceRuntime(['{"decision": "PROCEED"}'])
    recipe_admin.run_tests(settings, opened, "reflection", runtime=runtime)
    assert {pack.layer for pack in runtime.packs} == {"MIND"}
    assert asked[0].load(other).version == first.version


def test_outcomes_are_junit(tmp_path):
    """One suite a recipe, failures with every fault, control characters left out."""
    outcomes = [
        RecipeTestOutcome("pipeline/a", "12ab", "first", (), 0.25, "sglang", "Qwen/Qwen3-0.6B"),
        RecipeTestOutcome("pipeline/a", "12ab", "second", ("one\x00", "two"), 0.5, "sglang", "Qwen/Qwen3-0.6B"),
        RecipeTestOutcome("pipeline/b", "34cd", "third", (), 0.0, "extractive", "extractive"),
    ]
    root = ElementTree.fromstring(junit_xml(outcomes))
    assert [(s.get("name"), s.get("tests"), s.get("failures")) for s in root] == [("pipeline/a", "2", "1"), ("pipeline/b", "1", "0")]
    properties = [{p.get("name"): p.get("value") for p in suite.iter("property")} for suite in root]
    assert properties == [
        {"answered_by": "sglang (Qwen/Qwen3-0.6B) 2", "prompts_read": "yes"},
        {"answered_by": "extractive 1", "prompts_read": "no"},
    ]
    failure = root.find(".//failure")
    assert failure is not None and failure.text == "one\ntwo"


def test_a_failing_runtime_is_a_failed_test(tmp_path):
    """What stopped the call is reported; nothing is raised."""
    outcomes = run(copied(tmp_path), "reflection", runtime=SequenceRuntime(["no JSON at all"]))
    assert [o.passed for o in outcomes] == [False, False]
    assert "the call failed: schema_violation" in outcomes[0].faults[0]
    assert json.dumps(outcomes[0].version)
