"""The runtime itself: which role is answered by what, and what such an answer is called. Decides nothing about content."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
from pandora_dagster.errors import ModelRejectedError
from pandora_dagster.runtime.extractive.output_budget import Draft, written
from pandora_dagster.runtime.extractive.roles import (
    context_synthesis,
    conversation_summarizer,
    header_retrieval,
    level_summarizers,
    meaning_checker,
    query_analyzer,
    session_fact_extraction,
    synthesizer,
    text_shortener,
    tool_planner,
    turn_summarizer,
    validator,
)

NAME = "extractive"
Role = Callable[[PromptPack, TokenMeasure], Draft]
_MODULES = (
    query_analyzer,
    header_retrieval,
    context_synthesis,
    tool_planner,
    synthesizer,
    validator,
    turn_summarizer,
    text_shortener,
    meaning_checker,
    level_summarizers,
    conversation_summarizer,
    session_fact_extraction,
)
ROLES: Mapping[str, Role] = MappingProxyType({role: function for module in _MODULES for role, function in module.ANSWERS.items()})
"""What the modules of `roles` answer: a role is registered beside its function."""


class ExtractiveRuntime:
    """The embedded default (DECISIONS 25): deterministic, offline, never takes a word from anywhere but its input and the templates."""

    def __init__(self, counter: TokenMeasure, clock: Clock) -> None:
        self._counter = counter
        self._clock = clock

    @property
    def name(self) -> str:
        return NAME

    def model(self, layer: ModelLayer) -> str:
        """Always `extractive`: it never passes for the model of a layer."""
        return NAME

    def context_limit(self, layer: ModelLayer) -> int | None:
        """None: it reads a pack of any length."""
        return None

    def temperature(self, layer: ModelLayer) -> float:
        """0: the same pack has the same answer."""
        return 0.0

    async def count(self, pack: PromptPack) -> int | None:
        """Tokens of both messages; this runtime counts as the plan does."""
        return self._counter.count(pack.system) + self._counter.count(pack.user)

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        """The answer for `pack.role`; raises ModelRejectedError for a role it does not know. Takes milliseconds, so no time-out is kept,
        and the answer is told in one piece."""
        role = ROLES.get(pack.role)
        if role is None:
            raise ModelRejectedError(
                f"{pack.recipe}: role {pack.role!r}: the extractive runtime knows {', '.join(ROLES)}",
                hint="set `role` in the recipe to one of these, or configure the sglang runtime",
            )
        if pack.images:
            raise ModelRejectedError(
                f"{pack.recipe}: {len(pack.images)} images: the extractive runtime reads text only",
                hint="configure the sglang runtime with a model that reads images",
            )
        began = self._clock()
        text = written(role(pack, self._counter))
        took = (self._clock() - began).total_seconds() * 1000
        if on_words is not None and text:
            on_words(text)
        usage = Usage(prompt=self._counter.count(pack.system) + self._counter.count(pack.user), output=self._counter.count(text))
        return ModelAnswer(text, "stop", usage, NAME, NAME, took)

    async def aclose(self) -> None:
        """Nothing is held open."""
