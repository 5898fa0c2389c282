"""A call's inputs as they are kept, and the call made of them again. Knows both shapes; keeps nothing."""

from collections.abc import Mapping
from typing import Any, cast

from pandora_dagster.contracts.enums import Mode, ModelLayer
from pandora_dagster.contracts.images import ImagePart
from pandora_dagster.contracts.model_calls import CallRequest, CallSite, InputDocument, Item, Source
from pandora_dagster.contracts.recipe_schema import CallCase, CallInput, CaseDocument, CaseImage, CaseSource
from pandora_dagster.documents.redaction.credentials import holds_secret, redact


def recorded_case(request: CallRequest) -> CallCase:
    """Everything of a request that its answer depends on, documents whole."""
    return CallCase(
        query=request.query,
        mode=Mode(request.mode),
        intent=request.intent,
        policy=request.policy,
        ambiguous=request.ambiguous,
        documents={d.name: CaseDocument.model_validate(d, from_attributes=True) for d in request.documents},
        variables=dict(request.variables),
        sources=tuple(CaseSource.model_validate(s, from_attributes=True) for s in request.sources),
        phase=request.site.phase,
        images=tuple(CaseImage.model_validate(i, from_attributes=True) for i in request.images if i.reference),
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
    images = case.images if isinstance(case, CallCase) else ()
    documents = tuple(
        InputDocument(name, d.text, tuple(Item(i.text, i.priority, i.name) for i in d.items), d.header)
        for name, d in case.documents.items()
    )
    return CallRequest(
        recipe=recipe,
        query=case.query,
        site=CallSite(case.phase, user, session),
        documents=documents,
        variables=case.variables,
        sources=tuple(Source(s.label, s.path, s.description, s.turn_id) for s in case.sources),
        intent=case.intent,
        policy=case.policy,
        mode=case.mode.value,
        ambiguous=case.ambiguous,
        layer=layer,
        halt_on_low_confidence=False,
        images=tuple(ImagePart(i.name, i.media_type, i.tokens, reference=i.reference) for i in images),
    )


def _redact(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {name: _redact(child) for name, child in cast("Mapping[str, Any]", value).items()}
    return [_redact(child) for child in cast("list[Any]", value)] if isinstance(value, list) else value
