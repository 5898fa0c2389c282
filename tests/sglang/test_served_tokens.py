"""The plan against the server's own count: what is planned to fit does fit, and what was counted is remembered."""

import asyncio
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import CallRecord, CallRequest, CallSite, InputDocument, Item, Part
from pandora_dagster.errors import HaltError
from pandora_dagster.execution.fit.call_budget import TEMPLATE_TOKENS, TokenRatioEstimator, served_budget
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.calls.token_ratio_file import TokenRatioFile
from tests.runtime.sglang_packs import endpoints, pack
from tests.sglang.real_servers import CONTEXT, RealSglang

RECIPE = "pipeline/phase0_query_analyzer"
NARROW = 1_150
"""A context that the recipe's input alone would fill, in tokens of a model that needs more of them than cl100k."""
BUDGET = served_budget(open_recipes().load(RECIPE).recipe.token_budget, NARROW)
"""The recipe's budget on that context, which shortens the answer."""
ROOM = NARROW - BUDGET.output - BUDGET.response_reserve
_CALLS = itertools.count(1)
ODD = st.sampled_from(
    [
        "The chair costs 248.00 euros. ",
        "漢字とかな交じり文、",
        "🪑🛋️🚚",
        "0x7f3a9c41e2 ",
        "def f(x): return x\n",
        "ǟɦʊǟ ",
        "\u200b\u00a0  \t",
        "مرحبا ",
    ]
)
TEXTS = st.lists(ODD, min_size=1, max_size=40).map("".join) | st.text(max_size=300) | st.builds(str.__mul__, ODD, st.integers(1, 200))
ITEMS = st.lists(st.builds(Item, text=TEXTS), max_size=8).map(tuple)
BY_CALLS = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def app(server: RealSglang, tmp_path: Path) -> Iterator[App]:
    """A new store whose layers believe in a context of NARROW tokens; the server takes more and counts what came."""
    runtime_file = endpoints(server.base_url, layers={"REFLEX": {"temperature": 1.0}, "MIND": {"temperature": 1.0}}, context_length=NARROW)
    opened = open_app(load_settings({"PANDORA_ROOT": str(tmp_path)}), runtime=SglangRuntime(runtime_file, keys={}))
    yield opened
    opened.close()


@pytest.mark.parametrize("chat", [True, False])
def test_the_count_before_a_call_is_the_usage_after_it(server: RealSglang, chat: bool) -> None:
    """Whatever the text, chat template or not: the count that plans are compared with is the one that is served."""
    with asyncio.Runner() as loop:
        runtime = SglangRuntime(endpoints(server.base_url, context_length=CONTEXT, chat=chat), keys={})

        @given(system=TEXTS, query=TEXTS)
        @BY_CALLS
        def law(system: str, query: str) -> None:
            parts = (Part("role", "role", system, 0), Part("query", "query", query, 0))
            asked = pack(call_id=f"count-{next(_CALLS)}", parts=parts, output_schema={"enum": ["yes", "no"]}, temperature=1.0)
            counted = loop.run(runtime.count(asked))
            assert counted == loop.run(runtime.complete(asked, timeout_s=120)).usage.prompt

        law()
        loop.run(runtime.aclose())


@given(items=ITEMS, query=TEXTS.filter(str.strip))
@BY_CALLS
def test_what_is_planned_to_fit_does_fit(app: App, items: tuple[Item, ...], query: str) -> None:
    """No prompt that is sent has more served tokens than the context leaves beside the answer; what cannot fit halts before."""
    before = len(records(app))
    documents = (InputDocument("turn_summaries", items=items),)
    request = CallRequest(RECIPE, query, CallSite("probe", "anna", "s1"), documents)
    try:
        app.run(app.dependencies.execution.call(request))
    except HaltError as halt:
        opened = app.interventions.show(halt.intervention_id)
        assert opened.type in ("budget_exceeded", "schema_violation", "fact_loss"), opened.message
    for record in records(app)[before:]:
        assert record.tokens.served <= ROOM


def test_dense_text_is_planned_again(app: App) -> None:
    """Text that the first plan takes for much less than it is: the call goes out full, not over, and says what stayed out."""
    items = tuple(Item(f"{n}: " + "漢字とかな交じり文、" * 6, name=f"turn {n}") for n in range(40))
    request = CallRequest(RECIPE, "which?", CallSite("probe", "cem", "s1"), (InputDocument("turn_summaries", items=items),))
    for _ in range(5):
        if not any(record.tokens.served for record in records(app)):
            app.run(app.dependencies.execution.attempt(request))
    served = [r for r in records(app) if r.user_id == "cem" and r.tokens.served]
    assert served and all(0.8 * ROOM < r.tokens.served <= ROOM and r.left_out for r in served)
    assert all(r.tokens.served > 1.2 * (r.tokens.prompt + r.tokens.input) for r in served)


def test_what_was_counted_is_remembered(app: App) -> None:
    """The ratio in the store is the highest that the records show, and the next process plans with it."""
    sentence = "".join(f"{n}. The chair 椅子 costs {n * 31}.00 euros.\n" for n in range(6))
    documents = (InputDocument("turn_summaries", sentence),)
    app.run(app.dependencies.execution.attempt(CallRequest(RECIPE, "which?", CallSite("probe", "bob", "s1"), documents)))
    kept = json.loads((app.settings.root / "token_ratios.json").read_text())
    assert kept["REFLEX"]["model"] == "tiny" and kept["REFLEX"]["ratio"] > 1.0
    shown = [r for r in records(app) if r.model_layer is ModelLayer.REFLEX and r.tokens.served]
    ratios = [(r.tokens.served - TEMPLATE_TOKENS) / (r.tokens.prompt + r.tokens.input) for r in shown]
    assert kept["REFLEX"]["ratio"] >= round(max(ratios), 4)
    assert TokenRatioEstimator(TokenRatioFile(app.settings.root)).ratio(ModelLayer.REFLEX, "tiny") == kept["REFLEX"]["ratio"]


def records(app: App) -> list[CallRecord]:
    """All records of the store, oldest first in each file."""
    lines = [line for path in sorted(Path(app.settings.root).rglob("calls/**/*.jsonl")) for line in path.read_text().splitlines()]
    return [CallRecord.model_validate_json(line) for line in lines]
