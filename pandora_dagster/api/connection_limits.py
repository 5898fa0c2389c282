"""The connections of the servers: bounded in number, and in the time that a request takes to arrive.

A client that sends half a request would else hold its connection for ever: uvicorn limits only the pause between two requests.
"""

import asyncio
import json

from uvicorn.protocols.http.h11_impl import H11Protocol

from pandora_dagster.api.api_errors import ApiError

MAX_CONNECTIONS = 256
"""Connections at the same time; a further one is answered with 503 and closed."""
HEAD_TIMEOUT_S = 10.0
"""Seconds from the first byte that is expected of a request to the end of its headers."""
BODY_TIMEOUT_S = 60.0
"""Seconds from the headers of a request to the end of its body."""


class TimedHttpProtocol(H11Protocol):
    """One connection. A request that does not arrive in time is answered with 408, and the connection is closed."""

    _deadline: asyncio.TimerHandle | None = None
    _awaits = ""
    """What the deadline is for, as h11 names it: IDLE for the headers of a request, SEND_BODY for its body; "" without a deadline."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            self._refuse(503, f"{MAX_CONNECTIONS} connections are open: expected fewer at the same time", "too_many_connections")
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if str(self.conn.their_state) == "IDLE":  # the pause before the next request is uvicorn's to limit
            self._stop_watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Start the deadline of what is expected next, unless it runs already."""
        state = str(self.conn.their_state)
        expected = state if state in ("IDLE", "SEND_BODY") else ""
        if expected != self._awaits:
            self._stop_watch()
            if expected:
                seconds = HEAD_TIMEOUT_S if expected == "IDLE" else BODY_TIMEOUT_S
                self._awaits, self._deadline = expected, self.loop.call_later(seconds, self._end_late_request, seconds)

    def _stop_watch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline, self._awaits = None, ""

    def _end_late_request(self, seconds: float) -> None:
        part = "headers" if self._awaits == "IDLE" else "body"
        if self.cycle and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()
        else:
            self._refuse(408, f"{part}: not complete after {seconds:g} s: expected the whole request", "request_timeout")

    def _refuse(self, status: int, message: str, code: str) -> None:
        """Answer without the application, and close the connection."""
        body = json.dumps(ApiError(status, message, code=code).body).encode()
        reason = {408: b"Request Timeout", 503: b"Service Unavailable"}[status]
        head = b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        self.transport.write(head % (status, reason, len(body)) + body)
        self.transport.close()
