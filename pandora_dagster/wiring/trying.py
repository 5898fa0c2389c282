"""A bench over the runtime that the settings name: versions are tried on it, and the store is not touched."""

import asyncio
import secrets
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from pandora_dagster.contracts.ports import TokenMeasure, ModelRuntime
from pandora_dagster.cookbook import RecipeLoader
from pandora_dagster.execution.budgets import CallLimit
from pandora_dagster.execution.compression_log import EMBEDDED
from pandora_dagster.execution.executor import Executor
from pandora_dagster.governance.bench import CallCapture, DryRunExecutor, PinnedRecipeLoader
from pandora_dagster.runtime.offline.runtime import OfflineRuntime
from pandora_dagster.runtime.sglang.runtime import SglangRuntime
from pandora_dagster.settings import Settings
from pandora_dagster.wiring.building import utc_now, open_runtime
from pandora_dagster.wiring.compression import open_compression_stack
from pandora_dagster.wiring.kitchen import TOOL_NAMES

T = TypeVar("T")
_AT_ONCE = 8
"""Calls under way at a server; the embedded runtime answers one after the other."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """An open bench. `run` carries its async work; `close` ends what holds connections."""

    bench: DryRunExecutor
    runtime: ModelRuntime
    loop: asyncio.Runner
    at_once: int

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(work)

    def close(self) -> None:
        self.loop.run(self.runtime.aclose())
        self.loop.close()


def open_dry_run(settings: Settings, shelf: RecipeLoader, counter: TokenMeasure, *, runtime: ModelRuntime | None = None) -> DryRun:
    """Executor and compression as a house has them, around stores that keep nothing. `shelf`: what the version that is tried calls in
    its turn, so that of production. Raises ConfigurationError."""
    runtime = runtime or open_runtime(settings, counter)
    served = runtime.endpoints if isinstance(runtime, SglangRuntime | OfflineRuntime) else None
    aside, chosen = CallCapture(), PinnedRecipeLoader(shelf)
    execution = Executor(
        cookbook=chosen,
        runtime=runtime,
        counter=counter,
        log=aside,
        vault=aside,
        interventions=aside,
        clock=utc_now,
        sleep=asyncio.sleep,
        new_call_id=_new_trial_id,
        tools=TOOL_NAMES,
        limit=CallLimit(settings.default_context_budget, settings.response_token_reserve),
        prices=served.prices if served else {},
    )
    open_compression_stack(
        settings,
        execution,
        cookbook=chosen,
        counter=counter,
        runtime=runtime,
        calls=aside,
        interventions=aside,
        clock=utc_now,
        new_call_id=_new_trial_id,
        say=_ignore_event,
    )
    return DryRun(DryRunExecutor(execution, chosen, aside), runtime, asyncio.Runner(), 1 if runtime.name == EMBEDDED else _AT_ONCE)


def _new_trial_id() -> str:
    return f"try_{secrets.token_hex(12)}"


def _ignore_event(event: str, **fields: object) -> None:
    """What a bench compresses is nobody's metric."""
