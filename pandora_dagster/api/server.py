"""Serves the chat API and the pages with uvicorn until a signal ends it."""

import signal
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from pandora_dagster.api.connection_limits import TimedHttpProtocol
from pandora_dagster.api.guard import Guard
from pandora_dagster.api.pages.html_pages import make_pages
from pandora_dagster.api.routes import make_app
from pandora_dagster.api.turn_worker import TurnWorker
from pandora_dagster.app import App
from pandora_dagster.errors import InputError

_CONNECTION_GRACE_S = 2
"""Seconds that open connections have when the server stops; for turns, `turn_worker` has a limit."""


def serve(app: App, guard: Guard, *, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve the chat API until SIGINT or SIGTERM. Raises InputError for an address that cannot be bound, ConfigurationError for a wrong
    model."""
    app.verify_models()
    with _until_signal(), _listening_socket(guard.host, port) as listener:
        turns = TurnWorker(app)
        try:
            routes = make_app(app, turns, guard, model_date=int(time.time()))
            _run(routes, listener, lambda address: on_ready(f"{address}/v1"))
        finally:
            turns.close()


def serve_pages(app: App, guard: Guard, *, port: int, dagster: str = "", on_ready: Callable[[str], None]) -> None:
    """Serve the pages of the archive until SIGINT or SIGTERM; they link to Dagster's web UI at the address `dagster`.

    Raises InputError for an address that cannot be bound."""
    with _until_signal(), _listening_socket(guard.host, port) as listener:
        _run(make_pages(app, guard, dagster=dagster), listener, on_ready)


def _run(app: Starlette, listener: socket.socket, on_ready: Callable[[str], None]) -> None:
    config = uvicorn.Config(
        app,
        http=TimedHttpProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=_CONNECTION_GRACE_S,
    )
    host, bound_port = listener.getsockname()[:2]
    on_ready(f"http://{f'[{host}]' if ':' in host else host}:{bound_port}")
    uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def _until_signal() -> Generator[None]:
    """End the block on SIGINT or SIGTERM, without an error."""
    previous_handler = signal.signal(signal.SIGTERM, _on_signal)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


@contextmanager
def _listening_socket(host: str, port: int) -> Generator[socket.socket]:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        dual_stack = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        listener = socket.create_server((host, port), family=family, dualstack_ipv6=dual_stack)
    except OSError as error:
        raise InputError(f"{host}:{port}: {error.strerror or error}: expected a free address", hint="Choose another --port.") from None
    with listener:
        yield listener


def _on_signal(number: int, frame: FrameType | None) -> None:
    """End the block. uvicorn raises the signal again when its requests are finished; the turns must still be closed then."""
    raise KeyboardInterrupt
