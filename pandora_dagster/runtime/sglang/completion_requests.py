"""Builds the request of one model call: messages or plain text, sampling, answer format, and the fields that only SGLang has."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.images import ImagePart
from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.errors import ModelRejectedError
from pandora_dagster.runtime.sglang.endpoints import Endpoint
from pandora_dagster.runtime.sglang.grammar_schema import schema_for_grammar

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionContentPartParam, ChatCompletionMessageParam

_STOP_STRINGS = ("\n<document", "\n<query>", "\n<variables>", "\n<feedback>")
"""Opening tags of the prompt's blocks, with which a base model continues after its answer; quoted text contains none of them."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request, a chat completion or a plain one. `fields`: sampling, answer format, and what only some servers know."""

    chat: bool
    model: str
    system: str
    user: str
    fields: Mapping[str, object]
    images: tuple[ImagePart, ...] = ()
    answer_cue: str = ""

    @property
    def rid(self) -> str:
        """The request id, which an abort names; "" where the server takes none."""
        return str(self.fields.get("rid", ""))

    @property
    def messages(self) -> "list[ChatCompletionMessageParam]":
        """The system message, whose text calls share, then the user message; no empty system message."""
        messages: list[ChatCompletionMessageParam] = [{"role": "system", "content": self.system}] if self.system else []
        return [*messages, {"role": "user", "content": self._user_content if self.images else self.user}]

    @property
    def _user_content(self) -> "list[ChatCompletionContentPartParam]":
        """The text, then each image as a data URL."""
        urls = (f"data:{image.media_type};base64,{b64encode(image.data).decode()}" for image in self.images)
        return [{"type": "text", "text": self.user}, *({"type": "image_url", "image_url": {"url": url}} for url in urls)]

    @property
    def prompt(self) -> str:
        """The plain text for a model without a chat template (decision 26); it ends where the answer begins."""
        return "\n\n".join(text for text in (self.system, self.user, self.answer_cue and f"{self.answer_cue}\n") if text)


def completion_request(
    pack: PromptPack, endpoint: Endpoint, *, attempt: int, streamed: bool = False, has_sglang_fields: bool = True
) -> Request:
    """The request for `pack` at `endpoint`; `attempt`: its number in this process. A streamed answer has its token counts at its end.

    Raises ModelRejectedError for images where the endpoint's model does not read them.
    """
    server = endpoint.server
    require_image_support(pack, endpoint)
    return Request(
        chat=server.chat,
        model=server.model,
        system=pack.system,
        user=pack.user,
        fields={
            "temperature": endpoint.temperature if pack.temperature is None else pack.temperature,
            "max_tokens": pack.max_output_tokens,
            **_response_format(pack),
            **_template_arguments(endpoint),
            **_stop_strings(endpoint),
            **(_sglang_fields(pack, endpoint, attempt) if has_sglang_fields else _no_thinking_effort(endpoint)),
            **({"stream": True, "stream_options": {"include_usage": True}} if streamed else {}),
        },
        images=pack.images,
        answer_cue=pack.answer_cue,
    )


def require_image_support(pack: PromptPack, endpoint: Endpoint) -> None:
    """Raises ModelRejectedError for a pack with images where the endpoint's model reads text only."""
    if not pack.images or (endpoint.server.chat and endpoint.server.images):
        return
    raise ModelRejectedError(
        f"{endpoint}: {pack.recipe}: {len(pack.images)} images: expected a pack of text",
        hint="Give the recipe a layer whose server in runtime.yaml has a chat template and a model that reads images (images: true).",
    )


def tokenize_request(pack: PromptPack, endpoint: Endpoint) -> Mapping[str, object]:
    """The body for a tokenizing endpoint: the messages and template arguments, or the text, of `completion_request`, without images.

    `content` is what llama.cpp's server reads; the others ignore it.
    """
    request = completion_request(replace(pack, images=()), endpoint, attempt=0)
    if not request.chat:
        return {"model": request.model, "prompt": request.prompt}
    template = _template_arguments(endpoint)
    return {"model": request.model, "messages": request.messages, "content": f"{request.system}\n\n{request.user}", **template}


def request_id(call_id: str, attempt: int) -> str:
    """An id for one attempt of a call, such as `call_1/3/`, which is no prefix of another id: SGLang aborts waiting requests by prefix.

    A request that timed out stays on the server for seconds, so the next attempt needs another id.
    """
    return f"{call_id.replace('/', '_')}/{attempt}/"


def _response_format(pack: PromptPack) -> dict[str, object]:
    if pack.output_format is not OutputFormat.JSON:
        return {}
    if pack.output_schema is None:
        return {"response_format": {"type": "json_object"}}
    schema = {"name": pack.recipe.rpartition("/")[2], "schema": schema_for_grammar(pack.output_schema), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _sglang_fields(pack: PromptPack, endpoint: Endpoint, attempt: int) -> dict[str, object]:
    """The fields that only SGLang has."""
    priority = {"priority": pack.priority.value} if endpoint.server.priorities else {}
    return {"rid": request_id(pack.call_id, attempt), **priority}


def _no_thinking_effort(endpoint: Endpoint) -> dict[str, object]:
    """What keeps a model from thinking on servers that do not pass arguments to its template, such as Ollama."""
    return {"reasoning_effort": "none"} if endpoint.server.chat else {}


def _stop_strings(endpoint: Endpoint) -> dict[str, object]:
    return {} if endpoint.server.chat else {"stop": list(_STOP_STRINGS)}


def _template_arguments(endpoint: Endpoint) -> dict[str, object]:
    """The arguments of the chat template, which keep a model from thinking; a base model has no template."""
    return {"chat_template_kwargs": {"enable_thinking": False}} if endpoint.server.chat else {}
