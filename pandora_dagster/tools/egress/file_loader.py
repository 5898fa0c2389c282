"""Loads the files that a page needs in a browser: scripts, style sheets, data, frames. The browser itself has no way out."""

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from time import monotonic

from pandora_dagster.errors import FetchError, FetchFailedError, FetchRefusedError
from pandora_dagster.tools.egress.address_guard import CheckedAddress
from pandora_dagster.tools.egress.polite_client import PoliteClient, join_address
from pandora_dagster.tools.egress.web_budget import BYTES_RULE, FileBudget
from pandora_dagster.tools.egress.web_client import Answer, WebRequest

_UNSENT = frozenset({"cookie", "content-length", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"})
"""Headers of a browser's request that are of its connection, or that the client writes itself."""
_UNPASSED = frozenset({"connection", "content-encoding", "content-length", "keep-alive", "trailer", "transfer-encoding", "upgrade"})
"""Headers of an answer that say nothing of its unpacked body."""
_KEEP_METHOD = (307, 308)
_FILE_SECONDS = 10.0
"""Of one request: no page is waited for longer to become quiet."""


@dataclass(frozen=True, slots=True)
class FileRequest:
    """A file as a browser asks for it. `delayed`: whether its request keeps the delay of its host."""

    url: str
    method: str
    headers: Mapping[str, str]
    body: bytes
    cookies: str
    delayed: bool
    allows: Callable[[str], bool]
    """Whether the file may come from an address that a redirect leads to."""


@dataclass(slots=True)
class FileLoader:
    """The files of one page. Callers on several threads share one."""

    out: PoliteClient
    budget: FileBudget
    deadline: float
    """By the monotonic clock: no file waits or comes longer."""
    refused: Counter[str] = field(default_factory=Counter[str])
    """How many files did not come, by the rule."""
    waiting: int = 0
    """How many files wait for the turn of their host now."""
    _lock: Lock = field(default_factory=Lock)

    def load(self, request: FileRequest) -> Answer | None:
        """The answer after redirects, with its unpacked body; None where it may not come or does not, which `refused` counts."""
        try:
            return self._load(request)
        except FetchError as error:
            with self._lock:
                self.refused[error.rule if isinstance(error, FetchRefusedError) else "no answer"] += 1
            return None

    def close(self) -> None:
        """Let no further request be sent."""
        self.deadline = monotonic()

    def _load(self, request: FileRequest) -> Answer:
        address = self.out.check(request.url, self.deadline)
        headers = {name: value for name, value in request.headers.items() if name not in _UNSENT and not name.startswith("sec-")}
        asked = WebRequest(request.method, headers | ({"cookie": request.cookies} if request.cookies else {}), request.body)
        for _ in range(self.out.limits.hops + 1):
            answer = self._ask(address, asked, delayed=request.delayed)
            if not answer.location:
                return replace(answer, headers={name: value for name, value in answer.headers.items() if name not in _UNPASSED})
            following = self.out.check(join_address(address.url, answer.location), self.deadline)
            if (address.scheme, following.scheme) == ("https", "http") or not request.allows(following.url):
                raise FetchRefusedError(f"{address.url} redirects to {following.url}", rule="redirect")
            if answer.status not in _KEEP_METHOD and asked.method != "HEAD":
                asked = WebRequest("GET", {name: value for name, value in asked.headers.items() if name != "content-type"})
            if following.origin != address.origin:
                asked = replace(asked, headers={n: v for n, v in asked.headers.items() if n not in ("authorization", "cookie")})
            address = following
        raise FetchRefusedError(f"{request.url}: over {self.out.limits.hops} redirects", rule="redirects")

    def _ask(self, address: CheckedAddress, request: WebRequest, *, delayed: bool) -> Answer:
        """The answer of one address, in the host's turn."""
        self.budget.take_file(address.host)
        with ExitStack() as stack:
            with self._counted_wait():
                turn = stack.enter_context(self.out.host_turn(address, self.deadline, self.budget))
                try:
                    turn.wait(turn.delay_s if delayed else 0.0)
                except FetchFailedError as error:
                    raise FetchRefusedError(str(error), rule="delay of the host") from error
            turn.deadline = min(turn.deadline, monotonic() + _FILE_SECONDS)
            most = self.budget.answer_bytes(self.out.limits.page_bytes)
            try:
                return turn.send(most, lambda answer: not answer.location, request)
            except FetchRefusedError as error:
                raise FetchRefusedError(str(error), rule=BYTES_RULE if error.rule == "size" else error.rule) from error

    @contextmanager
    def _counted_wait(self) -> Generator[None]:
        with self._lock:
            self.waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self.waiting -= 1
