"""The port of pages as they were read, beside the records of their visits."""

from typing import Protocol

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.user.sources import Visit
from pandora_dagster.contracts.web.page_doc import PageDoc


class PageStore(Protocol):
    """Pages of a user's visits: what was read, and the raw bytes by their content."""

    def put(self, user: UserId, visit: Visit, page_doc: PageDoc, raw: bytes, screenshot: bytes = b"") -> None:
        """Store a page; `visit.page` describes `raw`. The visit's record is stored after it. Raises StoreError."""
        ...

    def page_doc(self, user: UserId, visit: Visit) -> PageDoc:
        """The page of a visit as it was read; raises DocumentError (`missing` where none is stored)."""
        ...

    def screenshot(self, user: UserId, visit: Visit) -> bytes:
        """The window of the page as PNG; empty where none was taken."""
        ...

    def raw(self, user: UserId, visit: Visit) -> bytes:
        """The bytes of the page, verified by their hash; raises DocumentError (`missing` where none are stored)."""
        ...
