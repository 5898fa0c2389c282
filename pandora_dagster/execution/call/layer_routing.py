"""The routing policy: a score over the request decides which of two layers takes a call (specification 002, section 7).

The runtime file declares the policy. Without one, and for recipes that it does not name, a call goes to the layer that its recipe names
(specification 000, section 15).
"""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import CallRequest

_STRICT = ConfigDict(frozen=True, extra="forbid")
_CONDITIONS = ("mode", "intents", "words", "query_over", "ambiguous")


class Factor(BaseModel):
    """A reason for the larger layer (positive score) or against it; it applies where all its conditions hold."""

    model_config = _STRICT
    name: Annotated[str, Field(min_length=1, max_length=60)]
    score: Annotated[int, Field(ge=-100, le=100, strict=True)]
    mode: Literal["chat", "code"] | None = None
    intents: tuple[str, ...] | None = None
    """Intents of the query analysis."""
    words: tuple[Annotated[str, Field(min_length=1)], ...] | None = None
    """Whole words, one of which is in the query."""
    query_over: Annotated[int, Field(ge=0, strict=True)] | None = None
    """The query has more characters than this."""
    ambiguous: Annotated[bool, Field(strict=True)] | None = None
    """Whether the query refers to something that its analysis could not resolve."""

    @model_validator(mode="after")
    def _require_condition(self) -> "Factor":
        if all(getattr(self, name) is None for name in _CONDITIONS):
            raise ValueError(f"{self.name}: no condition: expected one of {', '.join(_CONDITIONS)}")
        return self

    def holds(self, request: CallRequest) -> bool:
        """Whether the factor applies to the request."""
        query_words = {word.casefold() for word in re.findall(r"\w+", request.query)}
        return (
            self.mode in (None, request.mode)
            and (self.intents is None or request.intent in self.intents)
            and (self.words is None or any(word.casefold() in query_words for word in self.words))
            and (self.query_over is None or len(request.query) > self.query_over)
            and self.ambiguous in (None, request.ambiguous)
        )


class Routing(BaseModel):
    """`larger` takes a call of one of `recipes` whose factors add up to `threshold` or more; `smaller` the others."""

    model_config = _STRICT
    recipes: Annotated[tuple[str, ...], Field(min_length=1)]
    """`{category}/{name}`."""
    larger: ModelLayer
    smaller: ModelLayer
    threshold: Annotated[int, Field(strict=True)]
    factors: Annotated[tuple[Factor, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _two_layers(self) -> "Routing":
        if self.larger is self.smaller:
            raise ValueError(f"larger and smaller are both {self.larger}: expected two layers")
        return self


def choose_layer(
    routing: Routing | None, request: CallRequest, recipe: str, recipe_layer: ModelLayer
) -> tuple[ModelLayer, tuple[str, ...]]:
    """The layer of a call of `recipe`, which names `recipe_layer`, and the reasons where the policy chose the layer."""
    if request.layer is not None or routing is None or recipe not in routing.recipes:
        return request.layer or recipe_layer, ()
    applicable = [factor for factor in routing.factors if factor.holds(request)]
    score = sum(factor.score for factor in applicable)
    chosen = routing.larger if score >= routing.threshold else routing.smaller
    sign = ">=" if chosen is routing.larger else "<"
    return chosen, (*(f"{f.name} {f.score:+d}" for f in applicable), f"score {score} {sign} {routing.threshold}: {chosen.value}")
