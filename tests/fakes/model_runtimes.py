"""Model runtimes without a model: their answers are written in the test."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.errors import ModelTimeoutError, RuntimeUnreachableError

Reply = str | Exception | tuple[str, str] | Callable[[PromptPack], str]
"""A raw answer, an error, an answer with its finish reason, or what makes an answer of the pack."""


@dataclass
class ScriptedRuntime:
    """Answers by role: `script[role]` in turn, its last entry for ever; what is not scripted is answered by `usual`."""

    usual: Mapping[str, Reply] = field(default_factory=dict)
    script: dict[str, list[Reply]] = field(default_factory=dict)
    packs: list[PromptPack] = field(default_factory=list)
    name: str = "scripted"

    def model(self, layer: ModelLayer) -> str:
        return f"scripted-{layer.value}"

    def context_limit(self, layer: ModelLayer) -> int | None:
        return None

    def picture_fault(self, layer: ModelLayer) -> str:
        return f"the runtime {self.name} reads no pictures"

    def temperature(self, layer: ModelLayer) -> float:
        return 0.5

    async def count(self, pack: PromptPack) -> int | None:
        return None

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        self.packs.append(pack)
        report = self.script.get(pack.role) or [self.usual[pack.role]]
        says = report.pop(0) if len(report) > 1 else report[0]
        if isinstance(says, Exception):
            raise says
        text, reason = says if isinstance(says, tuple) else (says(pack) if callable(says) else says, "stop")
        for piece in re.split(r"(?<= )", text) if on_words else ():
            on_words(piece)
        return ModelAnswer(text, reason, Usage(), self.name, self.model(pack.layer), 1.0)

    async def aclose(self) -> None: ...

    def calls(self) -> Counter[str]:
        """How often each role was asked."""
        return Counter(pack.role for pack in self.packs)

    def of(self, role: str) -> list[PromptPack]:
        return [pack for pack in self.packs if pack.role == role]


@dataclass
class SequenceRuntime:
    """Gives its script's entries in turn, the last one for ever: a text, (text, finish_reason), an error, or seconds to wait."""

    script: list[Any]
    limits: Mapping[ModelLayer, int] = field(default_factory=dict)
    served: int = 0
    tokenizer: Callable[[str], int] | None = None
    latency_ms: float = 1.0
    packs: list[PromptPack] = field(default_factory=list)
    given_s: list[float] = field(default_factory=list)
    """The time that each attempt was given."""
    name: str = "fake"

    def model(self, layer: ModelLayer) -> str:
        return f"model-of-{layer.value}"

    def context_limit(self, layer: ModelLayer) -> int | None:
        return self.limits.get(layer)

    def picture_fault(self, layer: ModelLayer) -> str:
        return f"the runtime {self.name} reads no pictures"

    def temperature(self, layer: ModelLayer) -> float:
        return 0.5

    async def count(self, pack: PromptPack) -> int | None:
        return self.tokenizer(pack.system) + self.tokenizer(pack.user) if self.tokenizer else None

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        self.packs.append(pack)
        self.given_s.append(timeout_s)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(step, Exception):
            raise step
        if isinstance(step, float):
            await asyncio.sleep(min(step, timeout_s))
            raise ModelTimeoutError(f"no answer within {timeout_s * 1000:.0f} ms")
        text, reason = step if isinstance(step, tuple) else (step, "stop")
        for start in range(0, len(text), 5) if on_words else ():
            on_words(text[start : start + 5])
        if reason == "broken":
            raise RuntimeUnreachableError("the stream broke off")
        return ModelAnswer(text, reason, Usage(prompt=self.served, output=0), self.name, self.model(pack.layer), self.latency_ms)

    async def aclose(self) -> None: ...
