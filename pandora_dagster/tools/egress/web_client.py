"""One request to a checked address, within limits of time and bytes; no redirects, credentials or proxies."""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from time import monotonic

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


@dataclass(frozen=True, slots=True)
class WebRequest:
    """What is asked of an address; the client's own headers replace those of `headers` with the same names."""

    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


GET = WebRequest()


def _count_none(_: int) -> None:
    pass


@dataclass(frozen=True)
class WebClient:
    """Sends requests under one honest name. `trust` verifies servers; without it the system's certificates do."""

    user_agent: str
    trust: ssl.SSLContext | None = None

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return self.trust or ssl.create_default_context()

    def send(
        self,
        address: CheckedAddress,
        request: WebRequest = GET,
        *,
        timeout_s: float,
        max_bytes: int,
        reads: Callable[[Answer], bool],
        count: Callable[[int], None] = _count_none,
    ) -> Answer:
        """The answer of `address`. `reads`: whether its body is wanted, from status and headers; it may refuse. `count` receives the bytes
        that came, once, also where the answer is refused or fails.

        Raises FetchRefusedError for a body over `max_bytes`, FetchFailedError where the server or the network fails.
        """
        backend = CheckedBackend(address, deadline=monotonic() + timeout_s, max_bytes=max_bytes + MAX_HEADER_BYTES)
        try:
            return self._send(address, request, backend, max_bytes, reads)
        except TimeoutError as error:
            raise FetchFailedError(f"{address.url}: not complete within {timeout_s:.0f} s", retryable=True) from error
        except ssl.SSLCertVerificationError as error:
            raise FetchFailedError(f"{address.url}: its certificate is not valid: {error.verify_message}") from error
        except (httpcore.ProtocolError, h11.ProtocolError) as error:
            raise FetchFailedError(f"{address.url}: not HTTP: {error}", retryable=True) from error
        except OSError as error:
            raise FetchFailedError(f"{address.url}: {error.strerror or error}", retryable=True) from error
        finally:
            count(backend.received)

    def _send(
        self, address: CheckedAddress, request: WebRequest, backend: CheckedBackend, max_bytes: int, reads: Callable[[Answer], bool]
    ) -> Answer:
        own = {"Host": address.authority, "User-Agent": self.user_agent, "Accept-Encoding": ACCEPTED_CODINGS, "Connection": "close"}
        asked = {"Accept": _ACCEPTED} | {name.title(): value for name, value in request.headers.items()}
        content = None if request.method in ("GET", "HEAD") else request.body
        trust = self._trust if address.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        with (
            httpcore.ConnectionPool(ssl_context=trust, network_backend=backend, max_connections=1) as pool,
            pool.stream(request.method, address.url, headers={**asked, **own}, content=content) as response,
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
    """Headers by lower-case names; several of one name are joined by commas, as HTTP reads them, and cookies by line breaks."""
    joined: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name = raw_name.decode("ascii", "replace").lower()
        try:
            value = raw_value.decode()
        except UnicodeDecodeError:
            value = raw_value.decode("latin-1")
        mark = "\n" if name == "set-cookie" else ", "
        joined[name] = f"{joined[name]}{mark}{value}" if name in joined else value
    return joined
