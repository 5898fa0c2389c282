"""State of one server on this machine: ready or not, requests at work, port in use. For the supervisor; changes nothing."""

import asyncio
import socket
import urllib.error
import urllib.request
from http.client import HTTPException

from pandora_dagster.runtime.sglang.concurrency_limit import parse_load
from pandora_dagster.runtime.sglang.endpoints import Server

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_MAX_BYTES = 4_000_000
_ANSWER_S = 5.0


async def is_ready(server: Server) -> bool:
    """Whether `/health` answers 200: SGLang says 503 while it starts."""
    return await asyncio.to_thread(_fetch, f"{server.url}/health") is not None


async def active_requests(server: Server) -> int | None:
    """Requests that it works on or lets wait, as its `/metrics` report; None where they do not."""
    body = await asyncio.to_thread(_fetch, f"{server.url}/metrics")
    load = None if body is None else parse_load(body)
    return None if load is None else load.running + load.queued


def is_port_taken(server: Server) -> bool:
    """Whether somebody listens where this server should."""
    try:
        with socket.create_connection((server.host, server.port), timeout=1.0):
            return True
    except OSError:
        return False


def _fetch(url: str) -> bytes | None:
    try:
        with _DIRECT.open(url, timeout=_ANSWER_S) as answer:
            return answer.read(_MAX_BYTES) if answer.status == 200 else None
    except (urllib.error.URLError, OSError, HTTPException, ValueError):
        return None
