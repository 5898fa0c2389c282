"""The parts that stand first in every pack of a recipe."""

from typing import Any

from pandora_dagster.execution.call.prompt_packs import shared_parts


def test_shared_parts_stand_in_the_order_of_the_pack(make_recipe: Any) -> None:
    """Policy, role prompts, schema; their tokens are those of the text that is sent."""
    parts, tokens = shared_parts(make_recipe(), ("one", "two"), len)
    assert [part.kind for part in parts] == ["policy", "role", "role", "schema"]
    assert tokens == len("\n\n".join(part.text for part in parts) + "\n\n")


def test_an_empty_policy_and_no_schema_leave_no_parts(make_recipe: Any) -> None:
    """What says nothing takes no place."""
    recipe = make_recipe(policy="", output_format="markdown", output_schema=None)
    assert [part.kind for part in shared_parts(recipe, ("role text",), len)[0]] == ["role", "schema"]
