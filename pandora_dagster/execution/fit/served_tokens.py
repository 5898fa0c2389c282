"""Served tokens per cl100k token: learned from what the servers count, kept over restarts (DECISIONS 22). Knows numbers only."""

import logging
import math
from collections import deque

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.images import image_tokens
from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime, TokenRatios
from pandora_dagster.errors import DocumentError, StoreError

TEMPLATE_TOKENS = 64
"""Allowed for a chat template around two messages; Qwen3 and Llama 3 templates take 10 to 40."""
FIRST_RATIO = 1.1
"""Served tokens per cl100k token until a layer's model has answered once."""
_SMALLEST_SAMPLE = 200
_MAX_SAMPLES = 64
"""Calls whose highest ratio holds: one odd prompt does not narrow a layer for ever."""


def plannable_tokens(served: int, ratio: float) -> int:
    """The cl100k tokens that fit into `served` tokens of a model that has `ratio` of them for each."""
    return max(0, math.floor((served - TEMPLATE_TOKENS) / ratio))


def observed_ratio(counted: int, served: int) -> float:
    """What one prompt says: `served` tokens, its template's among them, for `counted` of cl100k; never below 1."""
    return max(1.0, (served - TEMPLATE_TOKENS) / max(1, counted))


class TokenRatioEstimator:
    """The highest of a layer's last ratios, for the model that answers there. What was kept counts as one of them.

    A store that fails costs the memory, not the call: it is said, and learned again.
    """

    def __init__(self, kept: TokenRatios | None = None) -> None:
        self._kept = kept
        self._recent: dict[tuple[ModelLayer, str], deque[float]] = {}

    def ratio(self, layer: ModelLayer, model: str) -> float:
        """What to plan with."""
        return max(self._samples(layer, model), default=FIRST_RATIO)

    def learn(self, layer: ModelLayer, model: str, *, counted: int, served: int) -> None:
        """Take in one answer's usage; small prompts say too little."""
        if counted < _SMALLEST_SAMPLE or served <= 0:
            return
        recent = self._samples(layer, model)
        before = max(recent, default=0.0)
        recent.append(round(observed_ratio(counted, served), 4))
        if self._kept and max(recent) != before:
            try:
                self._kept.keep(layer, model, max(recent))
            except (StoreError, DocumentError) as error:
                _warn(f"the token ratio of {layer} was not kept: {error}")

    def _samples(self, layer: ModelLayer, model: str) -> deque[float]:
        if (layer, model) not in self._recent:
            self._recent[layer, model] = deque(self._stored_ratio(layer, model), maxlen=_MAX_SAMPLES)
        return self._recent[layer, model]

    def _stored_ratio(self, layer: ModelLayer, model: str) -> tuple[float, ...]:
        if self._kept is None:
            return ()
        try:
            found = self._kept.find(layer, model)
        except DocumentError as error:
            _warn(f"the token ratio of {layer} is learned anew: {error}")
            return ()
        return () if found is None else (found,)


def _warn(message: str) -> None:
    logging.getLogger(__name__).warning(message)


async def served_tokens_if_over(runtime: ModelRuntime, pack: PromptPack, *, room: int | None) -> int | None:
    """The served model's tokens of `pack` where they are over `room`; None where it fits, and where the runtime cannot count.

    Asks the runtime only where the pack could be over: no tokenizer has more tokens than bytes.
    """
    most = sum(len(text.encode(errors="surrogatepass")) for text in (pack.system, pack.user)) + image_tokens(pack.images)
    if room is None or most + TEMPLATE_TOKENS <= room:
        return None
    served = await runtime.count(pack)
    return served if served is not None and served > room else None
