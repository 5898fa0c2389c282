"""Reads the body of a response: the answer's text and token counts, or the error that it amounts to."""

from dataclasses import dataclass

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from pandora_dagster.contracts.model_calls import Usage
from pandora_dagster.errors import BadAnswerError, ModelError, RuntimeUnreachableError
from pandora_dagster.execution.fit.call_budget import TEMPLATE_TOKENS
from pandora_dagster.runtime.sglang.endpoints import Endpoint


class WireModel(BaseModel):
    """A part of a response; fields that are not read are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Message(WireModel):
    content: str | None = None
    reasoning_content: str | None = Field(None, validation_alias=AliasChoices("reasoning_content", "reasoning"))


class Choice(WireModel):
    """An answer (`message` or `text`), or in a stream a piece of one (`delta` or `text`)."""

    finish_reason: str | None = None
    message: _Message | None = Field(None, validation_alias=AliasChoices("message", "delta"))
    text: str | None = None

    @property
    def content(self) -> str:
        """The text of the answer, from a chat or from a plain completion."""
        return (self.message.content if self.message else self.text) or ""

    @property
    def has_thoughts(self) -> bool:
        """Whether the server separated thoughts of the model from its answer."""
        return bool(self.message and self.message.reasoning_content)


class Completion(WireModel):
    """A whole response in OpenAI's format."""

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
    """SGLang and vLLM count the prompt with its template, llama.cpp lists the tokens of the text alone."""

    count: int | None = Field(None, ge=0)
    tokens: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. `usage` is None where the server sent no token counts."""

    text: str
    finish_reason: str
    usage: Usage | None


_OPENING, _CLOSING = "<think>", "</think>"


@dataclass(slots=True)
class ThoughtFilter:
    """Passes on the text of one answer, in pieces, without the thoughts at its beginning: not every server separates them."""

    _held: str = ""
    """Text that may turn out to be a thought."""
    _is_answer: bool = False

    def take(self, piece: str) -> str:
        """The part of the answer that is certain after `piece`."""
        if self._is_answer:
            return piece
        self._held += piece
        beginning = self._held.lstrip()
        if beginning.startswith(_OPENING):
            _, closing, answer = beginning.partition(_CLOSING)
            self._is_answer = bool(closing)
            return answer.lstrip() if closing else ""
        if _OPENING.startswith(beginning):
            return ""
        self._is_answer = True
        return self._held

    @property
    def has_thoughts(self) -> bool:
        """Whether thoughts began and did not end."""
        return not self._is_answer and self._held.lstrip().startswith(_OPENING)


def parse_reply(body: bytes, endpoint: Endpoint) -> Reply:
    """The answer in `body`.

    Raises BadAnswerError for an answer that is cut off, empty or ended for an unknown reason, RuntimeUnreachableError for one that the
    server aborted, or for a body that is no completion.
    """
    try:
        completion = Completion.model_validate_json(body)
    except ValidationError:
        raise RuntimeUnreachableError(
            f"{endpoint}: {len(body)} bytes that are no completion: expected an answer in OpenAI's format",
            hint="Check that base_url in runtime.yaml names a model server.",
        ) from None
    choice, thoughts = completion.choices[0], ThoughtFilter()
    text = thoughts.take(choice.content)
    has_thoughts = choice.has_thoughts or thoughts.has_thoughts
    return complete_reply(text, choice.finish_reason, has_thoughts=has_thoughts, usage=completion.usage, endpoint=endpoint)


def parse_token_count(body: bytes) -> int | None:
    """The count that a tokenizing endpoint gives, None where the body holds none."""
    try:
        counted = _TokenCount.model_validate_json(body)
    except ValidationError:
        return None
    return counted.count if counted.count is not None or not counted.tokens else len(counted.tokens) + TEMPLATE_TOKENS


def complete_reply(text: str, reason: str | None, *, has_thoughts: bool, usage: object, endpoint: Endpoint) -> Reply:
    """The reply of an answer that has ended; raises the errors of `parse_reply`, which carry the tokens that the answer took."""
    counts = _usage(usage)
    if fault := _fault(text, reason, has_thoughts=has_thoughts, endpoint=endpoint):
        if counts:
            fault.tokens = (counts.prompt, counts.output, counts.cached)
        raise fault
    return Reply(text, reason or "", counts)


def _fault(text: str, reason: str | None, *, has_thoughts: bool, endpoint: Endpoint) -> ModelError | None:
    """The error of an answer by its finish reason and text; None where it is sound."""
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
            hint="Check that base_url in runtime.yaml names a model server, and its version.",
        )
    if text.strip():
        return None
    if has_thoughts:
        return BadAnswerError(
            f"{endpoint}: only thoughts and no answer: expected text",
            hint="Serve a model whose chat template can turn thinking off (enable_thinking: false).",
        )
    return BadAnswerError(
        f"{endpoint}: an empty answer: expected text",
        hint="Set chat for this layer's server in runtime.yaml: true only for a model with a chat template.",
    )


def _usage(wire: object) -> Usage | None:
    """The token counts of a response; None where it has none."""
    try:
        counts = WireUsage.model_validate(wire)
    except ValidationError:
        return None
    details = counts.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details else 0
    return Usage(prompt=counts.prompt_tokens, output=counts.completion_tokens, cached=cached)
