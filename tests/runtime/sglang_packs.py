"""Packs and endpoints for the tests of the SGLang runtime."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pandora_dagster.contracts.calls import Part, PromptPack
from pandora_dagster.contracts.words import ModelLayer, OutputFormat
from pandora_dagster.runtime.sglang.endpoints import Endpoints, RuntimeFile, chosen

PACK = PromptPack(
    call_id="call-000001",
    recipe="pipeline/planner_chat",
    recipe_version="abc",
    role="planner",
    layer=ModelLayer.MIND,
    mode="chat",
    output_format=OutputFormat.JSON,
    output_schema={"type": "object", "properties": {"answer": {"type": "string", "maxLength": 9}}, "required": ["answer"]},
    temperature=None,
    max_output_tokens=50,
    parts=(Part("policy", "policy", "Be exact.", 3), Part("role", "role", "You plan.", 3), Part("query", "query", "What next?", 4)),
)


def pack(**changes: Any) -> PromptPack:
    return replace(PACK, **changes)


def endpoints(base_url: str, *, layers: Mapping[str, Mapping[str, Any]] | None = None, **server: Any) -> Endpoints:
    """Every layer on one server at `base_url`; `server` and `layers` change what `runtime.yaml` would say."""
    told = {"base_url": base_url, "model": "tiny", "context_length": 4_096, **server}
    use = {layer.value: {"server": "one", "temperature": 0.5, **(layers or {}).get(layer.value, {})} for layer in ModelLayer}
    file = RuntimeFile.model_validate({"preset": "p", "presets": {"p": {"servers": {"one": told}, "layers": use}}})
    return chosen(file, source="runtime.yaml")
