"""A JSON Schema -> one that SGLang's grammar can hold. Only ever loosens: the full schema is checked on our side.

Measured on SGLang 0.5.23 with xgrammar: `uniqueItems` and `multipleOf` are refused with 400; `minLength`, `maxLength`
and `pattern` let raw control characters through and forbid escapes; an `allOf` of several branches is ignored silently.
`$ref`, `anyOf`, `oneOf`, `enum`, `const`, formats and numeric bounds hold.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.images import ImagePart
from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.documents.model_output.schema_notation import resolve_reference
from pandora_dagster.errors import ModelRejectedError
from pandora_dagster.runtime.sglang.endpoints import Endpoint

Schema = Mapping[str, object]

_DROPPED = (
    frozenset({"minLength", "maxLength", "pattern", "uniqueItems", "multipleOf"})
    | {"contains", "minContains", "maxContains", "minProperties", "maxProperties", "patternProperties", "propertyNames"}
    | {"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"}
    | {"unevaluatedProperties", "unevaluatedItems"}
    | {"$schema", "$id", "$comment", "examples", "default"}
)
_NAMED = frozenset({"properties", "$defs", "definitions"})
"""Keywords whose keys are names, not keywords: a property may be called `pattern`."""
_ONE = frozenset({"items", "additionalProperties"})
_MANY = frozenset({"anyOf", "oneOf", "prefixItems"})
_NOTES = frozenset({"title", "description"})
_HIGHER = frozenset({"minimum", "exclusiveMinimum", "minItems"})
_LOWER = frozenset({"maximum", "exclusiveMaximum", "maxItems"})


def schema_for_grammar(schema: Schema) -> dict[str, object]:
    """`schema` as it can be sent; whatever fits `schema` fits the result."""
    return _safe(schema, schema, frozenset())


def _safe(schema: Schema, root: Schema, within: frozenset[str]) -> dict[str, object]:
    """`within`: references that are being merged into this place; met again, they would never end."""
    merged, within = _without_all_of(schema, root, within)
    found = {word: _keyword(word, value, root, within) for word, value in merged.items() if word not in _DROPPED}
    if "patternProperties" in merged:
        found["additionalProperties"] = True  # else what the patterns allowed would be forbidden now
    if "oneOf" in found:
        branches = found.pop("oneOf")  # loosened branches may overlap, and oneOf refuses what fits two
        found.setdefault("anyOf", branches)
    if _is_unresolvable(found.get("$ref")):
        del found["$ref"]
    return found


def _is_unresolvable(reference: object) -> bool:
    """Whether a reference points into a place that is not sent."""
    return isinstance(reference, str) and not {"allOf", "oneOf", *_DROPPED}.isdisjoint(reference.split("/"))


def _keyword(word: str, value: object, root: Schema, within: frozenset[str]) -> object:
    if word in _NAMED and isinstance(value, Mapping):
        return {name: _inner(part, root, within) for name, part in cast("Schema", value).items()}
    if word in _ONE:
        return _inner(value, root, within)
    if word in _MANY and isinstance(value, Sequence):
        return [_inner(part, root, within) for part in cast("Sequence[object]", value)]
    return value


def _inner(part: object, root: Schema, within: frozenset[str]) -> object:
    return _safe(cast("Schema", part), root, within) if isinstance(part, Mapping) else part


def _without_all_of(schema: Schema, root: Schema, within: frozenset[str]) -> tuple[dict[str, object], frozenset[str]]:
    """The branches of `allOf` merged into their parent as far as they can be, and the references followed for it."""
    merged = {word: value for word, value in schema.items() if word != "allOf"}
    branches = _branches(schema)
    if len(branches) == 1 and set(merged) <= _NOTES:
        return _without_all_of({**merged, **branches[0]}, root, within)
    for branch in branches:
        flat, within = _resolved(branch, root, within)
        merged = _merge(merged, flat)
    return merged, within


def _branches(schema: Schema) -> list[Schema]:
    branches = schema.get("allOf")
    listed = cast("Sequence[object]", branches) if isinstance(branches, Sequence) else ()
    return [cast("Schema", branch) for branch in listed if isinstance(branch, Mapping)]


def _resolved(branch: Schema, root: Schema, within: frozenset[str]) -> tuple[dict[str, object], frozenset[str]]:
    """A branch with its own `allOf` merged and its `$ref` followed; one that leads back or nowhere asks for nothing."""
    flat, within = _without_all_of(branch, root, within)
    reference = flat.pop("$ref", None)
    if not isinstance(reference, str):
        return flat, within
    target = resolve_reference(root, reference) if reference.startswith("#/") and reference not in within else None
    if not isinstance(target, Mapping):
        return flat, within
    there, within = _resolved(cast("Schema", target), root, within | {reference})
    return _merge(there, flat), within


_CONFLICT = object()


def _merge(first: Schema, second: Schema) -> dict[str, object]:
    """What both ask for, as one schema; a keyword on which they differ beyond `_both` is dropped."""
    shared = [word for word in first if word in second]
    both = {word: first[word] if first[word] == second[word] else _both(word, first[word], second[word]) for word in shared}
    merged = {word: value for word, value in {**first, **second, **both}.items() if value is not _CONFLICT}
    if ("additionalProperties" in first) != ("additionalProperties" in second) and "properties" in both:
        del merged["additionalProperties"]  # it spoke of one side's properties only
    return merged


def _both(word: str, one: object, other: object) -> object:
    if word == "required" and isinstance(one, Sequence) and isinstance(other, Sequence):
        return list(dict.fromkeys([*cast("Sequence[str]", one), *cast("Sequence[str]", other)]))
    if word in _NAMED and isinstance(one, Mapping) and isinstance(other, Mapping):
        return _both_named(cast("Schema", one), cast("Schema", other))
    if word in _HIGHER | _LOWER and isinstance(one, int | float) and isinstance(other, int | float):
        bounds = (cast("float", one), cast("float", other))
        return max(bounds) if word in _HIGHER else min(bounds)
    if word == "type" and (one, other) in (("integer", "number"), ("number", "integer")):
        return "integer"
    return _CONFLICT


def _both_named(one: Schema, other: Schema) -> dict[str, object]:
    """Both sides' names; a name on both sides must fit both, as an `allOf` that is merged when its turn comes."""
    shared = {name: {"allOf": [one[name], other[name]]} for name in one if name in other and one[name] != other[name]}
    return {**one, **other, **shared}


# A prompt pack -> the body of one request. Knows SGLang's fields; knows no socket.

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionContentPartParam, ChatCompletionMessageParam

_CUE = "Answer:\n"
"""A base model goes on with what it reads: without the cue it would write another document or query."""
_STOPS = ("\n<document", "\n<query>", "\n<variables>", "\n<feedback>")
"""Where a base model has ended its answer and goes on with the input's frames; quoted text holds none of them."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `extra` holds what is SGLang's own or has no counterpart on both of its endpoints."""

    chat: bool
    model: str
    system: str
    user: str
    temperature: float
    max_tokens: int
    extra: Mapping[str, object]
    images: tuple[ImagePart, ...] = ()

    @property
    def rid(self) -> str:
        """Our own id of the request."""
        return str(self.extra["rid"])

    @property
    def messages(self) -> "list[ChatCompletionMessageParam]":
        """The two messages, the shared prefix first; no empty system message."""
        messages: list[ChatCompletionMessageParam] = [{"role": "system", "content": self.system}] if self.system else []
        return [*messages, {"role": "user", "content": self._user_content if self.images else self.user}]

    @property
    def _user_content(self) -> "list[ChatCompletionContentPartParam]":
        """The text, then each image as a data URL."""
        urls = (f"data:{image.media_type};base64,{b64encode(image.data).decode()}" for image in self.images)
        return [{"type": "text", "text": self.user}, *({"type": "image_url", "image_url": {"url": url}} for url in urls)]

    @property
    def prompt(self) -> str:
        """The plain text for a model without chat template (DECISIONS 26); it ends where the answer begins."""
        return "\n\n".join(text for text in (self.system, self.user, _CUE) if text)


def completion_request(pack: PromptPack, endpoint: Endpoint, *, attempt: int, streamed: bool = False) -> Request:
    """What `pack` sends to `endpoint`; `attempt` numbers the requests of one process. A streamed answer counts its tokens at its end.

    Raises ModelRejectedError for images where the endpoint's model does not read them.
    """
    server = endpoint.server
    require_image_support(pack, endpoint)
    return Request(
        chat=server.chat,
        model=server.model,
        system=pack.system,
        user=pack.user,
        temperature=endpoint.temperature if pack.temperature is None else pack.temperature,
        max_tokens=pack.max_output_tokens,
        extra={
            "rid": request_id(pack.call_id, attempt),
            **_format(pack),
            **_thinking(pack, endpoint),
            **_thinking_budget(pack, endpoint),
            **_stops(endpoint),
            **({"priority": pack.priority.value} if server.priorities else {}),
            **({"stream": True, "stream_options": {"include_usage": True}} if streamed else {}),
        },
        images=pack.images,
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
    """What `/v1/tokenize` is asked: the same messages under the same template, or the same text, as `request_for` sends."""
    request = completion_request(replace(pack, images=()), endpoint, attempt=0)
    if not request.chat:
        return {"model": request.model, "prompt": request.prompt}
    return {"model": request.model, "messages": request.messages, **_thinking(pack, endpoint)}


def request_id(call_id: str, attempt: int) -> str:
    """An id of which no other id is a prefix: SGLang aborts waiting requests by prefix.

    A timed-out request lives on for seconds on the server, so a call's next attempt needs an id of its own.
    """
    return f"{call_id.replace('/', '_')}/{attempt}/"


def _format(pack: PromptPack) -> dict[str, object]:
    if pack.output_format is not OutputFormat.JSON:
        return {}
    if pack.output_schema is None:
        return {"response_format": {"type": "json_object"}}
    schema = {"name": pack.recipe.rpartition("/")[2], "schema": schema_for_grammar(pack.output_schema), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _stops(endpoint: Endpoint) -> dict[str, object]:
    return {} if endpoint.server.chat else {"stop": list(_STOPS)}


def _thinking(pack: PromptPack, endpoint: Endpoint) -> dict[str, object]:
    """The arguments of the chat template; a base model has none."""
    return {"chat_template_kwargs": {"enable_thinking": _is_thinking(pack, endpoint)}} if endpoint.server.chat else {}


def _thinking_budget(pack: PromptPack, endpoint: Endpoint) -> dict[str, object]:
    """The cap that SGLang's grammar holds under --enable-strict-thinking; without that switch it is passed over in silence."""
    if not pack.thinking_tokens or not _is_thinking(pack, endpoint):
        return {}
    return {"custom_params": {"thinking_budget": pack.thinking_tokens}}


def _is_thinking(pack: PromptPack, endpoint: Endpoint) -> bool:
    """Without a budget a thinking model can spend all its tokens before the first character of JSON."""
    capped = pack.thinking_tokens > 0 or pack.output_format is not OutputFormat.JSON
    return endpoint.server.chat and endpoint.thinking and capped
