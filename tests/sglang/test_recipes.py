"""Every shipped recipe through the executor against the real server: the answer passes its gates, or the call halts as they say.

The model is random: what it says is nonsense. What is held here is that no answer is a fault of the transport, the schema or the budget.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.model_calls import CallRecord, CallRequest, CallResult, CallSite, InputDocument, Source
from pandora_dagster.errors import HaltError
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.recipes.static_prompts import variables_in
from pandora_dagster.runtime.sglang.grammar_schema import schema_for_grammar
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import load_settings
from tests.runtime.sglang_packs import endpoints
from tests.sglang.real_servers import CONTEXT, RealSglang

RECIPES = open_recipes()
NAMES = RECIPES.names()
NAMED = ("Query", "Reflection", "Gathered Context", "Task Plan", "Tool Results", "Response", "Validation")
SAID = "".join(f"## {n}. {name}\n\nThe chair Mesh One costs 248.00 euros. [1]\n\n" for n, name in enumerate(NAMED))
GIVEN = {"mode", "intent", "phase", "user_id", "session_id", "turn_id", "tools"}
"""What every call has; the other names of a prompt are reported by its phase."""
A_FAULT_OF_THE_ANSWER = {"schema_violation", "missing_evidence", "low_confidence", "timeout"}
Outcome = CallResult | HaltError


@pytest.fixture(scope="session")
def app(servers: dict[str, RealSglang], tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    server = servers["tiny"]
    layers = {name: {"temperature": 1.0} for name in ("REFLEX", "NERVES", "MIND", "VOICE", "EYES")}
    runtime = SglangRuntime(endpoints(server.base_url, layers=layers, context_length=CONTEXT), keys={})
    opened = open_app(load_settings({"PANDORA_ROOT": str(tmp_path_factory.mktemp("store"))}), runtime=runtime)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def outcomes(app: App) -> dict[str, Outcome]:
    """Every recipe called once, all at the same time: the server batches them."""

    async def called(name: str) -> Outcome:
        try:
            return await app.dependencies.execution.call(request_of(name))
        except HaltError as halt:
            return halt

    async def work() -> list[Outcome]:
        return await asyncio.gather(*(called(name) for name in NAMES))

    return dict(zip(NAMES, app.run(work()), strict=True))


@dataclass
class Heard:
    """A user at the other end: what stands on the screen."""

    shown: str = ""
    pieces: int = 0

    def on_text(self, text: str) -> None:
        self.shown, self.pieces = self.shown + text, self.pieces + 1

    def on_withdrawal(self, reason: str) -> None:
        self.shown = ""


def request_of(name: str) -> CallRequest:
    """A call that offers every document the recipe names."""
    loaded = RECIPES.load(name)
    documents = [
        InputDocument(name, f"{name}: the chair Mesh One, 248.00 euros.") for name in loaded.recipe.input_docs if name != "context.md"
    ]
    texts = (*loaded.recipe.variables.values(), *(text for _, text in loaded.prompts))
    return CallRequest(
        recipe=name,
        query="Which chair did we order, and what did it cost?",
        site=CallSite("probe", "anna", name.replace("/", "-")),
        documents=(*documents, InputDocument("context.md", SAID)),
        variables={name: "100" for text in texts for name in variables_in(text) if name not in GIVEN},
        sources=(Source("1", "turns/turn_000001/context.md"),),
        mode="code" if loaded.recipe.mode == "code" else "chat",
    )


def record_of(name: str, app: App) -> CallRecord:
    """The one record that a recipe's call in `outcomes` left."""
    lines = [line for path in Path(app.settings.root).rglob("calls/**/*.jsonl") for line in path.read_text().splitlines()]
    (record,) = [r for r in map(CallRecord.model_validate_json, lines) if (r.phase, r.recipe) == ("probe", RECIPES.load(name).name)]
    return record


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_answered_or_halts_by_its_gates(app: App, outcomes: dict[str, Outcome], name: str) -> None:
    """An answer parses and fits the recipe's full schema; else it was retried as often as allowed, and the intervention names the gate."""
    recipe, outcome, record = RECIPES.load(name).recipe, outcomes[name], record_of(name, app)
    if isinstance(outcome, HaltError):
        opened = app.interventions.show(outcome.intervention_id)
        assert opened.type in A_FAULT_OF_THE_ANSWER, opened.message
        assert record.retries == recipe.quality_gates.max_retries and not record.success
        return
    assert record.call_id == outcome.record.call_id and record.runtime == "sglang" and record.finish_reason == "stop"
    if recipe.output_format is OutputFormat.JSON:
        assert isinstance(outcome.parsed, dict) and outcome.parsed == json.loads(outcome.text)
        assert record.schema_valid is True


def test_a_random_model_does_pass_most_recipes(outcomes: dict[str, Outcome]) -> None:
    """The grammar makes most answers valid on the spot: more than half of the recipes come to an answer."""
    assert sum(isinstance(outcome, CallResult) for outcome in outcomes.values()) > len(NAMES) / 2


@pytest.fixture(scope="session")
def written(app: App) -> dict[str, tuple[Heard, Outcome]]:
    """Every recipe for prose called once with a listener: what was heard, and what came of it."""

    def listened(name: str) -> tuple[Heard, Outcome]:
        heard = Heard()
        site = CallSite("listened", "anna", "listened-" + name.replace("/", "-"))
        try:
            return heard, app.run(app.dependencies.execution.call(replace(request_of(name), site=site, listener=heard)))
        except HaltError as halt:
            return heard, halt

    return {name: listened(name) for name in NAMES if RECIPES.load(name).recipe.output_format.is_prose}


def test_what_was_heard_is_the_answer(app: App, written: dict[str, tuple[Heard, Outcome]]) -> None:
    """The pieces are the answer; nothing of an answer that did not pass stays on the screen."""
    for name, (heard, outcome) in written.items():
        if isinstance(outcome, HaltError):
            assert app.interventions.show(outcome.intervention_id).type in A_FAULT_OF_THE_ANSWER, name
            assert heard.shown == "", name
        else:
            assert heard.shown == outcome.text, name


def test_answers_are_streamed_in_pieces(written: dict[str, tuple[Heard, Outcome]]) -> None:
    """A random model's answer may be one token, which is one piece; that all of them are so short does not happen."""
    assert any(heard.pieces > 1 for heard, _ in written.values())


def test_what_was_planned_is_what_was_served(app: App, outcomes: dict[str, Outcome]) -> None:
    """For every call the server's own count of the prompt stands beside the plan, and the bound that was held covers it."""
    tokens = {name: record_of(name, app).tokens for name in outcomes}
    counted = {name: one for name, one in tokens.items() if one.served}
    assert counted.keys() >= {name for name, outcome in outcomes.items() if isinstance(outcome, CallResult)}
    for one in counted.values():
        assert 0.9 * (one.prompt + one.input) < one.served < 2 * (one.prompt + one.input) + 64


@pytest.mark.parametrize("name", [name for name in NAMES if RECIPES.load(name).recipe.output_schema])
def test_a_shipped_schema_compiles_as_it_is_sent(server: RealSglang, name: str) -> None:
    """The server's grammar takes what is made of the recipe's schema."""
    schema: Any = schema_for_grammar(RECIPES.load(name).recipe.output_schema or {})
    fields = {"type": "json_schema", "json_schema": {"name": "schema", "schema": schema, "strict": True}}
    asked = {"model": "tiny", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}], "response_format": fields}
    status, report = server.post("/v1/chat/completions", asked)
    assert status == 200, report


def test_turns_of_the_store_are_untouched(app: App) -> None:
    """Calls without a turn leave none."""
    assert list(app.turns.keys(UserId("anna"))) == [] and list(app.sessions.records(UserId("anna"))) == []
