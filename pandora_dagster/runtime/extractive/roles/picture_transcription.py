"""Role `screenshot_reader`: the embedded runtime reads no pictures and refuses a pack that has one."""

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.runtime.extractive.output_budget import Draft


def transcribe(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """No text: a pack without a picture shows none."""
    return '{"blocks": []}'
