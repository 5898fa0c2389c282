"""The state of one server on this machine, for its supervisor: whether it is ready, its active requests, whether its port is in use."""

import asyncio
import socket
import urllib.error
import urllib.request
from http.client import HTTPException

from pandora_dagster.runtime.sglang.concurrency_limit import parse_load
from pandora_dagster.runtime.sglang.endpoints import Server

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Opens addresses of this machine without a proxy."""
_MAX_ANSWER_BYTES = 4_000_000
_TIMEOUT_S = 5.0
_CONNECT_TIMEOUT_S = 1.0


async def is_ready(server: Server) -> bool:
    """Whether `/health` answers 200; SGLang answers 503 while it starts."""
    return await asyncio.to_thread(_fetch, f"{server.url}/health") is not None


async def active_requests(server: Server) -> int | None:
    """Running and queued requests by the server's `/metrics`; None where they do not report them."""
    body = await asyncio.to_thread(_fetch, f"{server.url}/metrics")
    load = None if body is None else parse_load(body)
    return None if load is None else load.running + load.queued


def is_port_taken(server: Server) -> bool:
    """Whether a process listens on the server's port."""
    try:
        with socket.create_connection((server.host, server.port), timeout=_CONNECT_TIMEOUT_S):
            return True
    except OSError:
        return False


def _fetch(url: str) -> bytes | None:
    """The body of an answer with status 200; None for any other outcome."""
    try:
        with _OPENER.open(url, timeout=_TIMEOUT_S) as answer:
            return answer.read(_MAX_ANSWER_BYTES) if answer.status == 200 else None
    except (urllib.error.URLError, OSError, HTTPException, ValueError):
        return None
