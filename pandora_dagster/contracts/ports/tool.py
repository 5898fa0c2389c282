"""The port of tools: what a tool declares, what one run of it receives, and what it returns."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Event
from typing import Any, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from pandora_dagster.contracts.compression_results import GateVerdict
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.model_calls import EXPECTED_TURN_TOKENS, InputDocument, Source
from pandora_dagster.contracts.user.sources import Research, Visit
from pandora_dagster.errors import ConfigurationError, DocumentError

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
    max_tokens: int = EXPECTED_TURN_TOKENS
    """Tokens of recipes after which a run may ask no further one."""
    asks_first: bool = False
    """True for a tool that changes nothing until the user approves what its outcome names in `to_approve`."""

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


Answer = TypeVar("Answer", bound=BaseModel)


class AskRecipe(Protocol):
    """Asks a recipe what code cannot tell; the call has the user's words beside the documents. Raises HaltError."""

    async def __call__(self, recipe: str, documents: tuple[InputDocument, ...], answer: type[Answer]) -> Answer: ...


async def _no_recipes(recipe: str, documents: tuple[InputDocument, ...], answer: type[Answer]) -> Answer:
    raise ConfigurationError(f"{recipe}: no recipe can be asked outside a turn", hint="give the run an `ask`")


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

    pages: Mapping[str, str] = field(default_factory=dict[str, str])
    """Address -> the text of a page that wanted a person, as the user gave it; "" where the user says to go on without."""
    ask: AskRecipe = _no_recipes
    approved: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the user approved, as an earlier run of this call named it in `to_approve`."""

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
    tables: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict[str, tuple[Mapping[str, Any], ...]])
    """Rows that reports show, by the name of their table, such as `searches`."""
    verdicts: tuple[GateVerdict, ...] = ()
    """What the tool verified of its result."""
    person_at: str = ""
    """The address of a page that a person must open before the question can be answered; the turn halts for it."""
    to_approve: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the tool would change; it changes nothing until the user approved this."""
    pages: int = 0
    """Pages that this run asked of the web, those that robots.txt refused included."""
    page_bytes: int = 0
    """Bytes of their bodies."""

    @property
    def size(self) -> int:
        """Bytes of text, raw bundle and artifacts."""
        texts = sum(len(text.encode(errors="surrogatepass")) for text in (self.text, self.raw))
        return texts + sum(len(artifact.data) for artifact in self.artifacts)


@dataclass(frozen=True, slots=True)
class ToolCost:
    """What one run of a tool took, its model calls included."""

    seconds: float = 0.0
    pages: int = 0
    page_bytes: int = 0
    calls: int = 0
    """Model calls that the run made."""
    tokens: int = 0
    price: float = 0.0
    """Of the calls, by the price table in `runtime.yaml`."""


@runtime_checkable
class KeepsTurnFiles(Protocol):
    """A tool that keeps files for a turn under way."""

    def release(self, turn: TurnKey) -> None:
        """Delete what is kept for a turn that has stored its results. Done again, it changes nothing."""
        ...


class Tool(Protocol):
    """What the Coordinator may call. `run` must not block the event loop: slow work belongs in a thread that checks `run.cancelled`."""

    @property
    def spec(self) -> ToolSpec: ...
    async def run(self, run: ToolRun) -> ToolOutcome: ...
