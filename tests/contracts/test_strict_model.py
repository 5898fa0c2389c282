"""Stored values of earlier programs, read by this one."""

import pytest
from pydantic import ValidationError

from pandora_dagster.contracts.recipe_schema import PromptWhen


def test_a_removed_field_without_effect_is_read() -> None:
    """A stored recipe version has `policy: null` in each condition; a condition that would have an effect is refused."""
    assert PromptWhen.model_validate({"mode": None, "intent": ["greeting"], "policy": None}) == PromptWhen(intent=("greeting",))
    with pytest.raises(ValidationError, match="policy"):
        PromptWhen.model_validate({"intent": ["greeting"], "policy": ["mediation"]})
