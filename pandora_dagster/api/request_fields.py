"""The fields of requests that all chat APIs share: user, session, metadata, limits, and what is refused or has no effect."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.api.turn_request import MODELS, SESSION_HEADER, USER_HEADER
from pandora_dagster.contracts.ids import SessionId, UserId, session_id, user_id
from pandora_dagster.errors import BadIdError

_MAX_SHOWN_CHARACTERS = 60
"""Characters of a client's value that an error message shows."""
_MAX_STOPS, _MAX_METADATA = 4, 16
CHAT_REFUSED: Mapping[str, str] = {
    "tools": "the tools of a client are not called: expected none; recipes name the tools that a turn may call",
    "top_logprobs": "an answer has no probabilities of tokens: expected 0",
}
"""Fields that both chat APIs refuse -> why."""
B = TypeVar("B", bound="RequestBody")


def _metadata(value: object) -> object:
    """Check the bounds that OpenAI sets; raises ValueError."""
    if value is None:
        return {}
    pairs = cast("Mapping[object, object]", value) if isinstance(value, dict) else None
    if pairs is None or not all(isinstance(text, str) for pair in pairs.items() for text in pair):
        raise ValueError("expected an object of strings")
    if len(pairs) > _MAX_METADATA or any(len(str(k)) > 64 or len(str(v)) > 512 for k, v in pairs.items()):
        raise ValueError(f"expected at most {_MAX_METADATA} pairs of a key of 64 and a value of 512 characters")
    return pairs


def _stop(value: object) -> object:
    """One sequence or up to four as a tuple; raises ValueError."""
    stops = tuple(cast("list[object]", value)) if isinstance(value, list) else () if value is None else (value,)
    if len(stops) > _MAX_STOPS or not all(isinstance(stop, str) and stop for stop in stops):
        raise ValueError(f"expected a text that is not empty, or up to {_MAX_STOPS} of them")
    return stops


Stop = Annotated[tuple[str, ...], BeforeValidator(_stop)]
TokenLimit = Annotated[StrictInt, Field(ge=1)] | None


class RequestBody(BaseModel):
    """The fields that every request has. Fields that a class does not declare have no effect."""

    model_config = ConfigDict(extra="allow", frozen=True)
    model: StrictStr
    stream: bool | None = False
    user: StrictStr | None = None
    metadata: Annotated[dict[str, str], BeforeValidator(_metadata)] = {}

    def ignored(self, refused: Mapping[str, str]) -> tuple[str, ...]:
        """The fields of the request that have a value and no effect; `refused`: those that must have none."""
        return tuple(sorted(name for name, value in (self.model_extra or {}).items() if value is not None and name not in refused))


def parse_body(body: bytes, shape: type[B], refused: Mapping[str, str]) -> B:
    """Read a body; raises ApiError. `refused`: field -> why it must be empty, false or absent."""
    try:
        value: object = json.loads(body)
        json.dumps(value, ensure_ascii=False).encode()
        request = shape.model_validate(value)
    except ValidationError as error:
        raise _field_error(error) from None
    except UnicodeEncodeError:
        raise ApiError(400, "body: half of a surrogate pair: expected whole Unicode characters", code="not_unicode") from None
    except (ValueError, RecursionError):
        raise ApiError(400, "body: expected one JSON object", code="not_json") from None
    for name, reason in refused.items():
        if (request.model_extra or {}).get(name):
            raise param_error(name, reason, code="unsupported_parameter")
    return request


def _field_error(error: ValidationError) -> ApiError:
    first = error.errors(include_url=False, include_input=False)[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    return param_error(place or "body", first["msg"].removeprefix("Value error, "))


def param_error(param: str, message: str, *, code: str = "invalid_value") -> ApiError:
    return ApiError(400, f"{param}: {message}", param=param, code=code)


def check_model(model: str) -> None:
    """Raise ApiError for a model that does not answer chats."""
    if model not in MODELS:
        raise unknown_model(model, *MODELS)


def unknown_model(model: str, *known: str) -> ApiError:
    message = f"model {model[:_MAX_SHOWN_CHARACTERS]!r}: expected one of {', '.join(known)}"
    return ApiError(404, message, param="model", code="model_not_found")


def request_user(headers: Mapping[str, str], field: str | None, default: UserId) -> UserId:
    """The user of the header or of the field `user`, which must agree; `default` where both are absent. Raises ApiError.

    An id that cannot name a folder is refused: changed into another id it could be another user's.
    """
    given = {"header": headers.get(USER_HEADER, ""), "field": field or ""}
    if given["header"] and given["field"] and given["header"] != given["field"]:
        raise ApiError(
            400, f"user: it differs from the header {USER_HEADER}: expected the same user in both", param="user", code="two_users"
        )
    try:
        return user_id(given["header"] or given["field"]) if any(given.values()) else default
    except BadIdError as error:
        raise ApiError(400, str(error), param="user", code="bad_id") from None


def request_session(headers: Mapping[str, str]) -> SessionId | None:
    """The session of the header, None without one; raises ApiError."""
    try:
        return session_id(headers[SESSION_HEADER]) if headers.get(SESSION_HEADER) else None
    except BadIdError as error:
        raise ApiError(400, str(error), param=SESSION_HEADER, code="bad_id") from None


def message_query(message: Mapping[str, Any], part_types: tuple[str, ...], param: str) -> str:
    """The text of the message to answer, given as a string or as text parts; raises ApiError."""
    if message.get("role") != "user":
        raise param_error(param, f"the last one has role {str(message.get('role'))[:_MAX_SHOWN_CHARACTERS]!r}: expected role user")
    text = content_text(message.get("content"), part_types)
    if text is None:
        raise param_error(param, "the last one's content: expected a string or parts of type text")
    if not text.strip():
        raise param_error(param, "the last one is empty: expected a question or request")
    return text


def content_text(content: object, part_types: tuple[str, ...]) -> str | None:
    """The text of a content, None where it has anything else."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = [cast("dict[str, object]", part) for part in cast("list[object]", content) if isinstance(part, dict)]
    if len(parts) < len(cast("list[object]", content)) or not all(
        part.get("type") in part_types and isinstance(part.get("text"), str) for part in parts
    ):
        return None
    return "\n".join(str(part["text"]) for part in parts)
