"""The way out of one rendered page: an HTTP proxy on loopback over the address guard.

A browser reaches the web through it alone. It resolves a name once, refuses every address that is not global, dials what was checked, and
counts requests and bytes; so a redirect, a WebSocket or a name that changes its address gets no further than a plain request.
"""

import contextlib
import select
import socket
import threading
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from time import monotonic

import h11

from pandora_dagster.errors import FetchError, FetchRefusedError
from pandora_dagster.tools.egress.address_guard import DEFAULT_PORTS, AddressGuard, CheckedAddress
from pandora_dagster.tools.egress.dialling import connect

_CHUNK_BYTES = 65_536
_CONNECT_SECONDS = 10.0
_MAX_CONNECTIONS = 64
"""Of one page at the same time: a browser opens six to a host."""
_HOP_HEADERS = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te", b"trailer", b"upgrade"}
)
"""Headers of one connection, which a proxy does not pass on (RFC 9110, section 7.6.1)."""


@dataclass(slots=True)
class PageTraffic:
    """What one page has sent and received, against its limits."""

    max_requests: int
    max_bytes: int
    deadline: float
    """By the monotonic clock."""
    requests: int = 0
    received: int = 0
    refusals: Counter[str] = field(default_factory=Counter[str])
    """How often each rule refused a request."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take_request(self) -> None:
        """Count one request or tunnel; raises FetchRefusedError."""
        with self._lock:
            if self.requests >= self.max_requests:
                raise FetchRefusedError(f"over {self.max_requests} requests of one page", rule="requests of the page")
            self.requests += 1

    def receive(self, number: int) -> None:
        """Count bytes that a server sent; raises FetchRefusedError."""
        with self._lock:
            self.received += number
            if self.received > self.max_bytes:
                raise FetchRefusedError(f"over {self.max_bytes:,} bytes of one page", rule="bytes of the page")

    def refuse(self, rule: str) -> None:
        with self._lock:
            self.refusals[rule] += 1

    def seconds_left(self) -> float:
        """Raises TimeoutError after the deadline."""
        left = self.deadline - monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class BrowserProxy:
    """A proxy for one page, listening on a free port of loopback until it is closed."""

    def __init__(self, guard: AddressGuard, traffic: PageTraffic) -> None:
        self._guard = guard
        self._traffic = traffic
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True, name="pandora-proxy").start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """End every connection."""
        with self._lock:
            self._is_closed = True
            connections = [self._listener, *self._open]
        for connection in connections:
            _shut(connection)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                self._listener.close()
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True, name="pandora-proxy").start()

    @contextlib.contextmanager
    def _kept(self, connection: socket.socket) -> Generator[None]:
        """A connection that `close` ends."""
        with self._lock:
            is_refused = self._is_closed or len(self._open) >= 2 * _MAX_CONNECTIONS
            if not is_refused:
                self._open.add(connection)
        try:
            if is_refused:
                raise FetchRefusedError(f"over {_MAX_CONNECTIONS} connections of one page", rule="connections of the page")
            yield
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _serve(self, connection: socket.socket) -> None:
        """One request of the browser, then the end of its connection."""
        with contextlib.suppress(OSError, FetchError, h11.ProtocolError), self._kept(connection):
            browser = h11.Connection(h11.SERVER)
            request = self._next_event(browser, connection)
            if not isinstance(request, h11.Request):
                return
            try:
                self._traffic.take_request()
                if request.method == b"CONNECT":
                    self._tunnel(request, browser, connection)
                else:
                    self._forward(request, browser, connection)
            except FetchError as error:
                rule = error.rule if isinstance(error, FetchRefusedError) else "no answer"
                self._traffic.refuse(rule)
                if browser.our_state is h11.SEND_RESPONSE:
                    status = 403 if isinstance(error, FetchRefusedError) else 502
                    headers = [("Content-Length", "0"), ("Connection", "close")]
                    self._send(browser, connection, h11.Response(status_code=status, headers=headers), h11.EndOfMessage())

    def _forward(self, request: h11.Request, browser: h11.Connection, connection: socket.socket) -> None:
        """Send a request in absolute form to its checked address, and the answer back."""
        url = request.target.decode("ascii", "replace")
        address = self._guard.check(url, timeout_s=min(_CONNECT_SECONDS, self._traffic.seconds_left()))
        with self._dialled(address) as upstream:
            server = h11.Connection(h11.CLIENT)
            headers = [(name, value) for name, value in request.headers if name not in _HOP_HEADERS | {b"host"}]
            sent = [(b"host", address.authority.encode()), *headers, (b"connection", b"close")]
            self._send(server, upstream, h11.Request(method=request.method, target=address.target.encode(), headers=sent))
            while not isinstance(event := self._next_event(browser, connection), h11.EndOfMessage | h11.ConnectionClosed):
                self._send(server, upstream, event)
            self._send(server, upstream, h11.EndOfMessage())
            while True:
                event = self._next_event(server, upstream, counts=True)
                if isinstance(event, h11.Response):
                    headers = [(name, value) for name, value in event.headers if name not in _HOP_HEADERS]
                    kept = [*headers, (b"connection", b"close")]
                    self._send(browser, connection, h11.Response(status_code=event.status_code, headers=kept))
                elif isinstance(event, h11.Data):
                    self._send(browser, connection, event)
                elif not isinstance(event, h11.InformationalResponse):
                    self._send(browser, connection, h11.EndOfMessage())
                    return

    def _tunnel(self, request: h11.Request, browser: h11.Connection, connection: socket.socket) -> None:
        """Connect a tunnel to its checked address; what is sent through it is known to the browser alone."""
        host, _, port = request.target.decode("ascii", "replace").rpartition(":")
        number = int(port) if port.isdigit() and len(port) < 6 else 0
        if number == DEFAULT_PORTS["http"]:
            raise FetchRefusedError(f"{host}: a tunnel to the port of plain HTTP, as an unencrypted WebSocket asks for", rule="tunnel")
        address = self._guard.check_host(host, number, timeout_s=min(_CONNECT_SECONDS, self._traffic.seconds_left()))
        with self._dialled(address) as upstream:
            early, _ = browser.trailing_data
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            upstream.sendall(early)
            other = {connection: upstream, upstream: connection}
            while True:
                ready, _, _ = select.select(list(other), [], [], self._traffic.seconds_left())
                for source in ready:
                    data = source.recv(_CHUNK_BYTES)
                    if not data:
                        return
                    if source is upstream:
                        self._traffic.receive(len(data))
                    other[source].sendall(data)

    @contextlib.contextmanager
    def _dialled(self, address: CheckedAddress) -> Generator[socket.socket]:
        upstream = connect(address, timeout_s=min(_CONNECT_SECONDS, self._traffic.seconds_left()))
        with self._kept(upstream):
            upstream.settimeout(self._traffic.seconds_left())
            yield upstream

    def _next_event(self, parser: h11.Connection, connection: socket.socket, *, counts: bool = False) -> h11.Event:
        while True:
            event = parser.next_event()
            if isinstance(event, h11.Event):
                return event
            if event is h11.PAUSED:
                raise h11.RemoteProtocolError("more than one request at once")
            connection.settimeout(self._traffic.seconds_left())
            data = connection.recv(_CHUNK_BYTES)
            if counts:
                self._traffic.receive(len(data))
            parser.receive_data(data)

    def _send(self, parser: h11.Connection, connection: socket.socket, *events: h11.Event) -> None:
        for event in events:
            data = parser.send(event)
            if data:
                connection.settimeout(self._traffic.seconds_left())
                connection.sendall(data)


def _shut(connection: socket.socket) -> None:
    """Wake the thread that waits on a connection; it closes the connection."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
