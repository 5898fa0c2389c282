"""Readings come in the order of the requests, whatever becomes of each page."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pandora_dagster.app.web.web_service import PageRequest, VisitStore, open_fetcher, parse_requests, read_pages
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.user.sources import Provenance
from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.errors import ConfigurationError, FetchFailedError, FetchRefusedError
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.user.page_files import PageFiles
from tests.fakes.user_stores import MemorySourceStore

AT = datetime(2026, 11, 24, 15, tzinfo=UTC)
BODY = b"<html><head><title>Lamp</title></head><body><p>The lamp shines for twelve hours on one charge.</p></body></html>"


@dataclass
class FakeFetcher:
    """A web in which the path of an address says what becomes of it."""

    asked: list[str] = field(default_factory=list)

    def fetch(self, url: str, *, deadline_s: float, known: FetchedPage | None = None) -> FetchedPage:
        self.asked.append(url)
        if "slow" in url:
            time.sleep(0.1)
        if "refused" in url:
            raise FetchRefusedError(f"{url}: no", rule="robots")
        if "failed" in url:
            raise FetchFailedError(f"{url}: reset", retryable=True)
        if "crash" in url:
            raise RuntimeError("a fault of a library")
        status = 404 if "gone" in url else 200
        content_type = "application/pdf" if "broken.pdf" in url else "text/html"
        body = b"%PDF-1.7 not one" if "broken.pdf" in url else BODY
        return FetchedPage(url, url, status, {"content-type": content_type}, body, AT, (url,))


def requests(*urls: str) -> list[PageRequest]:
    return [PageRequest(url, number) for number, url in enumerate(urls, 1)]


def test_readings_keep_the_order_and_hosts_their_turn() -> None:
    urls = [
        "http://a/slow",
        "http://b/1",
        "http://a/refused",
        "http://b/failed",
        "http://c/broken.pdf",
        "http://c/crash",
        "http://[x",
        "http://a/2",
    ]
    fetcher = FakeFetcher()
    readings = list(read_pages(requests(*urls), fetcher, seconds=9))
    assert [reading.request.url for reading in readings] == urls
    outcomes = [next(name for name in ("page_doc", "refused", "failed") if name in reading.fields()) for reading in readings]
    assert outcomes == ["page_doc", "page_doc", "refused", "failed", "failed", "failed", "failed", "page_doc"]
    assert (readings[2].refused, readings[3].failed) == (
        "robots: http://a/refused: no",
        "http://b/failed: reset (a later attempt may succeed)",
    )
    assert "RuntimeError: a fault of a library" in readings[5].failed
    assert [url for url in fetcher.asked if "//a/" in url] == ["http://a/slow", "http://a/refused", "http://a/2"]


def test_a_page_is_stored_and_an_error_page_is_not(tmp_path: Path) -> None:
    ann, sources = user_id("ann"), MemorySourceStore()
    visits = VisitStore(ann, sources, PageFiles(tmp_path), Provenance(added_at="2026-11-24T15:00:00Z", by="a test"))
    lamp, gone = read_pages(requests("http://a/lamp", "http://a/gone"), FakeFetcher(), seconds=9, visits=visits)
    assert lamp.visit and gone.page_doc and not gone.visit
    (row,) = sources.visit_rows(ann)
    assert (row.visit_id, row.url) == (lamp.visit.visit_id, "http://a/lamp")
    assert lamp.fields()["visit"] == row.visit_id and "visit" not in gone.fields()


def test_who_stops_reading_stops_the_requests() -> None:
    fetcher = FakeFetcher()
    readings = read_pages(requests(*(f"http://a/slow{n}" for n in range(50))), fetcher, seconds=9)
    next(readings)
    readings.close()  # type: ignore[attr-defined]
    time.sleep(0.3)
    assert len(fetcher.asked) < 5


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b'{"url": "http://a/"}', ""),
        (b'{"url": "http://a/", "query": "x"}', "expected one field, url"),
        (b'{"url": null}', "expected one field, url"),
        (b'["http://a/"]', "a list instead of an object"),
        (b"http://a/", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b'{"url": "' + b"a" * 20_000 + b'"}', "20,011 bytes"),
    ],
)
def test_a_line_is_an_address_or_a_fault(line: bytes, fault: str) -> None:
    first, second = parse_requests(line + b'\n{"url": "http://b/"}', where="f")
    assert (fault in first.fault and first.fault.startswith("f:1: ")) if fault else first == PageRequest("http://a/", 1)
    assert second == PageRequest("http://b/", 2)


def test_the_web_is_off_by_default(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="PANDORA_WEB: off") as off:
        open_fetcher(load_settings({"PANDORA_ROOT": str(tmp_path)}), None)
    assert "PANDORA_WEB=on" in off.value.hint
    open_fetcher(load_settings({"PANDORA_ROOT": str(tmp_path), "PANDORA_WEB": "on"}), None)
