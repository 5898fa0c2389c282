"""Rows of a search answer to hits: what is no address on the web is left out with a reason."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from pandora_dagster.contracts.web.search import SearchHit, SearchHits

_MAX_ROWS = 100
_MAX_URL_CHARACTERS = 2_000
_MAX_TEXT_CHARACTERS = 1_000


def hits_of(rows: Iterable[object]) -> SearchHits:
    """The hits of rows with `url`, `title` and `content`, in order, each address once."""
    hits: dict[str, SearchHit] = {}
    notices: list[str] = []
    for row in list(rows)[:_MAX_ROWS]:
        fields: Mapping[Any, Any] = row if isinstance(row, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]
        url = fields.get("url")
        if not isinstance(url, str) or not _is_web_address(url):
            notices.append(f"a result without a web address was left out: {str(url)[:100]!r}")
            continue
        hits.setdefault(url, SearchHit(url, _line(fields.get("title")), _line(fields.get("content"))))
    return SearchHits(tuple(hits.values()), tuple(notices))


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return len(url) <= _MAX_URL_CHARACTERS and url.isprintable() and parts.scheme in ("http", "https") and bool(parts.hostname)


def _line(text: object) -> str:
    return " ".join(text.split())[:_MAX_TEXT_CHARACTERS] if isinstance(text, str) else ""
