"""A call's inputs as they are kept, and the call made of them again. Knows both shapes; keeps nothing."""

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
        policy=request.policy,
        ambiguous=request.ambiguous,
        documents={d.name: CaseDocument(text=d.text, items=d.items, header=d.header) for d in request.documents},
        variables=dict(request.variables),
        sources=request.sources,
        phase=request.site.phase,
        images=tuple(replace(i, data=b"") for i in request.images if i.reference),
    )


def recorded_case_text(request: CallRequest) -> str:
    """The case as JSON, credentials taken out of each of its texts, so that what is left is JSON."""
    text = recorded_case(request).model_dump_json(exclude_defaults=True)
    if not holds_secret(text):
        return text
    cleaned = _redact(recorded_case(request).model_dump(mode="json", exclude_defaults=True))
    return CallCase.model_validate(cleaned).model_dump_json(exclude_defaults=True)


def replay_request(case: CallInput, recipe: str, *, user: str, session: str = "", layer: ModelLayer | None = None) -> CallRequest:
    """The call of `{category}/{name}` that a case describes. A low confidence comes back as a verdict: it is looked at, not acted on."""
    return CallRequest(
        recipe=recipe,
        query=case.query,
        site=CallSite(case.phase, user, session),
        documents=tuple(InputDocument(name, d.text, d.items, d.header) for name, d in case.documents.items()),
        variables=case.variables,
        sources=case.sources,
        intent=case.intent,
        policy=case.policy,
        mode=case.mode.value,
        ambiguous=case.ambiguous,
        layer=layer,
        halt_on_low_confidence=False,
        images=case.images if isinstance(case, CallCase) else (),
    )


def _redact(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {name: _redact(child) for name, child in cast("Mapping[str, Any]", value).items()}
    return [_redact(child) for child in cast("list[Any]", value)] if isinstance(value, list) else value
