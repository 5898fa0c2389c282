"""Recorded answers of a search provider, by their queries: for tests, and for runs without a search service."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.contracts.web.search import SearchHits
from pandora_dagster.documents.plain_json import PlainDataError, parse_json_object
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.tools.search.result_rows import hits_of

_EXPECTED = 'expected {"query": [{"url": "...", "title": "...", "content": "..."}]}; the query "*" answers every other one'


@dataclass(frozen=True, slots=True)
class RecordedProvider:
    """Answers from a file; an unknown query has no results."""

    answers: Mapping[str, SearchHits]
    name: str = "recorded"

    def search(self, query: str, *, page: int, language: str) -> SearchHits:
        return self.answers.get(query.lower(), self.answers.get("*", SearchHits())) if page == 1 else SearchHits()


def open_recorded(path: Path) -> RecordedProvider:
    """The provider of a file; raises ConfigurationError."""
    try:
        fields = parse_json_object(path.read_bytes())
    except (OSError, PlainDataError) as error:
        raise ConfigurationError(f"{path}: {error}: {_EXPECTED}") from error
    answers: dict[str, SearchHits] = {}
    for query, rows in fields.items():
        if not isinstance(rows, list):
            raise ConfigurationError(f"{path}: {query[:80]!r}: {_EXPECTED}")
        answers[query.lower()] = hits_of(rows)  # pyright: ignore[reportUnknownArgumentType]
    return RecordedProvider(answers)
