"""Fetches pages: every address of the way is judged, robots.txt decides, a host has one request at a time, limits end what is large,
slow or endless."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic

from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.errors import FetchFailedError, FetchRefusedError
from pandora_dagster.tools.egress.address_guard import CheckedAddress
from pandora_dagster.tools.egress.polite_client import HostTurn, PoliteClient, join_address
from pandora_dagster.tools.egress.web_budget import WebBudget
from pandora_dagster.tools.egress.web_client import Answer, WebRequest

READABLE_TYPES = frozenset(
    {"text/html", "application/xhtml+xml", "text/plain", "text/markdown", "application/json", "application/ld+json", "application/pdf"}
)
_NOT_MODIFIED = 304
_RETRIES = 2
"""How often a page is asked for again after 429 or 503 with a time to wait."""


@dataclass(frozen=True, slots=True)
class PageFetcher:
    """The Fetcher port over real connections."""

    out: PoliteClient
    budget: WebBudget

    def fetch(self, url: str, *, deadline_s: float, known: FetchedPage | None = None) -> FetchedPage:
        deadline = monotonic() + min(deadline_s, self.budget.seconds_left)
        address = self.out.check(url, deadline)
        hops: list[str] = []
        notices: list[str] = []
        while True:
            hops.append(address.url)
            conditions = _conditions(known) if known and known.final_url == address.url else {}
            answer = self._ask(address, deadline, conditions)
            if not answer.location:
                fetched_at = datetime.fromtimestamp(self.out.clock(), UTC)
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

    def _redirect(self, address: CheckedAddress, answer: Answer, hops: list[str], deadline: float) -> CheckedAddress:
        """The next address of a redirect, judged like the first; raises FetchRefusedError."""
        try:
            following = self.out.check(join_address(address.url, answer.location), deadline)
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
        with self.out.host_turn(address, deadline, self.budget) as turn:
            for retries_left in range(_RETRIES, -1, -1):
                if retries_left < _RETRIES:
                    self.budget.take_page(address.host)
                turn.wait(turn.delay_s)
                request = WebRequest(headers=conditions)
                answer = turn.send(self.budget.page_bytes(), lambda answer: _is_readable(answer, address), request)
                if answer.status != 429 and answer.status < 500:
                    return answer
                self._wait_after(answer, turn, is_last=not retries_left)
        raise AssertionError

    def _wait_after(self, answer: Answer, turn: HostTurn, *, is_last: bool) -> None:
        """Wait as long as a 503 asks for; raises FetchFailedError where that, or the wait of a 429, is too long, or for any other failure.

        A 429 is about all requests to the host, which is remembered with the host; a 503 is about one page."""
        clock = self.out.clock
        wait_s = turn.held.record.not_before - clock() if answer.status == 429 else answer.retry_after_s(clock())
        if is_last or answer.status not in (429, 503) or wait_s is None or wait_s > turn.longest_wait_s:
            asks = "" if wait_s is None else f" and asks to wait {wait_s:.0f} s"
            raise FetchFailedError(f"{turn.address.url}: the server answers {answer.status}{asks}", retryable=True)
        if answer.status == 503:
            self.out.sleep(wait_s)


def _conditions(known: FetchedPage) -> dict[str, str]:
    """The headers that ask for a page only where it has changed since it was `known`."""
    names = {"If-None-Match": "etag", "If-Modified-Since": "last-modified"}
    return {header: value for header, name in names.items() if (value := known.headers.get(name, "")) and value.isascii()}


def _is_readable(answer: Answer, address: CheckedAddress) -> bool:
    """Whether the body of an answer is a page; raises FetchRefusedError where its type cannot be read."""
    if answer.location or answer.status in (_NOT_MODIFIED, 429) or answer.status >= 500:
        return False
    media_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type and media_type not in READABLE_TYPES:
        raise FetchRefusedError(f"{address.url}: {media_type[:80]} is no page that can be read", rule="content type")
    return True
