"""The ports: what the inner rooms ask of the outer ones. Adapters in `runtime`, `stores` and `tools` fill them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from pandora_dagster.contracts.archive import TurnActivity
from pandora_dagster.contracts.calls import (
    CallRecord,
    CallRequest,
    CallResult,
    CallSite,
    InputDocument,
    ModelAnswer,
    PromptPack,
    TurnUsage,
)
from pandora_dagster.contracts.compression import CompressionReport, CompressionInput, CompressionResult
from pandora_dagster.contracts.conversations import SessionRecord
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.interventions import Intervention, ResolutionKind
from pandora_dagster.contracts.recipes import LoadedRecipe
from pandora_dagster.contracts.turns import Candidate, Manifest, PhaseRecord, Turn, TurnRow
from pandora_dagster.contracts.words import ContentType, InterventionType, ModelLayer, TurnState


class Clock(Protocol):
    """Time as an argument: an aware UTC datetime."""

    def __call__(self) -> datetime: ...


class TokenMeasure(Protocol):
    """000 section 21.1."""

    def count(self, text: str) -> int: ...


class RecipeCatalog(Protocol):
    """What may run. Loading raises RecipeNotFoundError or RecipeValidationError; there is no fallback."""

    def load(self, name: str) -> LoadedRecipe: ...
    def get(self, phase: str, mode: str) -> LoadedRecipe: ...
    def names(self) -> tuple[str, ...]: ...
    def compressor(self, content_type: ContentType) -> LoadedRecipe: ...


class ModelRuntime(Protocol):
    """One runtime behind one port: `extractive` or `sglang`."""

    @property
    def name(self) -> str: ...
    def model(self, layer: ModelLayer) -> str: ...
    def context_limit(self, layer: ModelLayer) -> int | None:
        """Tokens the served model can take, None where unbounded or not yet known."""
        ...

    def temperature(self, layer: ModelLayer) -> float: ...
    async def count(self, pack: PromptPack) -> int | None:
        """Tokens of the pack's whole prompt as its layer's model reads it; None where that can not be told. Never raises."""
        ...

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        """One answer; raises ModelError, a ModelTimeoutError after `timeout_s` seconds from when the call has its place at
        the server. Never retries by itself what the recipe's gates decide about.

        `on_words` is told the answer's text as it comes, in as many pieces as the runtime has; what it raises ends the call."""
        ...

    async def aclose(self) -> None: ...


class Metrics(Protocol):
    """Figures of the running system under Prometheus' names. Never raises: a figure that is lost takes nothing from a call."""

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Add to a counter, whose name ends in `_total`, `_sum` or `_count`."""
        ...

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """What stands at `value` now."""
        ...


class EmbeddingModel(Protocol):
    """Texts as vectors, close to each other where they mean alike; a model server's, or a local model's."""

    @property
    def name(self) -> str:
        """The model and its version: vectors of different names are never compared."""
        ...

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> list[list[float]]:
        """One vector a text, float32 values, all of one length. Raises ModelError; a long text's end may not be read."""
        ...


class VectorIndex(Protocol):
    """Vectors of what turns say, kept for the search. Never raises: without them the search goes by words alone."""

    def put(self, rows: Sequence[TurnRow]) -> None:
        """The vectors of these turns' messages, in the place of older ones."""
        ...


class TokenRatios(Protocol):
    """What was learned of the served tokenizers: served tokens per cl100k token, of each layer and model."""

    def find(self, layer: ModelLayer, model: str) -> float | None:
        """None where nothing is known of this model on this layer; raises DocumentError for a damaged file."""
        ...

    def keep(self, layer: ModelLayer, model: str, ratio: float) -> None:
        """Raises StoreError."""
        ...


@dataclass(frozen=True, slots=True)
class FittedDocuments:
    """Documents after compression, each verified, with tokens saved and what became of their facts."""

    documents: tuple[InputDocument, ...]
    tokens_saved: int
    reports: tuple[CompressionReport, ...] = ()


class DocumentFitter(Protocol):
    """Makes documents fit by verified compression; raises BudgetError where it can not."""

    async def fit(self, documents: Sequence[InputDocument], *, room: int, recipe: LoadedRecipe, request: CallRequest) -> FittedDocuments: ...


class BudgetCompressor(Protocol):
    """`execution` keeps texts within their budgets while a turn grows (000 sections 25 and 26). Phases report, it decides.

    Raises HaltError where the model that compresses can not be reached; a text that no sound compression fits comes back whole.
    """

    async def fit_text(self, content: CompressionInput, *, target: int, site: CallSite) -> CompressionResult:
        """A chosen text within `target` tokens (DECISIONS 2); unchanged where it fits."""
        ...

    async def compress_for_archive(self, content: CompressionInput, *, targets: Sequence[int], site: CallSite) -> CompressionResult:
        """A text for the archive: within the first of `targets` that a sound text fits, whole with the reason where none does."""
        ...

    async def fit_section(self, number: int, content: CompressionInput, *, site: CallSite) -> CompressionResult:
        """A section that its phase has just written, within its budget (level 1)."""
        ...

    async def fit_older_results(self, existing: Sequence[CompressionInput], newest: str, *, around: int, site: CallSite) -> tuple[CompressionResult, ...]:
        """Section 4's older results, made ready for the newest one to come in whole (000 section 26). `around`: tokens of
        what stands about them and stays."""
        ...

    async def fit_newest_result(self, newest: CompressionInput, *, site: CallSite) -> CompressionResult:
        """A tool result that alone exceeds section 4's budget, within it (DECISIONS 4)."""
        ...

    async def fit_document(self, sections: Mapping[int, CompressionInput], *, total: int, latest: int, site: CallSite) -> Mapping[int, CompressionResult]:
        """The sections to replace so that context.md of `total` tokens is back under its limit (level 2)."""
        ...


class RecipeExecutor(Protocol):
    """`execution`: the only caller of a model (000 section 21.4)."""

    async def call(self, request: CallRequest) -> CallResult:
        """Runs the seven steps of 000 section 15; raises HaltError after writing the intervention."""
        ...


class CallLog(Protocol):
    """Call records as JSON lines beside the turn they belong to; DuckDB is their index."""

    def append(self, record: CallRecord) -> None: ...
    def usage(self, key: TurnKey, revision: int, *, phase: str) -> TurnUsage:
        """What the turn took so far, and `phase` of it; nothing where the records can not be read."""
        ...

    def index_turn(self, key: TurnKey, revision: int) -> bool:
        """Take the records of a turn into the index; False where it was held too long or the disk refused, and another try may do.
        Never raises: the lines are the truth, the index can be made again."""
        ...

    def index_turns(self, turns: Sequence[tuple[TurnKey, int]]) -> bool:
        """`settle` for many revisions, in one opening of the index."""
        ...


class Vault(Protocol):
    """Packs and raw answers, content-addressed, credentials redacted (DECISIONS 14). "" where switched off."""

    def keep(self, user: str, kind: str, text: str) -> str: ...
    def read(self, ref: str) -> str: ...


class Interventions(Protocol):
    def open(self, type: InterventionType, message: str, **fields: str) -> Intervention:
        """Writes a new intervention and returns it with its id; `fields` are further fields of Intervention."""
        ...

    def show(self, intervention_id: str) -> Intervention: ...
    def list(self, *, state: str | None = None, user: str | None = None) -> tuple[Intervention, ...]: ...
    def resolve(self, intervention_id: str, resolution: str, *, how: ResolutionKind = "noted") -> Intervention:
        """Close one; raises InputError where anything was done about it already, `went_on` apart."""
        ...


class TurnStore(Protocol):
    """The documents: the truth. Every write is all-or-nothing; `turn.json` is the commit point."""

    def allocate(self, user: UserId, count: int) -> range:
        """`count` numbers in a row, given atomically and never reused."""
        ...

    def start(
        self,
        user: UserId,
        query: str,
        *,
        session: SessionId,
        mode: str,
        now: datetime,
        replies_to: str | None = None,
        number: int | None = None,
    ) -> Turn:
        """A new open turn with section 0. `number`: one that was allocated for it; raises StoreError where a turn of it stands there."""
        ...

    def load(self, key: TurnKey, *, revision: int | None = None) -> Turn:
        """The newest revision unless told; verifies hashes; raises UnknownTurnError or DocumentError."""
        ...

    def original(self, key: TurnKey, *, revision: int | None = None) -> Turn:
        """The turn as it was before it was archived, out of cold storage; any other, and one whose originals were deleted by rule, as it
        stands. Raises DocumentError."""
        ...

    def manifest(self, key: TurnKey) -> Manifest: ...
    def commit(
        self,
        turn: Turn,
        *,
        phase: PhaseRecord | None,
        context: str | None = None,
        files: Mapping[str, str] | None = None,
        state: TurnState | None = None,
        **manifest_fields: Any,
    ) -> Turn:
        """Files first, context.md next, `turn.json` last; returns the turn as it now stands."""
        ...

    def reopen(self, turn: Turn, *, phase: str, order: Sequence[str]) -> Turn:
        """The turn made ready to run `phase`: that phase and all after it in `order` are dropped. A turn that was
        saved (or clarified) is not touched: a numbered revision beside it takes the re-run."""
        ...

    def lock(self, key: TurnKey, *, wait_s: float | None = None) -> AbstractContextManager[None]:
        """Held while a phase runs; raises StoreError where another process holds it too long (`wait_s` where given)."""
        ...

    def keys(self, user: UserId | None = None) -> Iterable[TurnKey]: ...
    def users(self) -> tuple[UserId, ...]: ...
    def resolve(self, text: str) -> TurnKey:
        """`<user>:turn_000811`, or `turn_000811` / `811` where that is unique; raises UnknownTurnError."""
        ...

    def path(self, key: TurnKey, *, revision: int | None = None) -> str:
        """The folder of a turn's revision, for people."""
        ...


class ImportedTurnStore(Protocol):
    """Where finished turns of imported conversations go."""

    def allocate(self, user: UserId, count: int) -> range:
        """`count` numbers in a row, given atomically and never reused."""
        ...

    def place_many(self, turns: Iterable[tuple[TurnKey, Mapping[str, str], Manifest]]) -> tuple[Turn, ...]:
        """Each turn appears at once, with all its documents (`context.md` among the files). Hashes and tokens are filled in.
        Raises StoreError where a turn stands there already."""
        ...

    def load(self, key: TurnKey, *, revision: int | None = None) -> Turn:
        """Raises UnknownTurnError for a turn that is not there."""
        ...


class Sessions(Protocol):
    """Records of imported conversations, one per user and session; `save` is all-or-nothing."""

    def find(self, user: UserId, session: SessionId) -> SessionRecord | None: ...
    def begin(self, record: SessionRecord) -> SessionRecord:
        """Writes the record unless one stands there; returns what stands there now (two imports at once share its numbers)."""
        ...

    def save(self, record: SessionRecord) -> None: ...
    def records(self, user: UserId | None = None) -> Iterable[SessionRecord]:
        """By user, then by first turn."""
        ...


class TurnIndex(Protocol):
    """DuckDB: an index over the documents, rebuilt from them at any time."""

    def put(self, rows: Sequence[TurnRow]) -> None: ...
    def rows(
        self, user: str | None = None, *, session: str | None = None, before: int | None = None, limit: int | None = None
    ) -> tuple[TurnRow, ...]:
        """Newest last; turns numbered `before` or later stay out; `limit` keeps the newest."""
        ...

    def update_states(self, manifests: Sequence[Manifest]) -> None:
        """State, tokens and context hash of rows whose texts stay as they are; turns that have no row are passed over."""
        ...

    def activities(self, *, archived: bool | None = None, between: tuple[str, str] = ...) -> Iterator[TurnActivity]:
        """Of every turn its state and last activity, nothing else, user by user and by number, in bounded memory.

        `archived`: only those that are, or are not; `between`: only where the text of the last activity lies from one to before the other.
        """
        ...

    def missing(self, keys: Sequence[TurnKey]) -> tuple[TurnKey, ...]:
        """Those that have no row."""
        ...

    def sessions(self, user: str) -> Mapping[str, tuple[TurnActivity, ...]]:
        """The user's sessions by id: of each turn its state and last activity, nothing else, by number."""
        ...

    def outdated(self, manifests: Sequence[Manifest]) -> tuple[Manifest, ...]:
        """Those whose row is missing, or has another state, last activity, number of tokens or context hash."""
        ...

    def candidates(self, user: str, query: str, *, limit: int, before: int | None = None) -> tuple[Candidate, ...]:
        """The user's own turns that may matter for `query`, best first; turns numbered `before` or later stay out."""
        ...
