"""What one command or turn may ask of the web: pages, hosts, bytes and seconds. Shared by its threads."""

import threading
from dataclasses import dataclass
from time import monotonic

from pandora_dagster.contracts.web.fetched import WebAccount, WebAccounts
from pandora_dagster.errors import FetchRefusedError


@dataclass(frozen=True, slots=True)
class WebLimits:
    """The limits of requests; the first four are of one command or turn together."""

    pages: int
    hosts: int
    total_bytes: int
    seconds: float
    page_bytes: int
    page_seconds: float
    """Of one request: connection, headers and body."""
    hops: int
    """Redirects that are followed."""
    delay_s: float
    """Least seconds between the end of a request to a host and the next one to it."""


class WebBudget:
    """Counts requests against limits; raises FetchRefusedError with the limit that is used up.

    `accounts` keeps what is used, each request before it is sent; None for a command, whose budget ends with its process.
    """

    def __init__(self, limits: WebLimits, accounts: WebAccounts | None = None) -> None:
        self.limits = limits
        self._accounts = accounts
        self._lock = threading.Lock()
        used = accounts.load() if accounts else WebAccount()
        self._begin = monotonic() - used.seconds
        self._pages = used.pages
        self._bytes = used.bytes
        self._hosts = set(used.hosts)

    @property
    def spent(self) -> tuple[int, int]:
        """The pages and bytes so far."""
        with self._lock:
            return self._pages, self._bytes

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._begin + self.limits.seconds - monotonic())

    def take_page(self, host: str) -> None:
        """Count one request for a page of `host`."""
        with self._lock:
            if self.seconds_left <= 0:
                raise _used_up(f"{self.limits.seconds:.0f} seconds")
            if self._pages >= self.limits.pages:
                raise _used_up(f"{self.limits.pages} pages")
            if host not in self._hosts and len(self._hosts) >= self.limits.hosts:
                raise _used_up(f"{self.limits.hosts} hosts")
            self._pages += 1
            self._hosts.add(host)
            self._save()

    def page_bytes(self) -> int:
        """The most bytes that the next body may have."""
        with self._lock:
            left = self.limits.total_bytes - self._bytes
        if left <= 0:
            raise _used_up(f"{self.limits.total_bytes:,} bytes")
        return min(left, self.limits.page_bytes)

    def spend(self, number: int) -> None:
        """Count the bytes of a body."""
        with self._lock:
            self._bytes += number
            self._save()

    def _save(self) -> None:
        if self._accounts:
            seconds = monotonic() - self._begin
            self._accounts.save(WebAccount(pages=self._pages, bytes=self._bytes, seconds=seconds, hosts=tuple(sorted(self._hosts))))


def _used_up(limit: str) -> FetchRefusedError:
    return FetchRefusedError(f"the budget of {limit} is used up", rule="budget", hint="docs/guides/read-web-pages.md lists the limits")
