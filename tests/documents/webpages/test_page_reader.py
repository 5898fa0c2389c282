import pytest

from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.documents.webpages.pdf_pages import UnreadablePageError
from tests.documents.webpages.pages import hidden, read


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("Lamps\nand tables", "text/plain", "Lamps\nand tables"),
        ('{"lamp": "Aurora", "watt": 12}', "application/json", '{"lamp": "Aurora", "watt": 12}'),
        (
            '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><p>The lamp is on.</p></body></html>',
            "application/xhtml+xml",
            "The lamp is on.",
        ),
        ("<!doctype html><title>Lamps</title><h1>Lamps</h1><p>The lamp is on.</p>", "", "The lamp is on."),
        ("name,watt\nAurora,12\n", "text/csv", "Aurora,12"),
    ],
)
def test_each_kind_of_page_is_read(body: str, content_type: str, text: str) -> None:
    assert text in read(body, content_type=content_type).text


@pytest.mark.parametrize(
    ("body", "content_type"), [(b"\x89PNG\r\n", "image/png"), (b"PK\x03\x04\x00\x00", ""), (b"\x00\x01", "application/octet-stream")]
)
def test_what_is_no_page_says_why(body: bytes, content_type: str) -> None:
    with pytest.raises(UnreadablePageError, match="is not a page that can be read"):
        read(body, content_type=content_type)


def test_a_page_doc_is_read_back() -> None:
    head = '<html lang="de"><head><link rel="canonical" href="/l"></head>'
    doc = read(head + "<body><h1>Lampe</h1><p hidden>geheim</p><p>Die Lampe ist an.</p></body></html>")
    assert PageDoc.model_validate_json(doc.model_dump_json()) == doc
    assert (doc.canonical_url, doc.language) == ("https://shop.example/l", "de")
    assert hidden(doc) == "geheim"


def test_a_page_of_very_many_elements_is_read_without_the_library_for_main_text() -> None:
    """Its text is there, and a notice says what was left out; a page below the limit has none."""
    small, large = (read("<main><h1>Lamps</h1><p>The lamp lights the table and the wall.</p>" + "<br>" * count) for count in (100, 50_001))
    assert [page.text for page in (small, large)] == ["Lamps\nThe lamp lights the table and the wall."] * 2
    assert [any("library for main text" in notice for notice in page.notices) for page in (small, large)] == [False, True]
