"""The recorded inputs of a call: a request as a case to store, and a stored case as a request to replay."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from pandora_dagster.contracts.enums import Mode, ModelLayer
from pandora_dagster.contracts.model_calls import CallRequest, CallSite, InputDocument
from pandora_dagster.contracts.recipe_schema import CallCase, CallInput, CaseDocument
from pandora_dagster.documents.redaction.credentials import holds_secret, redact


def recorded_case(request: CallRequest) -> CallCase:
    """Everything of a request that its answer depends on, documents whole."""
    return CallCase(
        query=request.query,
        mode=Mode(request.mode),
        intent=request.intent,
        ambiguous=request.ambiguous,
        documents={d.name: CaseDocument(text=d.text, items=d.items, header=d.header) for d in request.documents},
        variables=dict(request.variables),
        sources=request.sources,
        phase=request.site.phase,
        images=tuple(replace(i, data=b"") for i in request.images if i.reference),
    )


def recorded_case_text(request: CallRequest) -> str:
    """The case as JSON with the credentials in its texts redacted, each text by itself, so that the JSON stays valid."""
    text = recorded_case(request).model_dump_json(exclude_defaults=True)
    if not holds_secret(text):
        return text
    cleaned = _redact(recorded_case(request).model_dump(mode="json", exclude_defaults=True))
    return CallCase.model_validate(cleaned).model_dump_json(exclude_defaults=True)


def replay_request(case: CallInput, recipe: str, *, user: str, session: str = "", layer: ModelLayer | None = None) -> CallRequest:
    """The request of recipe `{category}/{name}` that a case describes; a low confidence is returned as a verdict and does not halt."""
    return CallRequest(
        recipe=recipe,
        query=case.query,
        site=CallSite(case.phase, user, session),
        documents=tuple(InputDocument(name, d.text, d.items, d.header) for name, d in case.documents.items()),
        variables=case.variables,
        sources=case.sources,
        intent=case.intent,
        mode=case.mode.value,
        ambiguous=case.ambiguous,
        layer=layer,
        images=case.images if isinstance(case, CallCase) else (),
    )


def _redact(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {name: _redact(child) for name, child in cast("Mapping[str, Any]", value).items()}
    return [_redact(child) for child in cast("list[Any]", value)] if isinstance(value, list) else value
