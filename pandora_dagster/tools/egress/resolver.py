"""The addresses of names, and where an address is dialled: by the system's resolver, or by a hosts file.

A hosts file replaces the resolver in a split network or a test: `{"resolver": {name: [address, ...]}, "dial": {address: "host:port"}}`.
The list of a name has one address for each time it is asked for; the last one stays. An address without an entry in `dial` is dialled as
it is. Other keys have no meaning.
"""

import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Protocol

from pydantic import BaseModel, ValidationError

from pandora_dagster.documents.plain_json import PlainDataError, parse_json
from pandora_dagster.errors import ConfigurationError, FetchFailedError

_EXPECTED = '{"resolver": {"name": ["address"]}, "dial": {"address": "host:port"}}'


@dataclass(frozen=True, slots=True)
class DialTarget:
    """Where a connection is opened."""

    ip: str
    port: int


class Resolver(Protocol):
    """What is known of names and addresses."""

    def addresses(self, name: str, *, timeout_s: float) -> tuple[str, ...]:
        """All addresses of a name, at least one; raises FetchFailedError."""
        ...

    def dial(self, address: str, port: int) -> DialTarget:
        """Where a checked address is dialled."""
        ...


class SystemResolver:
    """The resolver of the operating system."""

    def addresses(self, name: str, *, timeout_s: float) -> tuple[str, ...]:
        answers: SimpleQueue[tuple[str, ...] | OSError] = SimpleQueue()

        def resolve() -> None:
            try:
                found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
                answers.put(tuple(dict.fromkeys(str(answer[4][0]) for answer in found)))
            except OSError as error:
                answers.put(error)

        threading.Thread(target=resolve, daemon=True, name="pandora-resolver").start()  # getaddrinfo knows no time-out
        try:
            answer = answers.get(timeout=max(timeout_s, 0.01))
        except Empty:
            raise FetchFailedError(f"{name}: its name was not resolved within {timeout_s:.0f} s", retryable=True) from None
        if isinstance(answer, OSError):
            is_temporary = isinstance(answer, socket.gaierror) and answer.errno == socket.EAI_AGAIN
            raise FetchFailedError(f"{name}: the name does not resolve: {answer.strerror}", retryable=is_temporary)
        return answer

    def dial(self, address: str, port: int) -> DialTarget:
        return DialTarget(address, port)


class _HostsFile(BaseModel):
    resolver: dict[str, list[str]]
    dial: dict[str, str] = {}


@dataclass(slots=True)
class HostsFileResolver:
    """The resolver over the tables of a hosts file."""

    names: Mapping[str, list[str]]
    dials: Mapping[str, DialTarget]
    _asked: dict[str, int] = field(default_factory=dict[str, int])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def addresses(self, name: str, *, timeout_s: float) -> tuple[str, ...]:
        answers = self.names.get(name)
        if not answers:
            raise FetchFailedError(f"{name}: not a name of the hosts file")
        with self._lock:
            number = self._asked.get(name, 0)
            self._asked[name] = number + 1
        return (answers[min(number, len(answers) - 1)],)

    def dial(self, address: str, port: int) -> DialTarget:
        return self.dials.get(address) or DialTarget(address, port)


def open_resolver(hosts_file: Path | None) -> Resolver:
    """The resolver of a hosts file, else the system's; raises ConfigurationError."""
    if hosts_file is None:
        return SystemResolver()
    try:
        table = _HostsFile.model_validate(parse_json(hosts_file.read_text(encoding="utf-8")))
        dials = {address: _dial_target(place) for address, place in table.dial.items()}
    except (OSError, UnicodeError, PlainDataError, ValidationError, ValueError) as error:
        reason = (getattr(error, "strerror", "") or str(error)).partition("\n")[0]
        raise ConfigurationError(f"{hosts_file}: {reason}: expected {_EXPECTED}") from error
    return HostsFileResolver({name.lower(): answers for name, answers in table.resolver.items()}, dials)


def _dial_target(place: str) -> DialTarget:
    host, _, port = place.rpartition(":")
    return DialTarget(host.strip("[]"), int(port))
