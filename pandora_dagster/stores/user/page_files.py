"""The PageStore port: `page_doc.json` and a screenshot in a folder beside the record of a visit, and the raw bytes of a user's pages.

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

    def put(self, user: UserId, visit: Visit, page_doc: PageDoc, raw: bytes, screenshot: bytes = b"") -> None:
        raw_file = self._raw_file(user, _page(visit))
        if not raw_file.is_file():
            write_atomic(raw_file, raw)
        if screenshot:
            write_atomic(self._folder(user, visit) / "screenshot.png", screenshot)
        write_atomic(self._doc_file(user, visit), (page_doc.model_dump_json(indent=1) + "\n").encode())

    def page_doc(self, user: UserId, visit: Visit) -> PageDoc:
        path = self._doc_file(user, visit)
        try:
            return PageDoc.model_validate_json(read_bytes(path, limit=_MAX_BYTES))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            place = ".".join(map(str, fault["loc"]))
            raise DocumentError(f"{path}: {place}: {fault['msg']}: expected a page as `pandora visit read` writes it") from error

    def screenshot(self, user: UserId, visit: Visit) -> bytes:
        try:
            return read_bytes(self._folder(user, visit) / "screenshot.png", limit=_MAX_BYTES)
        except DocumentError as error:
            if error.missing:
                return b""
            raise

    def raw(self, user: UserId, visit: Visit) -> bytes:
        path = self._raw_file(user, page := _page(visit))
        data = read_bytes(path, limit=_MAX_BYTES)
        if sha256(data).hexdigest() != page.raw_sha256:
            raise DocumentError(f"{path}: changed since it was stored: expected the bytes of its name")
        return data

    def _doc_file(self, user: UserId, visit: Visit) -> Path:
        return self._folder(user, visit) / "page_doc.json"

    def _folder(self, user: UserId, visit: Visit) -> Path:
        return path_inside(self.root, Layout(self.root).visits(user) / sha(visit.visit_id)[:24])

    def _raw_file(self, user: UserId, page: StoredPage) -> Path:
        return path_inside(self.root, Layout(self.root).visits(user) / "raw" / page.raw_sha256)


def _page(visit: Visit) -> StoredPage:
    if visit.page is None:
        raise DocumentError(f"{visit.logical_id}: no page is stored with this visit", missing=True)
    return visit.page
