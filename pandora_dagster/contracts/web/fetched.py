"""A fetched page, the port that fetches it, and what is remembered of a host between requests."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Protocol

from pydantic import Field

from pandora_dagster.contracts.strict_model import StrictModel


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """What a server answered to the request for a page, with any status but 429 and 5xx."""

    url: str
    """The address that was asked for, in normal form."""
    final_url: str
    """The address that answered, after redirects."""
    status: int
    headers: Mapping[str, str]
    """The headers of the answer by their names in lower case."""
    body: bytes
    """The body without its content encoding."""
    fetched_at: datetime
    """Aware, UTC."""
    hops: tuple[str, ...] = ()
    """Every address that was asked, in order: the first is `url`, the last `final_url`."""
    notices: tuple[str, ...] = ()
    """What a reader of the page should know of the way to it, such as a redirect from https to http."""


class Fetcher(Protocol):
    """The way out to the web. Callers on several threads may share one."""

    def fetch(self, url: str, *, deadline_s: float, known: FetchedPage | None = None) -> FetchedPage:
        """The page at `url` within `deadline_s` seconds, waits for the host included.

        `known`: the page as it was fetched before; where the server answers that it has not changed, its body is that of `known`.

        Raises FetchRefusedError where a rule forbids it, FetchFailedError where the server or the network failed.
        """
        ...


Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RobotsAnswer(StrictModel):
    """What a host answered to the request for its robots.txt. `unavailable` says why nothing may be fetched, "" where `text` decides."""

    text: str
    unavailable: str
    until: Seconds
    """Unix time after which robots.txt is asked for again."""


class HostRecord(StrictModel):
    """What is remembered of one host and port between requests of all processes of a store."""

    released_at: Seconds = 0.0
    """Unix time at which the last request ended; 0 before the first."""
    not_before: Seconds = 0.0
    """Unix time before which the host asked for no request (Retry-After)."""
    robots: RobotsAnswer | None = None


class WebAccount(StrictModel):
    """What a command or turn has used of its budget."""

    pages: Annotated[int, Field(ge=0)] = 0
    bytes: Annotated[int, Field(ge=0)] = 0
    seconds: Seconds = 0.0
    hosts: tuple[str, ...] = ()


class WebAccounts(Protocol):
    """Keeps the account of one turn or run, so that one that was killed goes on with what is left."""

    def load(self) -> WebAccount:
        """The stored account; an empty one where there is none."""
        ...

    def save(self, account: WebAccount) -> None:
        """Raises StoreError."""
        ...


class HostHold(Protocol):
    """A host that the holder alone may send requests to."""

    @property
    def record(self) -> HostRecord: ...

    @record.setter
    def record(self, record: HostRecord) -> None:
        """Stored at once: a process that is killed while it waits for the host leaves what the host asked for."""
        ...


class HostRecords(Protocol):
    """One holder of a host at a time, over all threads and processes of a store."""

    def hold(self, host: str, *, wait_s: float) -> AbstractContextManager[HostHold]:
        """Hold `host` (a name and port); raises FetchFailedError where another holder keeps it longer than `wait_s` seconds."""
        ...
