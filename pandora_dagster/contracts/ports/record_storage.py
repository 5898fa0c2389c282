"""Ports of stored records: calls, interventions, batches, corrections, recipe versions."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from pandora_dagster.contracts.batches import Batch, RejectedLine, WaitingFile
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.interventions import Intervention, ResolutionKind
from pandora_dagster.contracts.model_calls import CallRecord, TurnUsage, token_alarm
from pandora_dagster.contracts.ports.object_storage import IndexFile
from pandora_dagster.contracts.recipe_governance import Correction, ProductionChange, RecipeCalibration, RecipeProduction, RecordedAnswers
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, RecipeTest

SumBy = Literal["layer", "recipe", "day", "phase", "model", "user", "turn"]


@dataclass(frozen=True, slots=True)
class CallTotals:
    """Sums over calls. `used_tokens`, `output_tokens` and `cached_tokens` are the servers' counts over all attempts, or the planned numbers
    where a server did not count; other tokens are planned numbers. `latency_ms` includes `queue_ms`."""

    calls: int
    failed: int
    prompt_tokens: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    retries: int
    latency_ms: float
    used_tokens: int = 0
    cached_tokens: int = 0
    queue_ms: float = 0.0
    cost: float = 0.0

    @property
    def alarm(self) -> str:
        """A warning where the calls are those of one turn and used more tokens than expected; else ""."""
        return token_alarm(self.used_tokens)


@dataclass(frozen=True, slots=True)
class CompressionTotals:
    """The metrics of specification 000, section 27 over all stored records: of each histogram the count, the sum and the largest value."""

    invocations: int = 0
    halted: int = 0
    tokens_saved: int = 0
    max_tokens_saved: int = 0
    latency_ms: float = 0.0
    max_latency_ms: float = 0.0
    overflow_warnings: int = 0


class CallLog(Protocol):
    """Call records as JSON lines beside the turn they belong to; DuckDB is their index."""

    def begin(self, record: CallRecord) -> None:
        """Store the record of a call that begins, until `append` has the record of its end."""
        ...

    def append(self, record: CallRecord) -> None: ...
    def usage(self, key: TurnKey, revision: int, *, phase: str) -> TurnUsage:
        """Usage of the turn so far, and of its phases other than `phase`; zeros where the records cannot be read."""
        ...

    def index_turns(self, turns: Sequence[tuple[TurnKey, int]]) -> bool:
        """Index the records of revisions of turns in one transaction. Never raises: the index can be rebuilt from the records' lines.

        False where the index was locked too long or the disk refused, so that a later attempt may succeed."""
        ...


class CallHistory(Protocol):
    """The stored calls: of a turn, of a recipe, of a period. Every method raises StoreError."""

    def recorded(self, key: TurnKey, revision: int) -> Iterator[CallRecord]:
        """The calls of one revision of a turn, read from its lines; lines that are no record are left out."""
        ...

    def unfinished(self, user: UserId | None = None) -> tuple[CallRecord, ...]:
        """Calls that began and have no end, oldest first: they run now, or their process was killed."""
        ...

    def of_turn(self, key: TurnKey, revision: int) -> tuple[CallRecord, ...]:
        """The calls of one revision of a turn, oldest first, read from the index."""
        ...

    def newest(self, recipe: str, *, version: str = "", layer: str = "", limit: int) -> Iterator[CallRecord]:
        """The newest indexed calls of a recipe, given by the name in its file (of one version, on one layer), newest first."""
        ...

    def between(self, begin: str, end: str) -> Iterator[CallRecord]:
        """All calls from `begin` to before `end`, calls without a turn too, oldest first."""
        ...

    def totals(self, key: TurnKey, revision: int) -> CallTotals:
        """Sums over the calls of one revision of a turn."""
        ...

    def sums(self, by: SumBy, *, user: UserId | None, since: str) -> tuple[tuple[str, CallTotals], ...]:
        """Sums over the calls of completed turns and over those without a turn."""
        ...


class CallCounts(Protocol):
    """Sums over all calls in the index, for reports on the whole store."""

    @property
    def file(self) -> IndexFile: ...
    def calls_by_model(self) -> Mapping[tuple[str, str], int]:
        """Calls by layer and model; raises StoreError."""
        ...

    def compressions(self) -> CompressionTotals:
        """Sums over all compressions; raises StoreError."""
        ...


class Vault(Protocol):
    """Stores packs and raw answers by their content, credentials redacted (decision 14, docs/decisions/14-the-intervention-record.md).
    References are "" where it is switched off."""

    def keep(self, user: str, kind: str, text: str) -> str:
        """The reference under which the text is kept. `kind` is a lower-case word such as `pack` or `answer`."""
        ...

    def read(self, ref: str) -> str: ...
    def keep_image(self, user: str, data: bytes) -> str:
        """The reference of an image's bytes, stored unchanged: redaction applies to texts."""
        ...

    def read_image(self, ref: str, /) -> bytes:
        """Raises DocumentError for a reference without stored bytes."""
        ...


class ExpiringVault(Vault, Protocol):
    """A vault whose entries have a retention."""

    def sweep_daily(self, now: datetime, *, days: int, spared: Callable[[], Collection[str]] = ...) -> int | None:
        """Delete entries stored over `days` days ago, at most once in 24 hours; returns their number, None where no sweep is due.

        References in `spared` stay.

        Raises StoreError."""
        ...


class ExpiringRuns(Protocol):
    """The checkpoints of research, which have a retention."""

    def sweep(self, *, before: float, spared: Collection[TurnKey]) -> int:
        """Delete the runs stored last before the Unix time `before`; returns their number. A run that goes on stays, and so do those of
        `spared` turns. Raises StoreError."""
        ...


class Interventions(Protocol):
    """The stored interventions."""

    def open(self, type: InterventionType, message: str, **fields: str) -> Intervention:
        """Writes a new intervention and returns it with its id; `fields` are further fields of Intervention."""
        ...

    def show(self, intervention_id: str) -> Intervention: ...
    def list(self, *, state: str | None = None, user: str | None = None) -> tuple[Intervention, ...]: ...
    def resolve(self, intervention_id: str, resolution: str, *, how: ResolutionKind = "noted") -> Intervention:
        """Close one; raises InputError where it was resolved before, except by `went_on`."""
        ...


class Batches(Protocol):
    """Records of batches: one for each content of a file."""

    def find(self, digest: str) -> Batch | None:
        """Raises DocumentError for a damaged record."""
        ...

    def begin(self, batch: Batch) -> Batch:
        """Write the record, all or nothing, unless one of this content is stored; return the stored one. Raises StoreError."""
        ...

    def running(self, batch: Batch) -> AbstractContextManager[object]:
        """A lock to hold while its turns run; raises StoreError where another process runs them."""
        ...

    def of_day(self, day: str) -> Sequence[Batch]:
        """The batches that began on this day, by file."""
        ...


class QueryFiles(Protocol):
    """Files of queries: those that wait in the inbox, and files at any path."""

    def files(self) -> tuple[WaitingFile, ...]:
        """The waiting files, ordered by name."""
        ...

    def path(self, name: str) -> Path:
        """A waiting file; raises InputError for any other name."""
        ...

    def finish(self, name: str, day: str, digest: str, rejected: Sequence[RejectedLine] = ()) -> Path | None:
        """Take a file out of the inbox, its rejected lines with it; returns where these are. After an interrupted move it still waits."""
        ...

    def read(self, path: Path) -> bytes:
        """The bytes of a file of queries; raises InputError for one that cannot be read or is too large."""
        ...

    def keep_rejected(self, path: Path, rejected: Sequence[RejectedLine]) -> Path | None:
        """Write the rejected lines of a file beside it; None where there are none."""
        ...


class Corrections(Protocol):
    """The corrections that users made to answers."""

    def add(self, key: TurnKey, *, revision: int, phase: str, recipe: str, recipe_version: str, text: str, call_id: str = "") -> Correction:
        """Store a correction durably, credentials redacted.

        Raises StoreError, also while its user is erased, UnknownTurnError for a turn that does not exist.
        """
        ...

    def of_user(self, user: UserId) -> tuple[Correction, ...]:
        """Oldest first; raises DocumentError naming a damaged file."""
        ...


class RecipeTestStore(Protocol):
    """Recipe tests made from calls of a user; the same test is stored once."""

    def add(self, user: UserId, recipe: str, test: RecipeTest) -> Path:
        """Returns the file of the test; raises StoreError, also while the user is erased, InputError for a user who has no turns."""
        ...

    def of_user(self, user: UserId, recipe: str) -> tuple[RecipeTest, ...]:
        """By name; raises DocumentError naming a damaged file."""
        ...


class RecordedAnswerStore(Protocol):
    """Recorded answers of a model to the tests of recipes."""

    def put(self, recorded: RecordedAnswers) -> Path:
        """Replace the recordings of a recipe; returns their file. Raises StoreError."""
        ...

    def of_recipe(self, recipe: str) -> RecordedAnswers | None:
        """The recordings of `{category}/{name}`, None where there are none; raises DocumentError for a damaged file."""
        ...


class RecipeVersionStore(Protocol):
    """Every version of a recipe that ran, unchanged, and the one that is in production."""

    def keep(self, loaded: LoadedRecipe) -> None:
        """Store a version that is about to run. Raises StoreError."""
        ...

    def production(self, recipe: str) -> RecipeProduction:
        """The production record of `{category}/{name}`; raises ConfigurationError where its file is damaged."""
        ...

    def version(self, recipe: str, version: str) -> LoadedRecipe:
        """A kept version by the first digits of its hash; raises InputError (unknown, ambiguous), DocumentError (damaged)."""
        ...

    def versions(self, recipe: str) -> tuple[str, ...]:
        """The kept versions, by hash."""
        ...

    def change(self, recipe: str, change: ProductionChange, *, since: RecipeProduction, pinned: str) -> RecipeProduction:
        """Put another version or layer into production; `since` is the record on which the change was decided.

        Raises InputError where the stored record differs from `since`, StoreError where another process holds the lock too long.
        """
        ...

    def calibration(self, recipe: str) -> RecipeCalibration:
        """The calibration of `{category}/{name}`; without tables where none was measured, or its record is damaged."""
        ...

    def keep_calibration(self, calibration: RecipeCalibration) -> None:
        """Replace the calibration of a recipe. Raises StoreError."""
        ...

    def faults(self) -> Sequence[str]:
        """One sentence for each kept version or record of production that is damaged."""
        ...
