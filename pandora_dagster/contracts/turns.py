"""A turn: its manifest, its documents in memory, its index row, and search results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from pandora_dagster.contracts.archive_records import ArchiveRecord
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, turn_number, user_id
from pandora_dagster.contracts.strict_model import StrictModel

FORMAT_VERSION = 3
MAX_DOCUMENT_BYTES = 32 * 1024 * 1024
"""A larger document is neither written nor read: context.md holds about 8,000 tokens, raw tool results some megabytes."""


class PhaseRecord(StrictModel):
    """One finished phase of a turn in the manifest: the files it wrote, and the recipes and runtimes it used."""

    phase: str
    finished_at: str
    recipes: Mapping[str, str] = {}
    """Recipe name -> version, of every recipe the phase ran."""
    runtimes: tuple[str, ...] = ()
    files: Mapping[str, str] = {}
    """File name -> sha256 of what the phase wrote, `context.md` left out (see `Manifest.sections`)."""
    report: Mapping[str, Any] = {}
    """Data that Dagster and `pandora show` display: calls, gates, tables."""


class ToolIntent(StrictModel):
    """A tool that runs for a turn, stored before it begins: it runs without the turn's lock."""

    phase: str
    tool: str
    holder: str
    """Who waits for its result, e.g. `process 4711`."""
    lease: Annotated[int, Field(ge=0)]
    """The number of the lease that the holder has until it has the turn's lock again."""
    until: str
    """When the tool is stopped at the latest."""


@dataclass(frozen=True, slots=True)
class ToolLease:
    """A lease for the time in which a tool runs: its number among those of the turn, and who has it."""

    number: int
    holder: str


class Manifest(StrictModel):
    """`turn.json`: the commit point of a turn. Files that it does not name do not count."""

    format_version: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    user_id: str
    turn_id: str
    session_id: str
    revision: Annotated[int, Field(ge=0)] = 0
    mode: Literal["chat", "code"] = "chat"
    state: TurnState = TurnState.OPEN
    created_at: str
    """ISO 8601 UTC, e.g. `2026-01-04T14:30:00Z`."""
    last_activity: str
    recorded: bool = False
    """True for imported turns: nothing ran, no runtime answered."""
    runtime: str = ""
    sections: Mapping[str, str] = {}
    """Section number -> sha256 of that section's text in context.md."""
    context_sha: str = ""
    """sha256 of the whole context.md at the last commit."""
    phases: tuple[PhaseRecord, ...] = ()
    intervention: str | None = None
    replies_to: str | None = None
    """The turn id of the CLARIFY to which this turn replies."""
    summary: Mapping[str, Any] | None = None
    """The TurnSummary of specification 004, section 11.2, once made."""
    tokens: int = 0
    """Tokens of context.md (cl100k)."""
    metadata: Mapping[str, str] = {}
    """Keys and values that a client of the HTTP API gave with the query."""
    first_message: Annotated[int, Field(ge=0)] = 0
    """Of a recorded turn: the index of its user message in the conversation, counted from 0."""
    tool_run: ToolIntent | None = None
    """The tool that was begun since the last commit; it runs while its lease is held."""
    archive: ArchiveRecord | None = None
    """Of an archived turn: the location of its originals. `sections`, `context_sha`, `tokens` and the phases' files describe the folder."""

    @model_validator(mode="after")
    def _require_archive_record(self) -> "Manifest":
        """An archived turn has an archive record, and only an archived turn: one without the other is damage."""
        if (self.archive is not None) != (self.state is TurnState.ARCHIVED):
            raise ValueError(f"state {self.state} {'with' if self.archive else 'without'} an archive record: expected both or none")
        return self

    @property
    def key(self) -> TurnKey:
        """The turn's key; raises BadIdError for invalid ids."""
        return TurnKey(user_id(self.user_id), turn_number(self.turn_id))

    def has_finished(self, phase: str) -> bool:
        """Whether the phase has run to its end in this revision."""
        return any(p.phase == phase for p in self.phases)


@dataclass(frozen=True, slots=True)
class Turn:
    """One revision of a turn in memory. `context` is the text of context.md; `files` its other documents by name."""

    key: TurnKey
    manifest: Manifest
    context: str
    files: Mapping[str, str] = field(default_factory=dict[str, str])


class IndexedMessage(StrictModel):
    """One message of a turn in the search index. `id` is the message's own, else `m<index in the conversation>`."""

    id: str
    role: str
    name: str = ""
    """The speaker, where the message names one."""
    text: str
    created_at: str


class TurnRow(StrictModel):
    """One row of the turn index: specification 004, section 3.3 plus session, state, tokens and hashes."""

    user_id: str
    turn_id: str
    number: int
    session_id: str
    state: TurnState
    created_at: str
    last_activity: str
    summary: str = ""
    topics: tuple[str, ...] = ()
    intent: str = ""
    has_research: bool = False
    research_topic: str | None = None
    tokens: int = 0
    revision: int = 0
    recorded: bool = False
    runtime: str = ""
    context_sha: str = ""
    text: str = ""
    """Text of the turn for later turns; searched only where it has no messages."""
    messages: tuple[IndexedMessage, ...] = ()
    """Its messages in order; the first turn of a recorded conversation begins with the preamble (decision 20,
    docs/decisions/20-files-of-a-user.md)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A turn that the index returns for a query; scores are comparable within one result only."""

    row: TurnRow
    score: float


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Filters of a search; None for everything. Times are ISO 8601 and compare with a turn's `created_at`."""

    session: str | None = None
    since: str | None = None
    until: str | None = None
    """Exclusive upper bound."""
    intent: str | None = None
    topic: str | None = None
    state: TurnState | None = None


RECORDED = "recorded"
"""The phase that owns an imported turn's documents."""


@dataclass(frozen=True, slots=True)
class PhaseEffects:
    """What each phase of the flow does to a stored turn: all that a store knows of phases."""

    sections: Mapping[str, int]
    """Phase -> the section of context.md that it writes, e.g. `reflection: 1`."""
    final_states: Mapping[str, TurnState]
    """Phase -> the state in which it leaves the turn, in the order of the flow, e.g. `saved_turn: saved`. The phases after it change no
    document."""
    summary: str
    """The phase whose result is the `Manifest.summary` of a saved turn."""

    def written_at(self, manifest: Manifest) -> str:
        """When the turn's documents were complete; of an unfinished turn, when it began."""
        return next((p.finished_at for p in manifest.phases if p.phase in self.final_states or p.phase == RECORDED), manifest.created_at)


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that a search returns; scores are comparable within one result only; `position` orders a user's messages."""

    turn_id: str
    created_at: str
    message_id: str
    speaker: str
    text: str
    score: float
    position: int


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What a rebuild of indexes did. `faults` names each turn whose documents cannot be read."""

    turns: int
    faults: tuple[str, ...] = ()
    damaged_files: tuple[Path, ...] = ()
    """Where damaged indexes are kept."""
    rows: Mapping[str, int] = field(default_factory=dict[str, int])
    """Name of each other index -> the number of its rows."""
    broken_lines: tuple[str, ...] = ()
    """Each line and each record that cannot be read."""
