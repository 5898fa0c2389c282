"""The schema of a recipe, which defines one kind of model call (specification 000, section 10), and of its tests."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import ConfigDict, Field, field_validator, model_validator

from pandora_dagster.contracts.enums import ContentType, Mode, ModelLayer, OutputFormat
from pandora_dagster.contracts.images import ImagePart
from pandora_dagster.contracts.model_calls import Item, Source
from pandora_dagster.contracts.strict_model import StrictModel, removed_fields

_FIELD_PATH = re.compile(r"(?:[A-Za-z_]\w*|\[\d+\])(?:\.[A-Za-z_]\w*|\[\d+\])*")
Text = Annotated[str, Field(min_length=1)]


class CaseDocument(StrictModel):
    """A document of a call: its whole text, or items of which as many are sent as fit."""

    text: str = ""
    items: tuple[Item, ...] = ()
    header: str = ""


class CallInput(StrictModel):
    """The texts of one call, apart from who made it."""

    query: str = ""
    """The words of the user; "" where those of a compression are too long to store."""
    mode: Mode = Mode.CHAT
    intent: str = ""
    ambiguous: bool = False
    documents: Mapping[str, CaseDocument] = Field(default_factory=dict)
    """Document name in recipes -> document; a plain text is a document that is sent whole."""
    variables: Mapping[str, str] = Field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    phase: str = ""

    @field_validator("documents", mode="before")
    @classmethod
    def _accept_plain_texts(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        documents: Mapping[Any, Any] = value  # pyright: ignore[reportUnknownVariableType] - what a file holds
        return {name: {"text": document} if isinstance(document, str) else document for name, document in documents.items()}


class CallCase(CallInput):
    """A recorded call: enough to make it again on any version of its recipe."""

    images: tuple[ImagePart, ...] = ()
    """Without their bytes, which are stored under `reference`."""


class Expectation(StrictModel):
    """One assertion on a parsed answer: exactly one of the keys beside `field`."""

    field: Annotated[str, Field(description="Where in the parsed answer: decision, tasks[0].tool; absent: the whole answer.")] = ""
    equals: Annotated[Any, Field(description="Exactly this value.")] = None
    one_of: Annotated[tuple[Any, ...], Field(min_length=1, description="One of these values.")] | None = None
    contains: Annotated[Any, Field(description="A text in the text, or a value in the list.")] = None
    lacks: Annotated[Any, Field(description="No such text in the text, no such value in the list.")] = None
    matches: Annotated[str, Field(min_length=1, description="A regular expression found in the text.")] | None = None
    at_least: Annotated[float, Field(description="The number, or how many the list has, is no less.")] | None = None
    at_most: Annotated[float, Field(description="The number, or how many the list has, is no more.")] | None = None
    cites: Annotated[tuple[Text, ...], Field(min_length=1, description="The text cites each of these labels.")] | None = None

    @field_validator("field")
    @classmethod
    def _require_field_path(cls, value: str) -> str:
        if value and not _FIELD_PATH.fullmatch(value):
            raise ValueError(f"{value}: expected a place such as decision or tasks[0].tool")
        return value

    @field_validator("matches")
    @classmethod
    def _require_expression(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"{value}: {error}: expected a regular expression") from error
        return value

    @model_validator(mode="after")
    def _require_one_assertion(self) -> "Expectation":
        assertions = self.model_fields_set - {"field"}
        if len(assertions) != 1:
            raise ValueError(f"{', '.join(sorted(assertions)) or 'none'} given: expected exactly one of {', '.join(ASSERTIONS)}")
        return self

    @property
    def assertion(self) -> str:
        """The name of the assertion."""
        return next(iter(self.model_fields_set - {"field"}))


ASSERTIONS = tuple(name for name in Expectation.model_fields if name != "field")
"""The keys of which an expectation has exactly one."""


class RecipeTest(CallInput):
    """A call and the requirements of its answer: it passes its recipe's gates, meets the expectations, and contains the facts."""

    name: Annotated[str, Field(min_length=1, max_length=120, description="What it shows, in words.")]
    answer_schema: Mapping[str, Any] | None = Field(None, description="JSON Schema that the parsed answer has beside the recipe's own.")
    expect: tuple[Expectation, ...] = ()
    facts: Annotated[tuple[Text, ...], Field(description="Texts of the input that the answer must still say.")] = ()

    @model_validator(mode="after")
    def _require_expectation(self) -> "RecipeTest":
        if not self.expect and not self.facts and self.answer_schema is None:
            raise ValueError("nothing is expected: expected expect, facts or answer_schema")
        return self


MAX_CALL_TOKENS = 12_000
"""Tokens that one call may take in all (specification 000, section 19); a document that needs more is compressed."""
Tokens = Annotated[int, Field(ge=0, le=1_000_000, strict=True)]
SectionMark = Annotated[str, Field(pattern=r"^§[0-6]$")]
PromptPath = Annotated[str, Field(pattern=r"^prompts/([a-z0-9_]+/)+[a-z0-9_]+\.md$")]


class TokenBudget(StrictModel):
    """Tokens of one call: `prompt + input + output + response_reserve <= total` (specification 000, section 11.1)."""

    total: Annotated[int, Field(gt=0, le=1_000_000, strict=True, description="Hard limit for the whole call.")]
    prompt: Annotated[Tokens, Field(description="What comes first: role prompt, policy, IO schema.")]
    input: Annotated[Tokens, Field(description="Documents, sections, variables and the original query.")]
    output: Annotated[int, Field(gt=0, le=1_000_000, strict=True, description="What the model may write.")]
    response_reserve: Annotated[Tokens, Field(description="Kept free for the response's overhead; absent = 0.")] = 0
    _removed = removed_fields(thinking=0)

    @model_validator(mode="after")
    def _require_fitting_parts(self) -> "TokenBudget":
        parts = self.prompt + self.input + self.output + self.response_reserve
        if parts > self.total:
            raise ValueError(f"{self.prompt} + {self.input} + {self.output} + {self.response_reserve} = {parts} is over total {self.total}")
        return self


class PromptWhen(StrictModel):
    """The cases in which a prompt block is part of the prompt (decision 28, docs/decisions/28-prompt-blocks-by-case.md); every given
    condition must hold."""

    mode: Mode | None = None
    intent: tuple[str, ...] | None = None

    _removed = removed_fields(policy=None)


class PromptFile(StrictModel):
    """One prompt file of a recipe, always or in stated cases."""

    path: PromptPath
    when: PromptWhen | None = None


class QualityGates(StrictModel):
    """The gates that judge each answer of the recipe (specification 000, section 14). Absent thresholds are not checked."""

    schema_validation: bool = True
    confidence_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    evidence_required: bool = False
    max_retries: Annotated[int, Field(ge=0, le=10, strict=True)] = 2
    timeout_ms: Annotated[int, Field(gt=0, le=3_600_000, strict=True)] = 30_000


class CompressionSettings(StrictModel):
    """Compression of inputs when the call's input exceeds its budget (specification 000, section 10.1)."""

    enabled: bool = True
    preserve: Annotated[
        tuple[str, ...],
        Field(
            description="Inputs that are never compressed: section_<n> of context.md, or documents by name. With cited_passages, "
            "context.md keeps section 5 whole and as many verbatim passages as fit, those that section 5 cites first."
        ),
    ] = ("section_0",)
    mode: Annotated[
        Literal["select", "rewrite"],
        Field(
            description="How a compression recipe shortens: the model chooses units (`keep` in its answer), or writes a shorter text.",
            exclude_if=lambda mode: mode == "select",
        ),
    ] = "select"
    _removed = removed_fields(model_layer="NERVES")

    @field_validator("preserve", mode="before")
    @classmethod
    def _drop_tool_errors(cls, value: object) -> object:
        """Every compression keeps errors, which are facts: naming them (specification 000, section 10.1) adds nothing."""
        return [name for name in cast("Sequence[object]", value) if name != "tool_errors"] if isinstance(value, (list, tuple)) else value


class Recipe(StrictModel):
    """One recipe file (specification 000, section 10.1 and 10.2), plus `temperature`, `role`, `risk_level` and `content_type`."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{1,63}$", description="Unique recipe name.")]
    description: Annotated[str, Field(min_length=1, max_length=300)]
    model_layer: ModelLayer
    token_budget: TokenBudget
    system_prompt: Annotated[str, Field(min_length=1)] | None = None
    prompt_files: tuple[PromptFile, ...] = ()
    input_docs: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = ()
    input_sections: tuple[SectionMark, ...] = ()
    input_images: bool = Field(
        False, description="Pictures come with a call; the layer's model must read them (images: true in runtime.yaml)."
    )
    variables: Mapping[str, str] = Field(default_factory=dict)
    output_format: OutputFormat
    output_schema: Mapping[str, Any] | None = None
    quality_gates: QualityGates = QualityGates()
    compression: CompressionSettings = CompressionSettings()
    mode: Mode | None = None
    tools_available: tuple[Annotated[str, Field(pattern=r"^[a-z_]+\.[a-z_]+$")], ...] = ()
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(None, description="Overrides the layer's temperature.")
    role: (
        Annotated[
            str, Field(pattern=r"^[a-z][a-z_]{1,40}$", description="What the call is for, e.g. planner (specification 000, section 5.1).")
        ]
        | None
    ) = None
    risk_level: Annotated[
        Literal["low", "high"],
        Field(
            description="What a wrong answer can do (specification 000, section 5.1). high: a tool call of this recipe that writes waits "
            "until the user approves it. low: it runs at once."
        ),
    ] = "low"
    content_type: ContentType | None = Field(None, description="The content type a compression recipe is for.")
    tests: tuple[RecipeTest, ...] = Field((), description="Calls and what their answers must be; not part of the version.")

    @field_validator("prompt_files", mode="before")
    @classmethod
    def _accept_plain_paths(cls, value: object) -> object:
        if isinstance(value, (list, tuple)):
            return tuple({"path": item} if isinstance(item, str) else item for item in cast("Sequence[object]", value))
        return value

    @field_validator("risk_level", mode="before")
    @classmethod
    def _accept_medium(cls, value: object) -> object:
        """Recipes of earlier versions may say medium, which no gate read: it acts as low does."""
        return "low" if value == "medium" else value

    @model_validator(mode="after")
    def _require_prompt_and_input(self) -> "Recipe":
        if (self.system_prompt is None) == (not self.prompt_files):
            raise ValueError("expected exactly one of system_prompt and prompt_files")
        if not self.input_docs and not self.input_sections and not self.input_images:
            raise ValueError("expected input_docs, input_sections or input_images")
        return self


class PromptFrames(StrictModel):
    """The texts that every call has around its parts, from `prompts/frames/`."""

    answer_format: str
    """How to answer in the recipe's output format."""
    answer_shape: str
    """Precedes the output schema, `{{shape}}`."""
    retry: str
    """What a retry says about the last answer, with its fault `{{error}}`."""
    retry_short: str
    """The same without the fault, where that does not fit the budget."""
    answer_cue: str
    """The end of a plain-text prompt: without it a base model would write another document or query."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts, in order, as versions hash them."""
        return tuple(self.model_dump().values())


class LoadedRecipe(StrictModel):
    """A recipe with its prompt texts, ready to run. `version` = hash of recipe + prompts + schema (12 hex digits)."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    recipe: Recipe
    path: str
    """`{category}/{name}` as `load_recipe` takes it, or the file's path where it is outside `recipes/`."""
    version: str
    prompt_version: str
    """Hash of the prompt texts alone, 12 hex digits."""
    prompts: tuple[tuple[PromptFile, str], ...]
    """Prompt files in order with their texts; a `system_prompt` is one entry without condition."""
    policy: str
    """The shared policy text that precedes every role prompt."""
    frames: PromptFrames
    assigned: ModelLayer | None = None
    """Replaces the recipe's own layer, apart from the text: the version is unchanged (specification 000, section 28)."""

    @property
    def layer(self) -> ModelLayer:
        """The layer that answers."""
        return self.assigned or self.recipe.model_layer

    @property
    def name(self) -> str:
        return self.recipe.name
