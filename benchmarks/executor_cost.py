"""What a call costs beside the model: processor time of the executor for one turn summary, over a runtime that answers at once.

    python -m benchmarks.executor_cost [--calls 64] [--rounds 5]

Everything else is real: recipe, budget, pack, gates, vault, record, all of it on a disk. Processor time of the best round, after one that
warms all up: other processes lengthen it less than they lengthen the wait.
"""

import argparse
import asyncio
import itertools
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.sglang_requests import executor_over, summary_request
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import CallResult, ModelAnswer, PromptPack, Usage

_LETTERS = "abcdefghijklmnop qrstuvwxyzABC.,:-é中"


def _answers(count: int) -> tuple[str, ...]:
    chance = random.Random(5)

    def text(letters: int) -> str:
        return "".join(chance.choices(_LETTERS, k=letters))

    answers = (
        {"summary": text(1_500), "topics": [text(20) for _ in range(3)], "intent": "query", "has_research": False} for _ in range(count)
    )
    return tuple(json.dumps(one, ensure_ascii=False) for one in answers)


@dataclass
class AtOnce:
    """`ModelRuntime` with the next of some random summaries for everything, each as long as a tiny random model's."""

    name: str = "at once"
    answers: Iterator[str] = field(default_factory=lambda: itertools.cycle(_answers(64)))

    def model(self, layer: ModelLayer) -> str:
        return "none"

    def context_limit(self, layer: ModelLayer) -> int | None:
        return 32_768

    def temperature(self, layer: ModelLayer) -> float:
        return 1.0

    async def count(self, pack: PromptPack) -> int | None:
        return None

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        return ModelAnswer(next(self.answers), "stop", Usage(prompt=2_000, output=400), self.name, "none", 5.0)

    async def aclose(self) -> None:
        """Nothing is held open."""


async def cost_ms(root: Path, calls: int, rounds: int) -> float:
    """Milliseconds of processor time a call."""
    executor = executor_over(AtOnce(), root)
    least = float("inf")
    for number in range(rounds + 1):
        requests = [summary_request(number * calls + n) for n in range(calls)]
        began = time.process_time()
        outcomes = await asyncio.gather(*(executor.attempt(request) for request in requests))
        took = time.process_time() - began
        assert all(isinstance(outcome, CallResult) for outcome in outcomes), outcomes[0]
        least = min(least, took) if number else least
    return least / calls * 1_000


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.executor_cost", description="Processor time of a call beside the model.")
    parser.add_argument("--calls", type=int, default=64, help="calls of a round (default 64)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds after the first (default 5)")
    answers = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="executor-cost-") as root:
        print(f"{asyncio.run(cost_ms(Path(root), answers.calls, answers.rounds)):.2f} ms of processor time a call")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
