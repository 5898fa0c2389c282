"""Pages of the web to PAGE_DOC: pure functions, no network."""

from pandora_dagster.documents.webpages.page_reader import read_page
from pandora_dagster.documents.webpages.pdf_pages import UnreadablePageError

__all__ = ["UnreadablePageError", "read_page"]
