"""Stored values of earlier programs, read by this one."""

import pytest
from pydantic import ValidationError

from pandora_dagster.contracts.recipe_schema import CompressionSettings, PromptWhen


def test_a_removed_field_without_effect_is_read() -> None:
    """A stored recipe version has `policy: null` in each condition; a condition that would have an effect is refused."""
    assert PromptWhen.model_validate({"mode": None, "intent": ["greeting"], "policy": None}) == PromptWhen(intent=("greeting",))
    with pytest.raises(ValidationError, match="policy"):
        PromptWhen.model_validate({"intent": ["greeting"], "policy": ["mediation"]})


def test_compression_settings_of_specification_000_are_read() -> None:
    """`model_layer: NERVES` and `tool_errors` add nothing, and are dropped; any other layer is refused."""
    given = {"model_layer": "NERVES", "preserve": ["section_0", "tool_errors", "section_2"]}
    assert CompressionSettings.model_validate(given).preserve == ("section_0", "section_2")
    with pytest.raises(ValidationError, match="model_layer"):
        CompressionSettings.model_validate({"model_layer": "MIND"})
