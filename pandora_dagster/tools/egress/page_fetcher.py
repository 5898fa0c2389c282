"""Fetches pages: every address of the way is judged, robots.txt decides, a host has one request at a time, limits end what is large,
slow or endless."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from urllib.parse import urljoin

from pandora_dagster.contracts.web.fetched import FetchedPage, HostHold, HostRecords, RobotsAnswer
from pandora_dagster.errors import FetchError, FetchFailedError, FetchRefusedError
from pandora_dagster.tools.egress import robots
from pandora_dagster.tools.egress.address_guard import AddressGuard, CheckedAddress
from pandora_dagster.tools.egress.web_budget import WebBudget
from pandora_dagster.tools.egress.web_client import Answer, WebClient

READABLE_TYPES = frozenset(
    {"text/html", "application/xhtml+xml", "text/plain", "text/markdown", "application/json", "application/ld+json", "application/pdf"}
)
_ROBOTS_SECONDS = 10.0
_ROBOTS_HOPS = 5
_NOT_MODIFIED = 304
_RETRIES = 2
"""How often a page is asked for again after 429 or 503 with a time to wait."""
_DEFAULT_RETRY_AFTER_S = 10.0
"""After 429 without a readable Retry-After."""
_MAX_NOT_BEFORE_S = 24 * 3600.0
_REFUSALS = frozenset({"address", "address form", "scheme", "port", "credentials"})


@dataclass(frozen=True, slots=True)
class PageFetcher:
    """The Fetcher port over real connections."""

    guard: AddressGuard
    client: WebClient
    hosts: HostRecords
    budget: WebBudget
    clock: Callable[[], float] = time.time
    """Unix time: what is remembered of hosts is shared with other processes."""
    sleep: Callable[[float], None] = time.sleep

    def fetch(self, url: str, *, deadline_s: float, known: FetchedPage | None = None) -> FetchedPage:
        deadline = monotonic() + min(deadline_s, self.budget.seconds_left)
        address = self._check(url, deadline)
        hops: list[str] = []
        notices: list[str] = []
        while True:
            hops.append(address.url)
            conditions = _conditions(known) if known and known.final_url == address.url else {}
            answer = self._ask(address, deadline, conditions)
            if not answer.location:
                fetched_at = datetime.fromtimestamp(self.clock(), UTC)
                if answer.status == _NOT_MODIFIED and known and conditions:
                    unchanged = f"not changed since {known.fetched_at:%Y-%m-%dT%H:%M:%SZ}: the server sent no body"
                    return replace(
                        known, url=hops[0], fetched_at=fetched_at, hops=tuple(hops), notices=(*known.notices, *notices, unchanged)
                    )
                return FetchedPage(
                    hops[0], address.url, answer.status, answer.headers, answer.body, fetched_at, tuple(hops), tuple(notices)
                )
            following = self._redirect(address, answer, hops, deadline)
            if (address.scheme, following.scheme) == ("https", "http"):
                notices.append(f"{address.url} redirects to {following.url}, which is not encrypted")
            address = following

    def robots_of(self, url: str, *, deadline_s: float) -> RobotsAnswer:
        """What robots.txt of a host says, for the files that a page loads from it; raises FetchError."""
        deadline = monotonic() + min(deadline_s, self.budget.seconds_left)
        address = self._check(url, deadline)
        with self.hosts.hold(f"{address.host}:{address.port}", wait_s=max(0.0, deadline - monotonic())) as held:
            return self._robots(held, address, deadline)

    def _check(self, url: str, deadline: float) -> CheckedAddress:
        return self.guard.check(url, timeout_s=min(max(0.0, deadline - monotonic()), self.budget.limits.page_seconds))

    def _redirect(self, address: CheckedAddress, answer: Answer, hops: list[str], deadline: float) -> CheckedAddress:
        """The next address of a redirect, judged like the first; raises FetchRefusedError."""
        try:
            following = self._check(_join(address.url, answer.location), deadline)
        except FetchRefusedError as error:
            raise FetchRefusedError(f"{address.url} redirects to {error}", rule=error.rule) from error
        if following.url in hops:
            way = " -> ".join([*hops[hops.index(following.url) :], following.url])
            raise FetchFailedError(f"a loop of redirects: {way}")
        if len(hops) > self.budget.limits.hops:
            raise FetchRefusedError(f"{hops[0]}: over {self.budget.limits.hops} redirects, the last to {following.url}", rule="redirects")
        return following

    def _ask(self, address: CheckedAddress, deadline: float, conditions: Mapping[str, str]) -> Answer:
        """The answer of one address, in the host's turn."""
        self.budget.take_page(address.host)
        with self.hosts.hold(f"{address.host}:{address.port}", wait_s=max(0.0, deadline - monotonic())) as held:
            rules = self._robots(held, address, deadline)
            if not robots.is_allowed(rules, address.url):
                reason = f"robots.txt of {address.authority} {rules.unavailable or 'disallows it'}"
                raise FetchRefusedError(f"{address.url}: {reason}", rule="robots")
            delay_s = max(self.budget.limits.delay_s, robots.crawl_delay_s(rules))
            for retries_left in range(_RETRIES, -1, -1):
                self._wait_for_turn(held, address, delay_s, deadline)
                answer = self._request(held, address, deadline, conditions)
                if answer.status == 429 or answer.status >= 500:
                    self._wait_after(answer, held, address, deadline, is_last=not retries_left)
                else:
                    return answer
            raise AssertionError

    def _wait_after(self, answer: Answer, held: HostHold, address: CheckedAddress, deadline: float, *, is_last: bool) -> None:
        """Wait as long as a 429 or 503 asks for; raises FetchFailedError where that is too long, or for any other failure.

        A 429 is about all requests to the host, so that it is remembered with the host; a 503 is about one page."""
        wait_s = answer.retry_after_s(self.clock())
        if answer.status == 429:
            wait_s = _DEFAULT_RETRY_AFTER_S if wait_s is None else wait_s
            held.record = held.record.model_copy(update={"not_before": self.clock() + min(wait_s, _MAX_NOT_BEFORE_S)})
        asks = "" if wait_s is None else f" and asks to wait {wait_s:.0f} s"
        if is_last or answer.status not in (429, 503) or wait_s is None or wait_s > self._longest_wait_s(deadline):
            raise FetchFailedError(f"{address.url}: the server answers {answer.status}{asks}", retryable=True)
        if answer.status == 503:
            self.sleep(wait_s)

    def _longest_wait_s(self, deadline: float) -> float:
        return min(self.budget.limits.page_seconds, deadline - monotonic())

    def _wait_for_turn(self, held: HostHold, address: CheckedAddress, delay_s: float, deadline: float) -> None:
        """Wait as long as the host asks for; raises FetchFailedError where that is longer than the time left."""
        now, record = self.clock(), held.record
        last = min(record.released_at, now)  # a clock that was set back counts from now
        asked_s = min(record.not_before - now, _MAX_NOT_BEFORE_S)
        pause_s = max(last + delay_s - now if last else 0.0, asked_s)
        if asked_s > self._longest_wait_s(deadline) or pause_s >= deadline - monotonic():
            reason = f"the host asks to wait {pause_s:.0f} s before the next request"
            raise FetchFailedError(f"{address.url}: {reason}, which is too long", retryable=True)
        if pause_s > 0:
            self.sleep(pause_s)

    def _request(self, held: HostHold, address: CheckedAddress, deadline: float, conditions: Mapping[str, str]) -> Answer:
        """One request for a page."""
        try:
            answer = self.client.get(
                address,
                timeout_s=min(self.budget.limits.page_seconds, deadline - monotonic()),
                max_bytes=self.budget.page_bytes(),
                reads=lambda answer: _is_readable(answer, address),
                conditions=conditions,
            )
        finally:
            held.record = held.record.model_copy(update={"released_at": self.clock()})
        self.budget.spend(len(answer.body))
        return answer

    def _robots(self, held: HostHold, address: CheckedAddress, deadline: float) -> RobotsAnswer:
        """What robots.txt of the host says, asked for at most once a day; kept with the host."""
        rules, now = held.record.robots, self.clock()
        if rules is None or not now < rules.until <= now + _MAX_NOT_BEFORE_S:
            has_time = deadline - monotonic() >= _ROBOTS_SECONDS
            rules = self._fetch_robots(address, deadline)
            if has_time or not rules.unavailable:  # a short deadline of ours says nothing about the host
                held.record = held.record.model_copy(update={"robots": rules})
        return rules

    def _fetch_robots(self, address: CheckedAddress, deadline: float) -> RobotsAnswer:
        asked = replace(address, target="/robots.txt")
        try:
            for _ in range(_ROBOTS_HOPS + 1):
                timeout_s = min(_ROBOTS_SECONDS, max(0.0, deadline - monotonic()))
                answer = self.client.get(asked, timeout_s=timeout_s, max_bytes=robots.MAX_ROBOTS_BYTES, reads=_has_rules)
                if not answer.location:
                    break
                asked = self._check(_join(asked.url, answer.location), deadline)
            else:
                return robots.unavailable(f"redirects over {_ROBOTS_HOPS} times", self.clock())
        except FetchRefusedError as error:
            if error.rule in _REFUSALS:
                return robots.unavailable(f"redirects to {error}", self.clock())
            return robots.unavailable(f"cannot be read: {error}", self.clock())
        except FetchError as error:
            return robots.unavailable(f"does not come: {error}", self.clock())
        if answer.status == 429 or answer.status >= 500:
            return robots.unavailable(f"is answered with {answer.status}", self.clock())
        self.budget.spend(len(answer.body))
        return robots.rules_of(answer.body.decode("utf-8-sig", "replace"), self.clock())


def _conditions(known: FetchedPage) -> dict[str, str]:
    """The headers that ask for a page only where it has changed since it was `known`."""
    names = {"If-None-Match": "etag", "If-Modified-Since": "last-modified"}
    return {header: value for header, name in names.items() if (value := known.headers.get(name, "")) and value.isascii()}


def _has_rules(answer: Answer) -> bool:
    return 200 <= answer.status < 300


def _is_readable(answer: Answer, address: CheckedAddress) -> bool:
    """Whether the body of an answer is a page; raises FetchRefusedError where its type cannot be read."""
    if answer.location or answer.status in (_NOT_MODIFIED, 429) or answer.status >= 500:
        return False
    media_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type and media_type not in READABLE_TYPES:
        raise FetchRefusedError(f"{address.url}: {media_type[:80]} is no page that can be read", rule="content type")
    return True


def _join(base: str, location: str) -> str:
    """The target of a redirect; blanks in it are written as %20, as browsers do."""
    try:
        return urljoin(base, location.strip().replace(" ", "%20"))
    except ValueError:
        return location
