"""The house: every adapter, built once from settings. Knows constructors and order; knows nothing of what a turn does."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, cast
from uuid import uuid4

from pandora_dagster.contracts.ids import TurnKey, UserId, session_id, user_id
from pandora_dagster.contracts.ports import ModelRuntime
from pandora_dagster.errors import InputError
from pandora_dagster.phases import flow
from pandora_dagster.phases.answers import Answered, answered
from pandora_dagster.phases.exporting import exported
from pandora_dagster.phases.kit import Kit
from pandora_dagster.phases.recording import ImportReport, RecordingDesk, import_conversations
from pandora_dagster.phases.report import PhaseReport
from pandora_dagster.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class House:
    """An open house. One a process; `run` carries its async work, `close` ends it."""

    settings: Settings
    kit: Kit
    runtime: ModelRuntime
    loop: asyncio.Runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run async work from sync code, always on the house's own loop."""
        return self.loop.run(work)

    def close(self) -> None:
        """Close what holds connections."""
        self.loop.run(self.runtime.aclose())
        self.loop.close()
