"""SearXNG's JSON API as a SearchProvider. Its address is the administrator's choice and may be internal: it alone is not judged by the
guard. What it answers is judged when it is visited."""

from dataclasses import dataclass
from time import monotonic
from urllib.parse import urlencode

from pandora_dagster.contracts.web.search import SearchHits
from pandora_dagster.documents.plain_json import PlainDataError, parse_json_object
from pandora_dagster.errors import FetchFailedError
from pandora_dagster.tools.egress.address_guard import CheckedAddress
from pandora_dagster.tools.egress.resolver import Resolver
from pandora_dagster.tools.egress.web_client import Answer, WebClient
from pandora_dagster.tools.search.result_rows import hits_of

_MAX_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The configured address of a service: scheme, host, port and path."""

    scheme: str
    host: str
    port: int
    path: str


@dataclass(frozen=True, slots=True)
class SearxngProvider:
    """Asks one SearXNG instance."""

    address: ServiceAddress
    client: WebClient
    resolver: Resolver
    name: str = "searxng"
    timeout_s: float = 10.0

    def search(self, query: str, *, page: int, language: str) -> SearchHits:
        fields = {"q": query, "format": "json", "pageno": str(page)} | ({"language": language} if language else {})
        deadline = monotonic() + self.timeout_s
        at = self.address
        dials = tuple(self.resolver.dial(ip, at.port) for ip in self.resolver.addresses(at.host, timeout_s=self.timeout_s))
        asked = CheckedAddress(at.scheme, at.host, at.port, f"{at.path}?{urlencode(fields)}", dials)
        answer = self.client.send(asked, timeout_s=max(0.1, deadline - monotonic()), max_bytes=_MAX_BYTES, reads=_is_ok)
        if answer.status != 200:
            raise FetchFailedError(f"{self.name}: the search service answers {answer.status}", retryable=answer.status in (429, 503))
        try:
            rows = parse_json_object(answer.body).get("results")
        except PlainDataError as error:
            raise FetchFailedError(f"{self.name}: the answer is no JSON: {error}") from error
        if not isinstance(rows, list):
            raise FetchFailedError(f"{self.name}: the answer has no list of results")
        return hits_of(rows)  # pyright: ignore[reportUnknownArgumentType]


def _is_ok(answer: Answer) -> bool:
    return answer.status == 200
