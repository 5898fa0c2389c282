"""Pages of visits: found by their visit, equal bytes once, damage is reported."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.user.sources import Provenance, Visit
from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.contracts.web.page_doc import PageDoc, PageFields, PageType, Zone, ZoneKind
from pandora_dagster.documents.visits.visit_record import build_visit
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.user.page_files import PageFiles

ANN, BEN = user_id("ann"), user_id("ben")
AT = datetime(2026, 11, 24, 15, tzinfo=UTC)


def read(url: str, body: bytes = b"<p>text</p>", *zones: Zone) -> tuple[FetchedPage, PageDoc, Visit]:
    page = FetchedPage(url, url, 200, {"etag": '"1"', "content-type": "text/html"}, body, AT, (url,))
    page_doc = PageDoc(
        url=url,
        final_url=url,
        retrieved_at=AT,
        page_type=PageType.INFO,
        title="A page",
        language="en",
        zones=zones or (Zone(kind=ZoneKind.MAIN_TEXT, text="text", confidence=1.0),),
        extracted_data=PageFields(title="A page", price="7.50"),
        evidence={},
        links=(),
        notices=(),
    )
    return page, page_doc, build_visit(page, page_doc, Provenance(added_at="2026-11-24T15:00:00Z", by="a test"))


def test_a_page_is_found_by_its_visit(tmp_path: Path) -> None:
    page, page_doc, visit = read("http://a.test/")
    pages = PageFiles(tmp_path)
    pages.put(ANN, visit, page_doc, page.body)
    assert (pages.page_doc(ANN, visit), pages.raw(ANN, visit)) == (page_doc, page.body)
    for missing in (lambda: pages.page_doc(BEN, visit), lambda: pages.raw(BEN, visit)):
        with pytest.raises(DocumentError) as error:
            missing()
        assert error.value.missing


def test_equal_bytes_are_stored_once(tmp_path: Path) -> None:
    pages = PageFiles(tmp_path)
    for url in ("http://a.test/", "http://b.test/"):
        page, page_doc, visit = read(url)
        pages.put(ANN, visit, page_doc, page.body)
    assert len(list(tmp_path.rglob("page_doc.json"))) == 2
    assert len(list((tmp_path / "users" / "ann" / "webpage_cache" / "raw").iterdir())) == 1


def test_damage_is_reported(tmp_path: Path) -> None:
    page, page_doc, visit = read("http://a.test/")
    pages = PageFiles(tmp_path)
    pages.put(ANN, visit, page_doc, page.body)
    for path in (*tmp_path.rglob("page_doc.json"), *tmp_path.rglob("raw/*")):
        path.write_text('{"url": 7}')
    with pytest.raises(DocumentError, match=r"page_doc\.json: url: .*expected a page"):
        pages.page_doc(ANN, visit)
    with pytest.raises(DocumentError, match="changed since it was stored"):
        pages.raw(ANN, visit)


def test_a_visit_without_a_page_has_none(tmp_path: Path) -> None:
    _, _, visit = read("http://a.test/")
    with pytest.raises(DocumentError, match=f"webpage_cache/{visit.visit_id}.json: no page is stored"):
        PageFiles(tmp_path).raw(ANN, visit.model_copy(update={"page": None}))
