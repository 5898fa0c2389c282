"""What one command or turn may ask of the web, and what a browser may load for one page. Shared by threads."""

import threading
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from pandora_dagster.contracts.web.fetched import WebAccount, WebAccounts
from pandora_dagster.errors import FetchRefusedError

BUDGET_RULE, REQUESTS_RULE, HOSTS_RULE, BYTES_RULE = "budget", "requests of the page", "hosts of the page", "bytes of the page"
LIMIT_RULES = frozenset({BUDGET_RULE, REQUESTS_RULE, HOSTS_RULE, BYTES_RULE})
"""The rules of refusals that say something of the limits of this program, and nothing of a host."""


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


class RequestBudget(Protocol):
    """What counts requests before they are sent, and the bytes that come for them. Raises FetchRefusedError."""

    def take_file(self, host: str) -> None:
        """Count one request to `host` for what is no page."""
        ...

    def answer_bytes(self, most: int) -> int:
        """The most bytes that the next answer may have: `most`, or what is left."""
        ...

    def spend(self, number: int) -> None:
        """Count the bytes that came for a request."""
        ...


class WebBudget:
    """Counts requests against limits; raises FetchRefusedError with the limit that is used up.

    A page counts as a page; a robots.txt and a file that a browser loads for a page do not. Hosts, bytes and seconds count for all of them.

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
        """Count one request for a page of `host`, before it is sent."""
        self._take(host, pages=1)

    def take_file(self, host: str) -> None:
        self._take(host, pages=0)

    def _take(self, host: str, *, pages: int) -> None:
        with self._lock:
            if self.seconds_left <= 0:
                raise _used_up(f"{self.limits.seconds:.0f} seconds")
            if self._pages + pages > self.limits.pages:
                raise _used_up(f"{self.limits.pages} pages")
            if self._bytes >= self.limits.total_bytes:
                raise _used_up(f"{self.limits.total_bytes:,} bytes")
            if host not in self._hosts and len(self._hosts) >= self.limits.hosts:
                raise _used_up(f"{self.limits.hosts} hosts")
            if pages or host not in self._hosts:
                self._pages += pages
                self._hosts.add(host)
                self._save()

    def page_bytes(self) -> int:
        """The most bytes that the next page may have."""
        return self.answer_bytes(self.limits.page_bytes)

    def answer_bytes(self, most: int) -> int:
        with self._lock:
            left = self.limits.total_bytes - self._bytes
        if left <= 0:
            raise _used_up(f"{self.limits.total_bytes:,} bytes")
        return min(left, most)

    def spend(self, number: int) -> None:
        with self._lock:
            self._bytes += number
            self._save()

    def _save(self) -> None:
        if self._accounts:
            seconds = monotonic() - self._begin
            self._accounts.save(WebAccount(pages=self._pages, bytes=self._bytes, seconds=seconds, hosts=tuple(sorted(self._hosts))))


class FileBudget:
    """What a browser may load for one page, within the budget of the command or turn."""

    def __init__(self, whole: WebBudget, *, requests: int, hosts: int, total_bytes: int) -> None:
        self._whole = whole
        self._requests = requests
        self._max_hosts = hosts
        self._bytes = total_bytes
        self._hosts = set[str]()
        self._lock = threading.Lock()

    def take_file(self, host: str) -> None:
        with self._lock:
            if self._requests <= 0:
                raise FetchRefusedError(f"{host}: over the requests of one page", rule=REQUESTS_RULE)
            if host not in self._hosts and len(self._hosts) >= self._max_hosts:
                raise FetchRefusedError(f"{host}: over {self._max_hosts} hosts of one page", rule=HOSTS_RULE)
            self._whole.take_file(host)
            self._requests -= 1
            self._hosts.add(host)

    def answer_bytes(self, most: int) -> int:
        with self._lock:
            if self._bytes <= 0:
                raise FetchRefusedError("over the bytes of one page", rule=BYTES_RULE)
            return self._whole.answer_bytes(min(self._bytes, most))

    def spend(self, number: int) -> None:
        with self._lock:
            self._bytes -= number
        self._whole.spend(number)


def _used_up(limit: str) -> FetchRefusedError:
    return FetchRefusedError(f"the budget of {limit} is used up", rule=BUDGET_RULE, hint="docs/guides/read-web-pages.md lists the limits")
