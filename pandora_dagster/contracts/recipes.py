"""A recipe: how one kind of model call runs (000 section 10). Checks itself; reads no file."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pandora_dagster.contracts.recipe_tests import RecipeTest
from pandora_dagster.contracts.words import ContentType, Mode, ModelLayer, OutputFormat

_STRICT = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=False)
Tokens = Annotated[int, Field(ge=0, le=1_000_000, strict=True)]
SectionMark = Annotated[str, Field(pattern=r"^§[0-6]$")]
PromptPath = Annotated[str, Field(pattern=r"^prompts/([a-z0-9_]+/)+[a-z0-9_]+\.md$")]


TAGGED_SCHEMA_FAULT = "expected none, a tagged answer has the shape of its tags"


class TokenBudget(BaseModel):
    """Tokens of one call: `prompt + input + output + response_reserve <= total` (000 section 11.1)."""

    model_config = _STRICT
    total: Annotated[int, Field(gt=0, le=1_000_000, strict=True, description="Hard limit for the whole call.")]
    prompt: Annotated[Tokens, Field(description="What stands first: role prompt, policy, IO schema.")]
    input: Annotated[Tokens, Field(description="Documents, sections, variables and the original query.")]
    output: Annotated[int, Field(gt=0, le=1_000_000, strict=True, description="What the model may write.")]
    response_reserve: Annotated[Tokens, Field(description="Kept free for the response's overhead; absent = 0.")] = 0
    thinking: Annotated[
        Tokens,
        Field(
            description="Of `output`: what the model may spend on thinking before it answers, where its layer may think.",
            exclude_if=lambda tokens: tokens == 0,
        ),
    ] = 0

    @model_validator(mode="after")
    def _parts_fit(self) -> "TokenBudget":
        parts = self.prompt + self.input + self.output + self.response_reserve
        if parts > self.total:
            raise ValueError(f"{self.prompt} + {self.input} + {self.output} + {self.response_reserve} = {parts} is over total {self.total}")
        if self.thinking >= self.output:
            raise ValueError(f"thinking {self.thinking} of output {self.output}: expected less, so that an answer fits")
        return self


class PromptWhen(BaseModel):
    """The cases in which a prompt block is part of the prompt (DECISIONS 28); every given condition must hold."""

    model_config = _STRICT
    mode: Mode | None = None
    intent: tuple[str, ...] | None = None
    policy: tuple[str, ...] | None = None


class PromptFile(BaseModel):
    """One prompt file of a recipe, always or in stated cases."""

    model_config = _STRICT
    path: PromptPath
    when: PromptWhen | None = None


class QualityGates(BaseModel):
    """000 section 14. Absent thresholds are not checked."""

    model_config = _STRICT
    schema_validation: bool = True
    confidence_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    evidence_required: bool = False
    max_retries: Annotated[int, Field(ge=0, le=10, strict=True)] = 2
    timeout_ms: Annotated[int, Field(gt=0, le=3_600_000, strict=True)] = 30_000


class CompressionSettings(BaseModel):
    """What may be compressed when the call's input is over its budget (000 section 10.1)."""

    model_config = _STRICT
    enabled: bool = True
    model_layer: Literal[ModelLayer.NERVES] = ModelLayer.NERVES
    preserve: tuple[str, ...] = ("section_0", "tool_errors")


class Recipe(BaseModel):
    """One recipe file (000 section 10.1 and 10.2), plus `temperature`, `role`, `risk_level` and `content_type`."""

    model_config = _STRICT
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{1,63}$", description="Unique recipe name.")]
    description: Annotated[str, Field(min_length=1, max_length=300)]
    model_layer: ModelLayer
    token_budget: TokenBudget
    system_prompt: Annotated[str, Field(min_length=1)] | None = None
    prompt_files: tuple[PromptFile, ...] = ()
    input_docs: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = ()
    input_sections: tuple[SectionMark, ...] = ()
    variables: Mapping[str, str] = Field(default_factory=dict)
    output_format: OutputFormat
    output_schema: Mapping[str, Any] | None = None
    quality_gates: QualityGates = QualityGates()
    compression: CompressionSettings = CompressionSettings()
    mode: Mode | None = None
    tools_available: tuple[Annotated[str, Field(pattern=r"^[a-z_]+\.[a-z_]+$")], ...] = ()
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(None, description="Overrides the layer's temperature.")
    role: (
        Annotated[str, Field(pattern=r"^[a-z][a-z_]{1,40}$", description="What the call is for, e.g. planner (000 section 5.1).")] | None
    ) = None
    risk_level: Literal["low", "medium", "high"] = "low"
    content_type: ContentType | None = Field(None, description="The content type a compression recipe is for.")
    tests: tuple[RecipeTest, ...] = Field((), description="Calls and what their answers must be; not part of the version.")

    @field_validator("prompt_files", mode="before")
    @classmethod
    def _plain_paths(cls, value: object) -> object:
        if isinstance(value, (list, tuple)):
            return tuple({"path": item} if isinstance(item, str) else item for item in cast("Sequence[object]", value))
        return value

    @model_validator(mode="after")
    def _one_prompt(self) -> "Recipe":
        if (self.system_prompt is None) == (not self.prompt_files):
            raise ValueError("expected exactly one of system_prompt and prompt_files")
        if self.output_format is OutputFormat.TAGGED and self.output_schema is not None:
            raise ValueError(TAGGED_SCHEMA_FAULT)
        if not self.input_docs and not self.input_sections:
            raise ValueError("expected input_docs or input_sections")
        return self


class LoadedRecipe(BaseModel):
    """A recipe with its prompt texts, ready to run. `version` = hash of recipe + prompts + schema (12 hex digits)."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    recipe: Recipe
    path: str
    """`{category}/{name}` as `load_recipe` takes it, or the file's path where it lies outside `recipes/`."""
    version: str
    prompt_version: str
    """Hash of the prompt texts alone, 12 hex digits."""
    prompts: tuple[tuple[PromptFile, str], ...]
    """Prompt files in order with their texts; a `system_prompt` is one entry without condition."""
    policy: str
    """The shared policy text that stands before every role prompt."""
    assigned: ModelLayer | None = None
    """Takes the place of the recipe's own layer, apart from the text: the version stays (000 section 28)."""

    @property
    def layer(self) -> ModelLayer:
        """The layer that answers."""
        return self.assigned or self.recipe.model_layer

    @property
    def name(self) -> str:
        return self.recipe.name
