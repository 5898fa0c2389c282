"""What servers with OpenAI's HTTP API may lack, and what takes its place. Sends nothing.

A server that does not know a field of a request refuses it with status 400 or 422 and names the field. The refusal is remembered for
the process, and the request is sent again without it. A field that a server ignores silently is found by the probes of `openai_runtime`.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from pandora_dagster.errors import ModelRejectedError
from pandora_dagster.runtime.sglang.completion_requests import Request
from pandora_dagster.runtime.sglang.endpoints import Endpoint, Server
from pandora_dagster.runtime.sglang.model_errors import names_context

_log = logging.getLogger(__name__)

Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Feature:
    """A part of a request that a server may not know."""

    name: str
    words: tuple[str, ...]
    """A refusal that contains one of them, in lower case, is about this feature."""
    instead: str
    """What is done instead, as `pandora doctor` shows it."""
    without: Callable[[Fields], Fields]
    """The fields without the feature; unchanged where they do not use it."""


def _drop(name: str) -> Callable[[Fields], Fields]:
    return lambda fields: {key: value for key, value in fields.items() if key != name}


def _without_strict(fields: Fields) -> Fields:
    schema = _response_format(fields).get("json_schema")
    if not isinstance(schema, Mapping):
        return fields
    loose = _drop("strict")(cast("Fields", schema))
    return {**fields, "response_format": {"type": "json_schema", "json_schema": loose}}


def _as_json_object(fields: Fields) -> Fields:
    return {**fields, "response_format": {"type": "json_object"}} if "json_schema" in _response_format(fields) else fields


def _without_json_object(fields: Fields) -> Fields:
    return _drop("response_format")(fields) if _response_format(fields).get("type") == "json_object" else fields


def _response_format(fields: Fields) -> Fields:
    return cast("Fields", fields.get("response_format") or {})


def _renamed_max_tokens(fields: Fields) -> Fields:
    if "max_tokens" not in fields:
        return fields
    return {**_drop("max_tokens")(fields), "max_completion_tokens": fields["max_tokens"]}


_SCHEMA_WORDS = ("response_format", "json_schema", "schema", "grammar")
FEATURES = (
    Feature("strict JSON schema", _SCHEMA_WORDS, "the schema without the guarantee; each answer is validated", _without_strict),
    Feature("JSON schema", _SCHEMA_WORDS, "a JSON object; the prompt has its shape, each answer is validated", _as_json_object),
    Feature("JSON object", ("response_format", "json_object"), "the prompt asks for JSON, each answer is validated", _without_json_object),
    Feature("usage of streams", ("stream_options", "include_usage"), "output tokens are counted here", _drop("stream_options")),
    Feature(
        "thinking off by template",
        ("chat_template_kwargs", "enable_thinking"),
        "thoughts are removed from answers; they take output tokens",
        _drop("chat_template_kwargs"),
    ),
    Feature(
        "thinking off by effort",
        ("reasoning_effort", "reasoning.effort"),
        "thoughts are removed from answers; they take output tokens",
        _drop("reasoning_effort"),
    ),
    Feature("temperature", ("temperature",), "the temperature of the server", _drop("temperature")),
    Feature("max_tokens", ("max_tokens",), "the field max_completion_tokens", _renamed_max_tokens),
)
"""In the order in which a refusal is matched: the strictest use of `response_format` first."""


@dataclass(frozen=True, slots=True)
class RefusedFeatures:
    """The features that servers refused, remembered for the process."""

    _names: dict[Server, frozenset[str]] = field(default_factory=dict[Server, frozenset[str]])

    def of(self, server: Server) -> tuple[Feature, ...]:
        """The features that this server refused, in the order of `FEATURES`."""
        names = self._names.get(server, frozenset())
        return tuple(feature for feature in FEATURES if feature.name in names)

    def adapt(self, server: Server, request: Request) -> Request:
        """The request without what the server refused."""
        fields = request.fields
        for feature in self.of(server):
            fields = feature.without(fields)
        return replace(request, fields=fields)

    def learn(self, endpoint: Endpoint, sent: Request, refusal: ModelRejectedError) -> bool:
        """Remember the feature of `sent` that the refusal names; False where it names none, and the call fails with it."""
        if not refusal.refused_body or names_context(refusal.refused_body):
            return False
        for feature in FEATURES:
            if any(word in refusal.refused_body for word in feature.words) and feature.without(sent.fields) != sent.fields:
                self._names[endpoint.server] = self._names.get(endpoint.server, frozenset()) | {feature.name}
                _log.warning("%s: no %s: %s", endpoint, feature.name, feature.instead)
                return True
        return False
