"""The shipped recipes of the levels, run whole: what is sent, and that answers of the embedded runtime and of a model pass."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from pandora_dagster.compression.levels.level_prompts import filled, number_items
from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.errors import HaltError
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.runtime.token_counter import TokenCounter

ENTRIES = ["Ana asked to move flight AB123.", "change_flight failed with error 402.", "She accepted a new ticket for $180."]
CALLS = {
    "memory/l2_summary": {"documents": (InputDocument("entries", number_items(ENTRIES)),), "variables": {"max_tokens": "200"}},
    "memory/l3_digest": {
        "documents": (InputDocument("task_context", "[1] Move the flight."), InputDocument("summaries", number_items(ENTRIES))),
        "variables": {"max_tokens": "500"},
    },
}


@pytest.mark.parametrize("name", CALLS)
def test_the_embedded_runtime_answers_them(rig: Any, counter: TokenCounter, name: str) -> None:
    """The embedded runtime's answer to the pack that is sent passes the recipe's own gates, and keeps the figures."""
    recipe = open_recipes().load(name)
    asked = rig("unread", recipe=recipe)
    with suppress(HaltError):  # only what is sent counts here
        asked.call(**CALLS[name])
    runtime = ExtractiveRuntime(counter, lambda: datetime(2026, 1, 4, tzinfo=UTC))
    text = asyncio.run(runtime.complete(asked.runtime.packs[0], timeout_s=1)).text
    assert rig(text, recipe=recipe).call(**CALLS[name]).passed
    assert all(figure in text for figure in ("402", "$180"))


def test_the_pack_holds_what_the_api_builds(rig: Any) -> None:
    """Instructions and entries stand in the pack as in the API's prompt: one prompt, two ways to send it."""
    made = rig("done", recipe=open_recipes().load("memory/l2_summary"))
    made.call(**CALLS["memory/l2_summary"])
    pack, prompt = made.runtime.packs[0], filled("_L2_TEMPLATE", entries=number_items(ENTRIES), max_tokens="200")
    instructions, _, document = prompt.partition("\n\n<document")
    assert instructions in pack.system and f"<document{document}" in pack.user
