"""A folder of documents as a search provider and as the way to its pages: Markdown, text, HTML and PDF, without network."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.contracts.web.search import SearchHit, SearchHits
from pandora_dagster.errors import ConfigurationError, FetchFailedError, FetchRefusedError
from pandora_dagster.language.bm25 import Bm25
from pandora_dagster.language.terms import TermReader

SCHEME = "file"
RULE = "folder"
_MEDIA_TYPES = {
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".html": "text/html",
    ".htm": "text/html",
    ".pdf": "application/pdf",
}
_MAX_DOCUMENTS = 2_000
_RESULTS = 10
_MAX_SNIPPET_CHARACTERS = 1_000
_READER = TermReader()


@dataclass(frozen=True, slots=True)
class _Document:
    url: str
    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class FolderDocuments:
    """The documents below `folder`, a path without links. Linked and hidden files are left out."""

    folder: Path
    max_bytes: int
    """Of one document."""
    clock: Callable[[], datetime]
    name: str = "folder"

    def search(self, query: str, *, page: int, language: str) -> SearchHits:
        """The documents with words of `query`, best first; a notice for each that cannot be read."""
        documents, ranking, notices = self._index
        if page > 1:
            return SearchHits()
        terms = _READER.terms(query)
        scores = ranking.scores(terms)
        best = sorted((place for place, score in enumerate(scores) if score > 0), key=lambda place: -scores[place])[:_RESULTS]
        hits = (SearchHit(documents[place].url, documents[place].title, _snippet(documents[place], terms)) for place in best)
        return SearchHits(tuple(hits), notices)

    def holds(self, url: str) -> bool:
        """Whether `url` is the address of a document of this folder that exists."""
        path = _path_of(url)
        return path is not None and path.is_relative_to(self.folder) and self._is_document(path)

    def fetch(self, url: str, *, deadline_s: float, known: FetchedPage | None = None) -> FetchedPage:
        """The document at a `file:` address; raises FetchRefusedError for every other place."""
        path = _path_of(url)
        if path is None or not self.holds(url):
            raise FetchRefusedError(f"{url}: no document of {self.folder}", rule=RULE)
        try:
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                body = file.read(self.max_bytes + 1)
        except OSError as error:
            raise FetchFailedError(f"{url}: {error.strerror}") from error
        if len(body) > self.max_bytes:
            raise FetchFailedError(f"{url}: over {self.max_bytes:,} bytes: expected at most PANDORA_WEB_PAGE_MB")
        return FetchedPage(url, url, 200, {"content-type": _MEDIA_TYPES[path.suffix.lower()]}, body, self.clock(), (url,))

    def _is_document(self, path: Path) -> bool:
        inside = path.relative_to(self.folder).parts
        is_shown = not any(part.startswith(".") for part in inside) and path.suffix.lower() in _MEDIA_TYPES
        return is_shown and os.path.realpath(path) == str(path) and path.is_file()

    def _paths(self) -> Iterator[Path]:
        for parent, folders, files in os.walk(self.folder):
            folders.sort()
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from (path for path in (Path(parent, name) for name in sorted(files)) if self._is_document(path))

    @cached_property
    def _index(self) -> tuple[list[_Document], Bm25, tuple[str, ...]]:
        from pandora_dagster.documents.webpages.page_reader import read_page

        documents: list[_Document] = []
        notices: list[str] = []
        for number, path in enumerate(self._paths()):
            name = path.relative_to(self.folder).as_posix()
            if number == _MAX_DOCUMENTS:
                notices.append(f"{self.folder}: over {_MAX_DOCUMENTS:,} documents: the others are left out")
                break
            try:
                page = read_page(self.fetch(path.as_uri(), deadline_s=0))
            except Exception as error:  # a document that a library cannot digest costs itself, not those beside it
                notices.append(f"{name!r}: left out: {error}"[:500])
                continue
            lines = tuple(line.strip() for line in page.text.splitlines() if line.strip())
            documents.append(_Document(path.as_uri(), page.title or (lines[0].lstrip("# ")[:300] if lines else name), lines))
        keys = [_READER.terms(" ".join((document.title, *document.lines))) for document in documents]
        return documents, Bm25(keys), tuple(notices)


def open_folder(place: str, *, max_bytes: int, clock: Callable[[], datetime]) -> FolderDocuments:
    """The documents of a folder; raises ConfigurationError."""
    folder = Path(os.path.realpath(Path(place).expanduser()))
    if not folder.is_dir():
        raise ConfigurationError(f"{place}: no folder: expected folder=DIR with Markdown, text, HTML or PDF documents")
    return FolderDocuments(folder, max_bytes, clock)


def is_file_address(url: str) -> bool:
    return _path_of(url) is not None


def _path_of(url: str) -> Path | None:
    """The path of `file:///path`; None for every other form."""
    with suppress(ValueError):
        parts = urlsplit(url)
        path = unquote(parts.path)
        if parts.scheme == SCHEME and not parts.netloc and not parts.query and path.startswith("/") and path.isprintable():
            return Path(path)
    return None


def _snippet(document: _Document, terms: list[str]) -> str:
    """The line with most of the words."""
    scores = Bm25([_READER.terms(line) for line in document.lines]).scores(terms)
    return document.lines[max(range(len(scores)), key=scores.__getitem__)][:_MAX_SNIPPET_CHARACTERS] if scores else ""
