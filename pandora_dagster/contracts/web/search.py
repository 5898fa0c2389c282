"""Search on the web, as a port: a query to addresses."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One result. Title and snippet are words of others: data, and never evidence."""

    url: str
    title: str
    snippet: str


@dataclass(frozen=True, slots=True)
class SearchHits:
    """The results of one query, best first, and a sentence for each result that was none."""

    hits: tuple[SearchHit, ...] = ()
    notices: tuple[str, ...] = ()


class SearchProvider(Protocol):
    """A place that can be asked for addresses."""

    @property
    def name(self) -> str:
        """As it is shown, such as `searxng`."""
        ...

    def search(self, query: str, *, page: int, language: str) -> SearchHits:
        """Results of `query`, `page` counted from 1, `language` as ISO 639-1 or "". Raises FetchError."""
        ...
