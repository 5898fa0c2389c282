"""Classifies the failures of a request, HTTP statuses and connection errors, as a `ModelError` with one sentence. Sends nothing.

The class of an error (`errors`) says whether it is retryable; `execution` retries. No credential gets into a message.
"""

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast

from pandora_dagster.documents.plain_json import PlainDataError, parse_json
from pandora_dagster.errors import (
    EndpointFullError,
    ModelError,
    ModelRejectedError,
    ModelTimeoutError,
    RateLimitedError,
    RuntimeUnreachableError,
)
from pandora_dagster.runtime.sglang.endpoints import AnyEndpoint

_RETRYABLE_STATUSES = frozenset({408, 425, 429})
"""Beside all of 500 and above."""
_CLIENT_PACKAGES = frozenset({"openai", "httpx", "httpx2", "httpcore", "httpcore2", "anyio"})
"""Packages whose exceptions describe the connection; openai 2 uses httpx, openai 3 httpx2."""
_MAX_RETRY_AFTER_S = 86_400.0
_MAX_MESSAGE_CHARACTERS = 400
_CONTEXT_WORDS = ("context length", "context size", "context window", "exceed_context_size")
"""Words of a refusal of a prompt that is too long."""
_START_HINT = "Start the server, or correct base_url in runtime.yaml."


class EndpointRefusedError(Exception):
    """An unsuccessful response, with the beginning of its body."""

    def __init__(self, status: int, body: bytes, *, retry_after: str = "") -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.body = body
        self.retry_after = retry_after
        """The header `Retry-After`, unparsed."""


class BodyTooLargeError(Exception):
    """A response body that is larger than any answer."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"over {limit} bytes")
        self.limit = limit


def timeout_error(endpoint: AnyEndpoint, timeout_s: float) -> ModelTimeoutError:
    """The error of a call whose deadline passed."""
    return ModelTimeoutError(
        f"{endpoint}: no complete answer within {timeout_s:g} s: expected one within the recipe's timeout_ms",
        hint="Look at the server's load, or raise timeout_ms in the recipe.",
    )


def model_error(fault: BaseException, endpoint: AnyEndpoint, *, secret: str = "") -> ModelError | None:
    """The ModelError for an exception of a request; None where it is not about the connection."""
    chain = tuple(_chain(fault))
    for link in chain:
        if isinstance(link, EndpointRefusedError):
            return _refusal_error(link, endpoint, secret)
        if isinstance(link, BodyTooLargeError):
            return RuntimeUnreachableError(
                f"{endpoint}: a response of over {link.limit} bytes: expected a model's answer",
                hint="Check that base_url in runtime.yaml names a model server.",
            )
    if not any(_is_connection_fault(link) for link in chain):
        return None
    description, hint = _describe_connection_fault(chain)
    return RuntimeUnreachableError(f"{endpoint}: {description}: expected a reachable model server", hint=hint)


def _chain(fault: BaseException | None) -> Iterator[BaseException]:
    """An exception with its causes, contexts and group members, each once, nearest first."""
    pending, seen = [fault], set[int]()
    while pending:
        link = pending.pop(0)
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        if isinstance(link, BaseExceptionGroup):
            pending.extend(cast("BaseExceptionGroup[BaseException]", link).exceptions)
        pending.extend((link.__cause__, link.__context__))


def _is_connection_fault(fault: BaseException) -> bool:
    return isinstance(fault, OSError) or any(base.__module__.partition(".")[0] in _CLIENT_PACKAGES for base in type(fault).__mro__)


def _describe_connection_fault(chain: tuple[BaseException, ...]) -> tuple[str, str]:
    """What happened to the connection, and the remedy."""
    for link in chain:
        if isinstance(link, ConnectionRefusedError):
            return "refused the connection", _START_HINT
        if isinstance(link, socket.gaierror):
            return "the host name is unknown", "Correct the host of base_url in runtime.yaml."
        if isinstance(link, ssl.SSLError):
            return (
                f"TLS failed ({_shorten_message(str(link.reason or link))})",
                "Check http or https in base_url, and the server's certificate.",
            )
        if "ConnectTimeout" in type(link).__name__:
            return "did not accept the connection in time", _START_HINT
        if isinstance(link, ConnectionResetError | BrokenPipeError):
            return "broke the connection before the answer was whole", "Look into the server's log; it may have stopped."
    return f"the exchange failed ({type(chain[-1]).__name__})", "Look into the server's log, and check base_url in runtime.yaml."


def _refusal_error(refusal: EndpointRefusedError, endpoint: AnyEndpoint, secret: str) -> ModelError:
    status, message = refusal.status, _server_message(refusal.body, secret)
    where = f"{endpoint}: status {status}{': ' + message if message else ''}"
    body = refusal.body.decode(errors="replace").lower()
    if (status >= 500 and not names_context(body)) or status in _RETRYABLE_STATUSES:
        hint = "The server is full or still starting; send fewer concurrent calls." if status == 503 else "Look into the server's log."
        error = _retryable_class(status, message)(f"{where}: expected an answer", hint=hint)
        error.retry_after_s = retry_after_seconds(refusal.retry_after, datetime.now(UTC))
        return error
    if status in (401, 403):
        return ModelRejectedError(f"{where}: expected the key to be accepted", hint=_key_hint(endpoint))
    if status == 404 and "model" in message.lower():
        return ModelRejectedError(f"{where}: expected a model that it serves", hint="Load that model on the server, or correct its name.")
    if status == 404:
        return ModelRejectedError(f"{where}: expected OpenAI's API there", hint="Correct base_url in runtime.yaml; it ends in /v1.")
    if status < 400:
        return ModelRejectedError(f"{where}: expected an answer, not a redirect", hint="Set base_url in runtime.yaml to the final address.")
    refused = ModelRejectedError(
        f"{where}: expected a request that the server takes",
        hint="Check the recipe's budget and schema against context_length in runtime.yaml and the served model.",
    )
    refused.refused_body = body
    return refused


def names_context(body: str) -> bool:
    """Whether a refusal, in lower case, is about a prompt that is too long; it may name `max_tokens` too."""
    return any(words in body for words in _CONTEXT_WORDS)


def retry_after_seconds(retry_after: str, now: datetime) -> float:
    """The header `Retry-After`, a number of seconds or a date, in seconds from `now`; 0 for any other text."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(min(int(text[:9]), _MAX_RETRY_AFTER_S))
    try:
        retry_at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return 0.0
    retry_at = retry_at if retry_at.tzinfo else retry_at.replace(tzinfo=UTC)
    return min(max(0.0, (retry_at - now).total_seconds()), _MAX_RETRY_AFTER_S)


def _retryable_class(status: int, message: str) -> type[RuntimeUnreachableError]:
    """The class of a retryable refusal. A 503 means a full or starting server, except where the request itself ran too long."""
    if status == 503 and "running timeout" not in message:
        return EndpointFullError
    return RateLimitedError if status == 429 else RuntimeUnreachableError


def _key_hint(endpoint: AnyEndpoint) -> str:
    name = endpoint.server.api_key_env
    return f"Set {name} to the server's key." if name else "Name the key's environment variable in api_key_env in runtime.yaml."


def _server_message(body: bytes, secret: str) -> str:
    """The server's own message; "" for a body that is not SGLang's, such as the HTML page of a proxy."""
    try:
        parsed = parse_json(body)
    except PlainDataError:
        return ""
    message = _message_field(parsed)
    return _shorten_message(message.replace(secret, "***") if secret else message)


def _message_field(parsed: object) -> str:
    """`{"message": ...}` of the OpenAI-compatible endpoints, `{"error": {"message": ...}}` or `{"error": "..."}` of the others."""
    if not isinstance(parsed, dict):
        return ""
    fields = cast("dict[str, object]", parsed)
    if isinstance(fields.get("message"), str):
        return str(fields["message"])
    error = fields.get("error", fields.get("detail"))
    return error if isinstance(error, str) else _message_field(error)


def _shorten_message(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_MESSAGE_CHARACTERS else line[:_MAX_MESSAGE_CHARACTERS] + "..."
