"""One GET request to a checked address, within limits of time and bytes; no redirects, cookies, credentials or proxies."""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from time import monotonic
from types import MappingProxyType

import h11
import httpcore

from pandora_dagster.errors import FetchFailedError, FetchRefusedError
from pandora_dagster.tools.egress.address_guard import CheckedAddress
from pandora_dagster.tools.egress.content_coding import ACCEPTED_CODINGS, read_body
from pandora_dagster.tools.egress.dialling import CheckedBackend

MAX_HEADER_BYTES = 64 * 1024
_ACCEPTED = "text/html,application/xhtml+xml,application/pdf;q=0.9,text/plain;q=0.8,application/json;q=0.8,*/*;q=0.1"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request; the body only where `reads` asked for it."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def location(self) -> str:
        """The target of a redirect as it was sent; "" for any other answer."""
        return self.headers.get("location", "") if self.status in (301, 302, 303, 307, 308) else ""

    def retry_after_s(self, now: float) -> float | None:
        """The seconds of Retry-After from the Unix time `now` on; None without a readable one."""
        text = self.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdigit():
            return float(text[:12])
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - now)
        except (ValueError, OverflowError):
            return None


@dataclass(frozen=True)
class WebClient:
    """Sends requests under one honest name. `trust` verifies servers; without it the system's certificates do."""

    user_agent: str
    trust: ssl.SSLContext | None = None

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return self.trust or ssl.create_default_context()

    def get(
        self,
        address: CheckedAddress,
        *,
        timeout_s: float,
        max_bytes: int,
        reads: Callable[[Answer], bool],
        conditions: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """The answer of `address`. `reads`: whether its body is wanted, from status and headers; it may refuse. `conditions`: headers of a
        request that is answered with 304 where the page has not changed.

        Raises FetchRefusedError for a body over `max_bytes`, FetchFailedError where the server or the network fails.
        """
        try:
            return self._get(address, monotonic() + timeout_s, max_bytes, reads, conditions)
        except TimeoutError as error:
            raise FetchFailedError(f"{address.url}: not complete within {timeout_s:.0f} s", retryable=True) from error
        except ssl.SSLCertVerificationError as error:
            raise FetchFailedError(f"{address.url}: its certificate is not valid: {error.verify_message}") from error
        except (httpcore.ProtocolError, h11.ProtocolError) as error:
            raise FetchFailedError(f"{address.url}: not HTTP: {error}", retryable=True) from error
        except OSError as error:
            raise FetchFailedError(f"{address.url}: {error.strerror or error}", retryable=True) from error

    def _get(
        self, address: CheckedAddress, deadline: float, max_bytes: int, reads: Callable[[Answer], bool], conditions: Mapping[str, str]
    ) -> Answer:
        backend = CheckedBackend(address, deadline=deadline, max_bytes=max_bytes + MAX_HEADER_BYTES)
        headers: Mapping[bytes | str, bytes | str] = {
            "Host": address.authority,
            "User-Agent": self.user_agent,
            "Accept": _ACCEPTED,
            "Accept-Encoding": ACCEPTED_CODINGS,
            "Connection": "close",
            **conditions,
        }
        trust = self._trust if address.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        with (
            httpcore.ConnectionPool(ssl_context=trust, network_backend=backend, max_connections=1) as pool,
            pool.stream("GET", address.url, headers=headers) as response,
        ):
            if sum(len(name) + len(value) for name, value in response.headers) > MAX_HEADER_BYTES:
                raise FetchRefusedError(f"{address.url}: headers of over {MAX_HEADER_BYTES:,} bytes", rule="size")
            answer = Answer(response.status, _read_headers(response.headers))
            if not reads(answer):
                return answer
            declared = answer.headers.get("content-length", "")
            if declared.isdigit() and len(declared) < 20 and int(declared) > max_bytes:
                raise FetchRefusedError(f"{address.url}: {int(declared):,} bytes: expected at most {max_bytes:,}", rule="size")
            coding = answer.headers.get("content-encoding", "")
            body = read_body(response.iter_stream(), coding, max_bytes=max_bytes, where=address.url)
            return Answer(answer.status, answer.headers, body)


def _read_headers(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by lower-case names; several of one name are joined by commas, as HTTP reads them."""
    joined: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name = raw_name.decode("ascii", "replace").lower()
        try:
            value = raw_value.decode()
        except UnicodeDecodeError:
            value = raw_value.decode("latin-1")
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined
