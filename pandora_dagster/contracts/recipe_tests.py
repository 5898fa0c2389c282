"""What a recipe is tried with: the inputs of one call, and what its answer must be. Shapes only; running them is elsewhere."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pandora_dagster.contracts.words import Mode

_STRICT_TEST = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=False)
_FIELD = re.compile(r"(?:[A-Za-z_]\w*|\[\d+\])(?:\.[A-Za-z_]\w*|\[\d+\])*")
Text = Annotated[str, Field(min_length=1)]


class CaseItem(BaseModel):
    """One choosable piece of a document (`contracts.calls.Item`)."""

    model_config = _STRICT_TEST
    text: str
    priority: float = 0.0
    name: str = ""


class CaseDocument(BaseModel):
    """A document of a call: its text whole, or items of which as many travel as there is room for."""

    model_config = _STRICT_TEST
    text: str = ""
    items: tuple[CaseItem, ...] = ()
    header: str = ""


class CaseSource(BaseModel):
    """What a citation leads to."""

    model_config = _STRICT_TEST
    label: str
    path: str
    description: str = ""
    turn_id: str | None = None


class CallCase(BaseModel):
    """The inputs of one call, apart from who made it: enough to make it again on any version of its recipe."""

    model_config = _STRICT_TEST
    query: str = ""
    """The words of the person; none where a compression's are too long to go along."""
    mode: Mode = Mode.CHAT
    intent: str = ""
    policy: str = "assistant"
    ambiguous: bool = False
    documents: Mapping[str, CaseDocument] = Field(default_factory=dict)
    """By the name under which recipes read them; a plain text stands for a document that travels whole."""
    variables: Mapping[str, str] = Field(default_factory=dict)
    sources: tuple[CaseSource, ...] = ()
    phase: str = ""

    @field_validator("documents", mode="before")
    @classmethod
    def _plain_texts(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        given: Mapping[Any, Any] = value  # pyright: ignore[reportUnknownVariableType] - what a file holds
        return {name: {"text": one} if isinstance(one, str) else one for name, one in given.items()}


class Expectation(BaseModel):
    """One assertion on a parsed answer: exactly one word beside `field`."""

    model_config = _STRICT_TEST
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
    def _a_place(cls, value: str) -> str:
        if value and not _FIELD.fullmatch(value):
            raise ValueError(f"{value}: expected a place such as decision or tasks[0].tool")
        return value

    @field_validator("matches")
    @classmethod
    def _an_expression(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"{value}: {error}: expected a regular expression") from error
        return value

    @model_validator(mode="after")
    def _one_assertion(self) -> "Expectation":
        given = self.model_fields_set - {"field"}
        if len(given) != 1:
            raise ValueError(f"{', '.join(sorted(given)) or 'none'} given: expected exactly one of {', '.join(ASSERTIONS)}")
        return self

    @property
    def word(self) -> str:
        """The assertion that was made."""
        return next(iter(self.model_fields_set - {"field"}))


ASSERTIONS = tuple(name for name in Expectation.model_fields if name != "field")


class RecipeTest(CallCase):
    """A call and what its answer must be: it passes its recipe's gates, the expectations hold, the facts are there."""

    name: Annotated[str, Field(min_length=1, max_length=120, description="What it shows, in words.")]
    answer_schema: Mapping[str, Any] | None = Field(None, description="JSON Schema that the parsed answer has beside the recipe's own.")
    expect: tuple[Expectation, ...] = ()
    facts: Annotated[tuple[Text, ...], Field(description="Texts of the input that the answer must still say.")] = ()

    @model_validator(mode="after")
    def _says_something(self) -> "RecipeTest":
        if not self.expect and not self.facts and self.answer_schema is None:
            raise ValueError("nothing is expected: expected expect, facts or answer_schema")
        return self
