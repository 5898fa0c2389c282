"""What the loop works with beside recipes: visits of pages, and the checkpoint of its run."""

from dataclasses import dataclass
from typing import Protocol

from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.contracts.web.research_run import ResearchRun


@dataclass(frozen=True, slots=True)
class VisitedPage:
    """A page as it was read."""

    page: PageDoc
    calls: int = 0
    """Calls of recipes that it took: one where a model read its picture."""
    unread: str = ""
    """Why its picture, which says what its text does not, was not read."""


class PageVisitor(Protocol):
    """Fetches, reads and stores one page."""

    async def visit(self, url: str) -> VisitedPage:
        """The page; raises FetchError, or another PandoraError where it cannot be read."""
        ...


class RunStore(Protocol):
    """Keeps a run between two programs."""

    def load(self) -> ResearchRun | None: ...
    def save(self, run: ResearchRun) -> None: ...
