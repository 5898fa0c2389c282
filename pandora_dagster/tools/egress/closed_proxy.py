"""The proxy of a browser that has no way out: a port of loopback on which nothing listens.

What a page needs is loaded for it. What a browser sends past its request handlers (redirects, WebSockets, prefetches) ends here.
"""

import socket


class ClosedProxy:
    """Keeps a port, so that no other program can listen on it, until it is closed."""

    def __init__(self) -> None:
        self._kept = socket.socket()
        self._kept.bind(("127.0.0.1", 0))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._kept.getsockname()[1]}"

    def close(self) -> None:
        self._kept.close()
