"""The port of tools: what a tool declares, what one run of it receives, and what it returns."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Event
from typing import Any, Protocol, runtime_checkable

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.contracts.user.sources import Research, Visit
from pandora_dagster.errors import DocumentError

_ARTIFACT = re.compile(r"([a-z0-9][a-z0-9_-]{0,59})\.([a-z0-9]{1,8})")
_MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]{0,79}")


class ToolPermission(StrEnum):
    """What a tool may touch beside its arguments."""

    READ_STORE = "read_store"
    """Reads documents of its own user."""
    WRITE_STORE = "write_store"
    """Changes documents of its own user."""
    NETWORK = "network"
    """Opens connections to other machines."""
    PROCESS = "process"
    """Starts programs."""


STORE_PERMISSIONS = frozenset({ToolPermission.READ_STORE, ToolPermission.WRITE_STORE})
"""Granted where nothing else is configured: no tool leaves the store."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The declaration of a tool: the one place of its name, description and schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments; they are validated before each run."""
    permissions: frozenset[ToolPermission] = frozenset({ToolPermission.READ_STORE})
    deadline_s: float = 30.0
    """Seconds that one run may take."""
    max_result_bytes: int = 4 * 1024 * 1024
    """Of text, raw bundle and artifacts together."""

    @property
    def writes(self) -> bool:
        return ToolPermission.WRITE_STORE in self.permissions


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """One event of a run under way."""

    tool: str
    message: str
    done: float | None = None
    """Share of the work from 0 to 1; None where it is unknown."""


@runtime_checkable
class ToolListener(Protocol):
    """A listener of answers that also receives the progress of tools."""

    def on_tool_progress(self, progress: ToolProgress) -> None: ...


def _ignore_progress(message: str, done: float | None = None) -> None:
    """No-op callback."""


@dataclass(frozen=True, slots=True)
class ToolRun:
    """One run of a tool: for whom, with which arguments, and until when."""

    arguments: Mapping[str, Any]
    turn: TurnKey
    deadline_s: float
    cancelled: Event = field(default_factory=Event)
    """Set once the result is no longer awaited: at the deadline, or when the turn is cancelled. Threads of a tool check it."""
    report: Callable[[str, float | None], None] = _ignore_progress
    """Reports progress: a message, and the share of the work that is done. Does nothing after `cancelled`."""

    @property
    def user(self) -> UserId:
        return self.turn.user


@dataclass(frozen=True, slots=True)
class ToolArtifact:
    """A file that a tool made; it is stored with the turn. Raises DocumentError for a name that is no plain file name."""

    name: str
    """Lower-case letters, digits, '_' or '-', and an ending: `page.png`."""
    media_type: str
    data: bytes

    def __post_init__(self) -> None:
        if not _ARTIFACT.fullmatch(self.name):
            raise DocumentError(f"artifact {self.name[:80]!r}: expected lower-case letters, digits, '_' or '-', and an ending such as .png")
        if not _MEDIA_TYPE.fullmatch(self.media_type):
            raise DocumentError(f"artifact {self.name}: media type {self.media_type[:80]!r}: expected one such as image/png")


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The result of a run. `text` is Markdown for section 4; `raw` is the bundle for toolresults.md."""

    ok: bool
    text: str
    raw: str
    sources: tuple[Source, ...] = ()
    """Without labels; the caller numbers them."""
    research: tuple[Research, ...] = ()
    """Research results; they are stored once the turn is saved, and later turns find them (specification 004, section 3.5)."""
    visits: tuple[Visit, ...] = ()
    """Pages that were visited (specification 004, section 3.6)."""
    artifacts: tuple[ToolArtifact, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of text, raw bundle and artifacts."""
        texts = sum(len(text.encode(errors="surrogatepass")) for text in (self.text, self.raw))
        return texts + sum(len(artifact.data) for artifact in self.artifacts)


class Tool(Protocol):
    """What the Coordinator may call. `run` must not block the event loop: slow work belongs in a thread that checks `run.cancelled`."""

    @property
    def spec(self) -> ToolSpec: ...
    async def run(self, run: ToolRun) -> ToolOutcome: ...
