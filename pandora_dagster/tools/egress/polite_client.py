"""The one way to hosts of the web, for pages and for the files that a browser loads: a host has one request at a time, with its delay, none
before it asked for, and none that its robots.txt forbids; each request counts in the budget before it is sent."""

import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic
from urllib.parse import urljoin

from pandora_dagster.contracts.web.fetched import HostHold, HostRecords, RobotsAnswer
from pandora_dagster.errors import FetchError, FetchFailedError, FetchRefusedError
from pandora_dagster.tools.egress import robots
from pandora_dagster.tools.egress.address_guard import AddressGuard, CheckedAddress
from pandora_dagster.tools.egress.web_budget import LIMIT_RULES, RequestBudget, WebLimits
from pandora_dagster.tools.egress.web_client import GET, Answer, WebClient, WebRequest

MAX_NOT_BEFORE_S = 24 * 3600.0
_ROBOTS_SECONDS = 10.0
_ROBOTS_HOPS = 5
_DEFAULT_RETRY_AFTER_S = 10.0
"""After 429 without a readable Retry-After."""
_REFUSALS = frozenset({"address", "address form", "scheme", "port", "credentials"})


@dataclass(frozen=True, slots=True)
class PoliteClient:
    """Sends requests; what it remembers of hosts is shared with the other processes of a store."""

    guard: AddressGuard
    client: WebClient
    hosts: HostRecords
    limits: WebLimits
    clock: Callable[[], float] = time.time
    """Unix time."""
    sleep: Callable[[float], None] = time.sleep

    def check(self, url: str, deadline: float) -> CheckedAddress:
        """The address of `url` as the guard judges it; raises FetchError."""
        return self.guard.check(url, timeout_s=min(max(0.0, deadline - monotonic()), self.limits.page_seconds))

    @contextmanager
    def host_turn(self, address: CheckedAddress, deadline: float, budget: RequestBudget) -> Generator["HostTurn"]:
        """The turn of the caller at the host of an address that robots.txt allows; raises FetchError. `budget` counts the bytes, and the
        requests for robots.txt."""
        with self.hosts.hold(_place_of(address), wait_s=max(0.0, deadline - monotonic())) as held:
            turn = HostTurn(self, held, address, deadline, budget)
            turn.obey_robots()
            yield turn


@dataclass(slots=True)
class HostTurn:
    """A host that the holder alone sends requests to, until `deadline` by the monotonic clock."""

    out: PoliteClient
    held: HostHold
    address: CheckedAddress
    deadline: float
    budget: RequestBudget
    delay_s: float = field(default=0.0, init=False)
    """The seconds between requests that the settings and robots.txt ask for."""

    def obey_robots(self) -> None:
        """Raises FetchRefusedError where robots.txt forbids the address."""
        rules = self._rules()
        if not robots.is_allowed(rules, self.address.url):
            reason = f"robots.txt of {self.address.authority} {rules.unavailable or 'disallows it'}"
            raise FetchRefusedError(f"{self.address.url}: {reason}", rule="robots")
        self.delay_s = max(self.out.limits.delay_s, robots.crawl_delay_s(rules))

    def wait(self, delay_s: float) -> None:
        """Wait until `delay_s` after the last request, and as long as the host asks for; raises FetchFailedError where that is longer than
        the time left."""
        now, record = self.out.clock(), self.held.record
        last = min(record.released_at, now)  # a clock that was set back counts from now
        asked_s = min(record.not_before - now, MAX_NOT_BEFORE_S)
        pause_s = max(last + delay_s - now if last else 0.0, asked_s)
        if asked_s > self.longest_wait_s or pause_s >= self.deadline - monotonic():
            reason = f"the host asks to wait {pause_s:.0f} s before the next request"
            raise FetchFailedError(f"{self.address.url}: {reason}, which is too long", retryable=True)
        if pause_s > 0:
            self.out.sleep(pause_s)

    @property
    def longest_wait_s(self) -> float:
        """The longest wait that a host may ask for."""
        return min(self.out.limits.page_seconds, self.deadline - monotonic())

    def send(self, max_bytes: int, reads: Callable[[Answer], bool], request: WebRequest = GET) -> Answer:
        """One request to the address, counted in bytes; a 429 is remembered with the host. Raises FetchError."""
        timeout_s = min(self.out.limits.page_seconds, self.deadline - monotonic())
        self._record_request()  # also of a process that is killed before the answer
        try:
            return self._send(self.held, self.address, request, timeout_s, max_bytes, reads)
        finally:
            self._record_request()

    def _record_request(self) -> None:
        self.held.record = self.held.record.model_copy(update={"released_at": self.out.clock()})

    def _send(
        self,
        held: HostHold,
        address: CheckedAddress,
        request: WebRequest,
        timeout_s: float,
        max_bytes: int,
        reads: Callable[[Answer], bool],
    ) -> Answer:
        out = self.out
        answer = out.client.send(address, request, timeout_s=timeout_s, max_bytes=max_bytes, reads=reads, count=self.budget.spend)
        if answer.status == 429:
            wait_s = answer.retry_after_s(out.clock())
            wait_s = min(_DEFAULT_RETRY_AFTER_S if wait_s is None else wait_s, MAX_NOT_BEFORE_S)
            held.record = held.record.model_copy(update={"not_before": out.clock() + wait_s})
        return answer

    def _rules(self) -> RobotsAnswer:
        """What robots.txt of the host says, asked for at most once a day; kept with the host."""
        rules, now = self.held.record.robots, self.out.clock()
        if rules is None or not now < rules.until <= now + MAX_NOT_BEFORE_S:
            self.wait(0.0)
            has_time = self.deadline - monotonic() >= _ROBOTS_SECONDS
            has_room = self.budget.answer_bytes(robots.MAX_ROBOTS_BYTES) == robots.MAX_ROBOTS_BYTES
            rules = self._fetch_rules()
            if (has_time and has_room) or not rules.unavailable:  # a short deadline of ours says nothing about the host
                self.held.record = self.held.record.model_copy(update={"robots": rules})
        return rules

    def _fetch_rules(self) -> RobotsAnswer:
        """robots.txt of the host; of a redirect, each host is held for its own request."""
        out, asked = self.out, replace(self.address, target="/robots.txt")
        held = {_place_of(asked): self.held}
        try:
            with ExitStack() as stack:
                for _ in range(_ROBOTS_HOPS + 1):
                    self.budget.take_file(asked.host)
                    timeout_s = min(_ROBOTS_SECONDS, max(0.0, self.deadline - monotonic()))
                    if (place := _place_of(asked)) not in held:
                        held[place] = stack.enter_context(out.hosts.hold(place, wait_s=timeout_s))
                        HostTurn(out, held[place], asked, monotonic() + timeout_s, self.budget).wait(0.0)
                    answer = self._send(held[place], asked, GET, timeout_s, self.budget.answer_bytes(robots.MAX_ROBOTS_BYTES), _has_rules)
                    if not answer.location:
                        break
                    asked = out.check(join_address(asked.url, answer.location), self.deadline)
                else:
                    return robots.unavailable(f"redirects over {_ROBOTS_HOPS} times", out.clock())
        except FetchRefusedError as error:
            if error.rule in LIMIT_RULES:
                raise
            return robots.unavailable(f"{'redirects to' if error.rule in _REFUSALS else 'cannot be read:'} {error}", out.clock())
        except FetchError as error:
            return robots.unavailable(f"does not come: {error}", out.clock())
        if answer.status == 429 or answer.status >= 500:
            return robots.unavailable(f"is answered with {answer.status}", out.clock())
        return robots.rules_of(answer.body.decode("utf-8-sig", "replace"), out.clock())


def join_address(base: str, location: str) -> str:
    """The target of a redirect; blanks in it are written as %20, as browsers do."""
    try:
        return urljoin(base, location.strip().replace(" ", "%20"))
    except ValueError:
        return location


def _place_of(address: CheckedAddress) -> str:
    return f"{address.host}:{address.port}"


def _has_rules(answer: Answer) -> bool:
    return 200 <= answer.status < 300
