"""Ports of recipes and of the execution of one call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pandora_dagster.contracts.compression_results import CompressionInput, CompressionReport, CompressionResult
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.model_calls import CallRequest, CallResult, CallSite, InputDocument
from pandora_dagster.contracts.recipe_schema import LoadedRecipe


class RecipeCatalog(Protocol):
    """The recipes that may run. Loading raises RecipeNotFoundError or RecipeValidationError; there is no fallback."""

    def load(self, name: str) -> LoadedRecipe:
        """The recipe `{category}/{name}`."""
        ...

    def get(self, phase: str, mode: str) -> LoadedRecipe:
        """The variant of a recipe for a mode, `{phase}_{mode}`, else the recipe without a mode, `{phase}`."""
        ...

    def names(self) -> tuple[str, ...]: ...
    def compressor(self, content_type: ContentType) -> LoadedRecipe:
        """The recipe that compresses texts of this type."""
        ...


@dataclass(frozen=True, slots=True)
class FittedDocuments:
    """Documents after compression, each verified, with the tokens saved and the reports."""

    documents: tuple[InputDocument, ...]
    tokens_saved: int
    reports: tuple[CompressionReport, ...] = ()


class DocumentFitter(Protocol):
    """Makes documents fit by verified compression; raises BudgetError where that is impossible."""

    async def fit(
        self, documents: Sequence[InputDocument], *, budget_tokens: int, recipe: LoadedRecipe, request: CallRequest
    ) -> FittedDocuments: ...


class BudgetCompressor(Protocol):
    """Keeps texts within their budgets while a turn grows (specification 000, sections 25 and 26). Phases pass their texts; `execution`
    decides which to compress.

    Raises HaltError where the compressing model cannot be reached; returns the text unchanged where no sound compression fits.
    """

    async def fit_text(self, content: CompressionInput, *, target: int, site: CallSite) -> CompressionResult:
        """A chosen text within `target` tokens (decision 2, docs/decisions/02-selection-then-compression.md); unchanged where it fits."""
        ...

    async def compress_for_archive(self, content: CompressionInput, *, targets: Sequence[int], site: CallSite) -> CompressionResult:
        """A text for the archive: within the first of `targets` that a sound text fits, whole with the reason where none does."""
        ...

    async def fit_section(self, number: int, content: CompressionInput, *, site: CallSite) -> CompressionResult:
        """A section that its phase has just written, within its budget (level 1)."""
        ...

    async def fit_older_results(
        self, existing: Sequence[CompressionInput], newest: str, *, surrounding_tokens: int, site: CallSite
    ) -> tuple[CompressionResult, ...]:
        """Section 4's older results, made ready for the newest one to come in whole (specification 000, section 26).

        `surrounding_tokens`: tokens of the text around them, which stays.
        """
        ...

    async def fit_newest_result(self, newest: CompressionInput, *, site: CallSite) -> CompressionResult:
        """A tool result that alone exceeds section 4's budget, within it (decision 4,
        docs/decisions/04-the-newest-tool-result-stays-whole.md)."""
        ...

    async def fit_document(
        self, sections: Mapping[int, CompressionInput], *, total: int, latest: int, site: CallSite
    ) -> Mapping[int, CompressionResult]:
        """The sections to replace so that context.md of `total` tokens is back under its limit (level 2)."""
        ...


class RecipeExecutor(Protocol):
    """`execution`: the only caller of a model (specification 000, section 21.4)."""

    async def call(self, request: CallRequest) -> CallResult:
        """Runs the seven steps of specification 000, section 15; raises HaltError after writing the intervention."""
        ...
