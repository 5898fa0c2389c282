"""Pages that a user's earlier turns visited, as a search provider: a question about one of them visits it again."""

from collections.abc import Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.user.sources import Visit
from pandora_dagster.contracts.web.search import SearchHit, SearchHits


@dataclass(frozen=True, slots=True)
class VisitedPages:
    """Returns the pages of these visits for every query; nothing is sent."""

    visits: Sequence[Visit]
    name: str = "visited before"

    def search(self, query: str, *, page: int, language: str) -> SearchHits:
        if page > 1:
            return SearchHits()
        return SearchHits(tuple(SearchHit(v.url, str(v.extracted_data.get("title") or v.url), query) for v in self.visits))
