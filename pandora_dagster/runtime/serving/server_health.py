"""What a server on this machine says of itself: whether it is ready, what it works on, whether its port is taken. Asks; changes nothing."""

import asyncio
import socket
import urllib.error
import urllib.request
from http.client import HTTPException

from pandora_dagster.runtime.sglang.endpoints import Server

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_MAX_BYTES = 4_000_000
_ANSWER_S = 5.0
_BUSY = ("sglang:num_running_reqs", "sglang:num_queue_reqs")


async def is_ready(server: Server) -> bool:
    """Whether `/health` answers 200: SGLang says 503 while it starts."""
    return await asyncio.to_thread(_fetch, f"{server.url}/health") is not None


async def active_requests(server: Server) -> int | None:
    """Requests that it works on or lets wait, as its `/metrics` say; None where it does not tell."""
    body = await asyncio.to_thread(_fetch, f"{server.url}/metrics")
    return None if body is None else parse_active_requests(body.decode(errors="replace"))


def parse_active_requests(metrics: str) -> int | None:
    """The sum over the lines of running and queued requests."""
    lines = [line for line in metrics.splitlines() if line.partition("{")[0].partition(" ")[0] in _BUSY]
    try:
        return int(sum(float(line.rpartition(" ")[2]) for line in lines)) if lines else None
    except ValueError:
        return None


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
