"""The PageStore port: `page_doc.json` in a folder beside the record of its visit, and the raw bytes of a user's pages.

The record `webpage_cache/<digest>.json` has the folder `webpage_cache/<digest>/`; equal bytes are stored once, as
`webpage_cache/raw/<sha256>`.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.user.sources import StoredPage, Visit
from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.files import path_inside, read_bytes, sha, write_atomic
from pandora_dagster.stores.disk.layout import Layout

_MAX_BYTES = 1024**3
"""More than a page can have: PANDORA_WEB_PAGE_MB is at most 1,000."""


@dataclass(frozen=True, slots=True)
class PageFiles:
    """The pages of the visits of all users."""

    root: Path

    def put(self, user: UserId, visit: Visit, page_doc: PageDoc, raw: bytes) -> None:
        raw_file = self._raw_file(user, _page(visit))
        if not raw_file.is_file():
            write_atomic(raw_file, raw)
        write_atomic(self._doc_file(user, visit), (page_doc.model_dump_json(indent=1) + "\n").encode())

    def page_doc(self, user: UserId, visit: Visit) -> PageDoc:
        path = self._doc_file(user, visit)
        try:
            return PageDoc.model_validate_json(read_bytes(path, limit=_MAX_BYTES))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            place = ".".join(map(str, fault["loc"]))
            raise DocumentError(f"{path}: {place}: {fault['msg']}: expected a page as `pandora visit read` writes it") from error

    def raw(self, user: UserId, visit: Visit) -> bytes:
        path = self._raw_file(user, page := _page(visit))
        data = read_bytes(path, limit=_MAX_BYTES)
        if sha256(data).hexdigest() != page.raw_sha256:
            raise DocumentError(f"{path}: changed since it was stored: expected the bytes of its name")
        return data

    def _doc_file(self, user: UserId, visit: Visit) -> Path:
        layout = Layout(self.root)
        return path_inside(self.root, layout.visits(user) / sha(visit.visit_id)[:24] / "page_doc.json")

    def _raw_file(self, user: UserId, page: StoredPage) -> Path:
        return path_inside(self.root, Layout(self.root).visits(user) / "raw" / page.raw_sha256)


def _page(visit: Visit) -> StoredPage:
    if visit.page is None:
        raise DocumentError(f"{visit.logical_id}: no page is stored with this visit", missing=True)
    return visit.page
