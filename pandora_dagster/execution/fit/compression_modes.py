"""The two modes of a compression by a model, in calls of about 1,000 tokens (000 section 20): it chooses units, or rewrites.

Knows the two modes and their common frame; opens no intervention.
"""

from dataclasses import dataclass

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import CallRequest, CallSite
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.execution.fit.compression_calls import AttemptExecutor, CompressionCalls
from pandora_dagster.execution.fit.compression_contract import CompressionContract, CompressionJudgement
from pandora_dagster.execution.fit.meaning_check import MeaningCheck
from pandora_dagster.execution.fit.model_rewriting import ModelRewriting
from pandora_dagster.execution.fit.model_selection import ModelSelection

_LONGEST_QUERY = 60
"""Tokens of a query that a call on a piece carries; a longer one is a text of its own."""


@dataclass(frozen=True, slots=True)
class ModelCompressionResult:
    """A whole with its verdicts, and how many of its pieces the model shortened; `judged` is None where no text of its may stand."""

    judged: CompressionJudgement | None
    by_model: int = 0
    by_structure: int = 0
    deferred: str = ""
    """Why pieces that a model would have shortened were not asked for."""
    unchecked: tuple[str, ...] = ()
    """Rewritten statements whose meaning nobody judged."""


class ModelCompression:
    """Shortens by calls of a compression recipe; `meaning` is the recipe that judges what such a call rewrote."""

    def __init__(self, executor: AttemptExecutor, counter: TokenMeasure, meaning: str, layer: ModelLayer = ModelLayer.NERVES) -> None:
        self._executor, self._counter, self._meaning, self.layer = executor, counter, meaning, layer

    async def compress(self, contract: CompressionContract, loaded: LoadedRecipe, site: CallSite) -> ModelCompressionResult:
        """The whole, verified. Raises CallFaultError where the model is down."""
        query = contract.request.query
        query = query if self._counter.count(query) <= _LONGEST_QUERY else ""
        calls = CompressionCalls(self._executor)
        call = CallRequest(recipe=loaded.path, query=query, site=site, layer=self.layer)
        is_selection = loaded.recipe.compression.mode == "select"
        if is_selection:
            made = await ModelSelection(calls, call, loaded, self._counter).compress(contract)
        else:
            meaning = MeaningCheck(calls, self._meaning, site)
            made = await ModelRewriting(calls, call, loaded, self._counter, meaning).compress(contract)
        if made is None or not made.text:
            return ModelCompressionResult(None, deferred=calls.deferred)
        judged = contract.judge(made.text)
        is_sound = judged.fits if is_selection else judged.ok
        return ModelCompressionResult(judged if is_sound else None, made.by_model, made.by_structure, calls.deferred, made.unchecked)
