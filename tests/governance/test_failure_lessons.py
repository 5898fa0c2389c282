"""What a model would change in a prompt, from the failures of its recipe; nothing of the call is stored."""

import json

import pytest

from pandora_dagster.app.recipe_admin import open_recipe_admin, propose_lessons
from pandora_dagster.errors import InputError
from pandora_dagster.governance.recipe_failures import Failure, group_failures
from pandora_dagster.settings import load_settings
from tests.fakes.model_runtimes import ScriptedRuntime

RECIPE = "pipeline/phase5_synthesizer_chat"
LESSON = {"reasoning": "No rule says which price is meant.", "cause": 1, "change": "Give the price with tax."}


def failures(*messages, cause="corrected"):
    return group_failures(Failure("synthesizer_chat", "v1", cause, f"2026-01-0{n}", message=said) for n, said in enumerate(messages, 1))


@pytest.fixture
def propose(tmp_path):
    settings = load_settings({"PANDORA_ROOT": str(tmp_path / "store")})

    def run(groups, *answers):
        runtime = ScriptedRuntime({"failure_lesson": json.dumps({"lessons": [LESSON]})}, {"failure_lesson": list(answers)})
        return propose_lessons(settings, open_recipe_admin(settings), RECIPE, groups, runtime=runtime), runtime

    yield run
    assert not (tmp_path / "store").exists()


def test_a_lesson_names_its_cause_and_the_change(propose):
    """The model reads the prompt of the recipe and each cause with its examples; the query is what the recipe is for."""
    lessons, runtime = propose(failures("429 euros, not 389", "the one with tax"))
    assert [(lesson.cause, lesson.change) for lesson in lessons] == [(1, "Give the price with tax.")]
    (pack,) = runtime.packs
    causes = [json.loads(line) for line in pack.document("failures").splitlines()]
    assert causes == [{"cause": 1, "what": "corrected", "count": 2, "examples": ["the one with tax", "429 euros, not 389"]}]
    assert pack.document("role_prompt").strip() and pack.query


def test_a_lesson_of_no_cause_is_left_out(propose):
    """The number leads to no failure."""
    assert propose(failures("wrong"), json.dumps({"lessons": [{**LESSON, "cause": 2}]}))[0] == ()


def test_without_a_failure_nothing_is_asked(propose):
    lessons, runtime = propose(())
    assert lessons == () and runtime.packs == []


def test_an_example_is_sent_whole_or_not_at_all(propose):
    """A message over its limit stays out of the pack."""
    _, runtime = propose(failures("x" * 400, "short"))
    assert json.loads(runtime.packs[0].document("failures"))["examples"] == ["short"]


def test_an_answer_that_breaks_the_schema_is_said(propose):
    with pytest.raises(InputError, match="reflection/failure_lesson: "):
        propose(failures("wrong"), "no JSON")
