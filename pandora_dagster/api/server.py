"""Start and stop of the servers: socket, signals, uvicorn."""

import signal
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from pandora_dagster.api.guard import Guard
from pandora_dagster.api.html_pages import make_pages
from pandora_dagster.api.routes import make_app
from pandora_dagster.api.turn_worker import TurnWorker
from pandora_dagster.app import App
from pandora_dagster.errors import InputError

_GRACE_S = 2
"""Seconds that open connections have at the end; turns have a limit of their own."""


def serve(app: App, guard: Guard, *, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve the chat API until SIGINT or SIGTERM. Raises InputError for an address that cannot be bound, ConfigurationError for a wrong
    model."""
    app.verify_models()
    with _until_signal(), _listening_socket(guard.host, port) as listening:
        turns = TurnWorker(app)
        try:
            routes = make_app(turns, guard, user=app.settings.user, runtime=app.dependencies.runtime, model_date=int(time.time()))
            _run(routes, listening, lambda address: on_ready(f"{address}/v1"))
        finally:
            turns.close()


def serve_pages(app: App, guard: Guard, *, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve the pages of the archive until SIGINT or SIGTERM. Raises InputError for an address that cannot be bound."""
    with _until_signal(), _listening_socket(guard.host, port) as listening:
        _run(make_pages(app, guard), listening, on_ready)


def _run(app: Starlette, listening: socket.socket, on_ready: Callable[[str], None]) -> None:
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", server_header=False, timeout_graceful_shutdown=_GRACE_S)
    host, bound = listening.getsockname()[:2]
    on_ready(f"http://{f'[{host}]' if ':' in host else host}:{bound}")
    uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def _until_signal() -> Generator[None]:
    """End the block on SIGINT or SIGTERM, without an error."""
    before = signal.signal(signal.SIGTERM, _on_signal)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _listening_socket(host: str, port: int) -> Generator[socket.socket]:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        listening = socket.create_server((host, port), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise InputError(f"{host}:{port}: {error.strerror or error}: expected a free address", hint="Choose another --port.") from None
    with listening:
        yield listening


def _on_signal(number: int, frame: FrameType | None) -> None:
    """End the block. uvicorn raises the signal again when its requests are finished; the turns must still be closed then."""
    raise KeyboardInterrupt
