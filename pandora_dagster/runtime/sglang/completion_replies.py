"""The body of a response -> text and usage, or the error it amounts to. Knows SGLang's answers; knows no socket."""

from dataclasses import dataclass

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from pandora_dagster.contracts.model_calls import Usage
from pandora_dagster.errors import BadAnswerError, ModelError, RuntimeUnreachableError
from pandora_dagster.runtime.sglang.endpoints import Endpoint


class WireModel(BaseModel):
    """A part of a server's answer; fields that are not read are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Message(WireModel):
    content: str | None = None
    reasoning_content: str | None = None


class Choice(WireModel):
    """An answer, or in a stream a piece of one (`delta`)."""

    finish_reason: str | None = None
    message: _Message | None = Field(None, validation_alias=AliasChoices("message", "delta"))
    text: str | None = None

    @property
    def words(self) -> str:
        """The text of the answer, from a chat or from a plain completion."""
        return (self.message.content if self.message else self.text) or ""

    @property
    def is_thought(self) -> bool:
        """Whether it has thoughts of the model."""
        return bool(self.message and self.message.reasoning_content)


class Completion(WireModel):
    """A whole answer in OpenAI's form."""

    choices: tuple[Choice, ...] = Field(min_length=1)
    usage: object = None


class _CachedTokens(WireModel):
    cached_tokens: int | None = Field(None, ge=0)


class WireUsage(WireModel):
    """Token counts of one answer."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(0, ge=0)
    prompt_tokens_details: _CachedTokens | None = None


class _TokenCount(WireModel):
    count: int = Field(ge=0)


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. `usage` is None where the server did not count."""

    text: str
    finish_reason: str
    usage: Usage | None


def parse_reply(body: bytes, endpoint: Endpoint) -> Reply:
    """The answer in `body`.

    Raises BadAnswerError for one that is cut, empty or ended for an unknown reason, RuntimeUnreachableError where the
    server aborted it or where it is no completion at all.
    """
    try:
        completion = Completion.model_validate_json(body)
    except ValidationError:
        raise RuntimeUnreachableError(
            f"{endpoint}: {len(body)} bytes that are no completion: expected an answer in OpenAI's form",
            hint="Check that base_url in runtime.yaml names an SGLang server.",
        ) from None
    choice = completion.choices[0]
    return complete_reply(choice.words, choice.finish_reason, thought=choice.is_thought, usage=completion.usage, endpoint=endpoint)


def parse_token_count(body: bytes) -> int | None:
    """The count that `/v1/tokenize` gives, None where the body holds none."""
    try:
        return _TokenCount.model_validate_json(body).count
    except ValidationError:
        return None


def complete_reply(text: str, reason: str | None, *, thought: bool, usage: object, endpoint: Endpoint) -> Reply:
    """An answer that came to its end, in one body or in pieces; raises as `reply_in` does, with the tokens that it took all the same."""
    counted = _usage(usage)
    if fault := _fault(text, reason, thought=thought, endpoint=endpoint):
        if counted:
            fault.tokens = (counted.prompt, counted.output, counted.cached)
        raise fault
    return Reply(text, reason or "", counted)


def _fault(text: str, reason: str | None, *, thought: bool, endpoint: Endpoint) -> ModelError | None:
    """What is wrong with an answer as such."""
    if reason == "abort":
        return RuntimeUnreachableError(
            f"{endpoint}: the server aborted the request: expected it to finish",
            hint="Look into the server's log; its running time-out may be too short.",
        )
    if reason == "length":
        return BadAnswerError(
            f"{endpoint}: the answer was cut after {len(text)} characters: expected it to end within the recipe's output budget",
            hint="Raise token_budget.output in the recipe if this happens often.",
        )
    if reason != "stop":
        return BadAnswerError(
            f"{endpoint}: the answer ended with finish_reason {str(reason)[:40]!r}: expected 'stop'",
            hint="Check that base_url in runtime.yaml names an SGLang server, and its version.",
        )
    if not text.strip():
        return BadAnswerError(
            f"{endpoint}: {'only thoughts and no answer' if thought else 'an empty answer'}: expected text",
            hint=f"Set {'thinking: false' if thought else 'chat: as the model has a template or none'} for this layer in runtime.yaml.",
        )
    return None


def _usage(wire: object) -> Usage | None:
    try:
        counted = WireUsage.model_validate(wire)
    except ValidationError:
        return None
    details = counted.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details else 0
    return Usage(prompt=counted.prompt_tokens, output=counted.completion_tokens, cached=cached)
