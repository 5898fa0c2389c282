"""The server's life: bind, serve, end. Knows sockets and signals; knows no route."""

import signal
import socket
import time
from collections.abc import Callable
from types import FrameType

import uvicorn

from pandora_dagster.api.app import make_app
from pandora_dagster.api.guard import Guard
from pandora_dagster.api.turns import Turns
from pandora_dagster.errors import InputError
from pandora_dagster.wiring import House

_GRACE_S = 2
"""How long open connections may go on at the end; the turns behind them have a time of their own."""


def serve(house: House, guard: Guard, *, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. Raises InputError where the address can not be had, ConfigurationError for a wrong model."""
    house.check_models()
    listening = _bound(guard.host, port)
    turns = Turns(house)
    before = signal.signal(signal.SIGTERM, _ended)
    try:
        app = make_app(turns, guard, user=house.settings.user, runtime=house.kit.runtime, model_date=int(time.time()))
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", server_header=False, timeout_graceful_shutdown=_GRACE_S
        )
        host, bound = listening.getsockname()[:2]
        on_ready(f"http://{f'[{host}]' if ':' in host else host}:{bound}/v1")
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()
        turns.close()
        signal.signal(signal.SIGTERM, before)


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        raise InputError(
            f"{host}:{port}: {error.strerror or error}: expected an address that is free", hint="Choose another --port."
        ) from None
    return listening


def _ended(number: int, frame: FrameType | None) -> None:
    """Once requests are over uvicorn raises the signal that ended it again; then the turns are still to be looked after."""
    raise KeyboardInterrupt
