"""Opens connections to checked addresses, to nothing else, and ends them at a deadline or at a number of bytes."""

import socket
import ssl
from collections.abc import Iterable
from time import monotonic
from typing import Any

import httpcore

from pandora_dagster.errors import FetchFailedError, FetchRefusedError
from pandora_dagster.tools.egress.address_guard import CheckedAddress

_READ_BYTES = 16_384
"""At most so many bytes are read at once: what they unpack to stays small (zlib: a thousand times as much)."""


def connect(address: CheckedAddress, *, timeout_s: float) -> socket.socket:
    """A connection to the first place of `address` that answers; raises FetchFailedError."""
    deadline, reason = monotonic() + timeout_s, "no time left"
    for number, place in enumerate(address.dials):
        share = (deadline - monotonic()) / (len(address.dials) - number)
        if share <= 0:
            break
        try:
            connection = socket.create_connection((place.ip, place.port), timeout=share)
        except TimeoutError:
            reason = f"no connection within {timeout_s:.0f} s"
        except OSError as error:
            reason = error.strerror or str(error)
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
    raise FetchFailedError(f"{address.origin}: {reason}", retryable=True)


class LimitedStream(httpcore.NetworkStream):
    """A connection that ends at a deadline, however slowly its bytes come, and after `max_bytes` bytes."""

    def __init__(self, connection: socket.socket, *, deadline: float, max_bytes: int) -> None:
        self._connection = connection
        self._deadline = deadline
        self._max_bytes = max_bytes
        self.received = 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self.received >= self._max_bytes:
            raise FetchRefusedError("the answer is larger than the limit", rule="size")
        self._connection.settimeout(self._seconds_left())
        data = self._connection.recv(min(max_bytes, _READ_BYTES))
        self.received += len(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._connection.settimeout(self._seconds_left())
        self._connection.sendall(buffer)

    def close(self) -> None:
        self._connection.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        self._connection.settimeout(self._seconds_left())
        try:
            self._connection = ssl_context.wrap_socket(self._connection, server_hostname=server_hostname)
        except BaseException:
            self.close()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        is_asked = info == "socket" or (info == "ssl_object" and isinstance(self._connection, ssl.SSLSocket))
        return self._connection if is_asked else None

    def _seconds_left(self) -> float:
        left = self._deadline - monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class CheckedBackend(httpcore.NetworkBackend):
    """The network of one request: it dials the places of one checked address, whatever name it is asked for."""

    def __init__(self, address: CheckedAddress, *, deadline: float, max_bytes: int) -> None:
        self._address = address
        self._deadline = deadline
        self._max_bytes = max_bytes
        self._streams: list[LimitedStream] = []

    @property
    def received(self) -> int:
        """The bytes that came so far."""
        return sum(stream.received for stream in self._streams)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        connection = connect(self._address, timeout_s=self._deadline - monotonic())
        self._streams.append(LimitedStream(connection, deadline=self._deadline, max_bytes=self._max_bytes))
        return self._streams[-1]
