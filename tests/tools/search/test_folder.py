"""A folder of documents as a search provider: what is found, and that there is no way out of it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pandora_dagster.errors import ConfigurationError, FetchFailedError, FetchRefusedError
from pandora_dagster.tools.search.folder import FolderDocuments, open_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "docs"
    (inside / "sub").mkdir(parents=True)
    (inside / "lamp.md").write_text("# Vela lamp\n\nThe Vela lamp weighs 210 g.\n")
    (inside / "sub" / "a b.html").write_text("<html><title>Tent</title><body><main><p>The Orca tent weighs 2 kg.</p></main></body></html>")
    (inside / "broken.pdf").write_bytes(b"%PDF-1.7 no more")
    (inside / ".secret.md").write_text("The Vela lamp is hidden.")
    (tmp_path / "outside.md").write_text("The Vela lamp is outside.")
    (inside / "link.md").symlink_to(tmp_path / "outside.md")
    (inside / "up").symlink_to(tmp_path, target_is_directory=True)
    return inside


def opened(folder: Path, max_bytes: int = 1_000_000) -> FolderDocuments:
    return open_folder(str(folder), max_bytes=max_bytes, clock=lambda: datetime(2026, 1, 4, tzinfo=UTC))


def test_documents_are_found_by_their_words_and_a_broken_one_is_named(folder: Path) -> None:
    found = opened(folder).search("weight of the Vela lamp", page=1, language="en")
    assert found.hits[0].url == (folder / "lamp.md").as_uri()
    assert all(Path(hit.url).name in {"lamp.md", "a%20b.html"} for hit in found.hits)
    assert [notice for notice in found.notices if "broken.pdf" in notice] and len(found.notices) == 1
    assert opened(folder).search("Vela", page=2, language="en").hits == ()


def test_a_document_is_read_from_its_address(folder: Path) -> None:
    (hit,) = opened(folder).search("Orca tent", page=1, language="en").hits
    assert hit.title == "Tent" and b"Orca" in opened(folder).fetch(hit.url, deadline_s=1).body


@pytest.mark.parametrize(
    "place", ["../outside.md", "%2e%2e/outside.md", "link.md", "up/outside.md", ".secret.md", "none.md", "sub", "a%00.md"]
)
def test_there_is_no_way_out_of_the_folder(folder: Path, place: str) -> None:
    with pytest.raises(FetchRefusedError):
        opened(folder).fetch(f"file://{folder}/{place}", deadline_s=1)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "file://host/etc/a.md", "http://a.test/lamp.md", "lamp.md", "file://[/"])
def test_other_addresses_are_refused(folder: Path, url: str) -> None:
    with pytest.raises(FetchRefusedError):
        opened(folder).fetch(url, deadline_s=1)


def test_a_document_over_the_limit_fails(folder: Path) -> None:
    with pytest.raises(FetchFailedError, match="PANDORA_WEB_PAGE_MB"):
        opened(folder, max_bytes=5).fetch((folder / "lamp.md").as_uri(), deadline_s=1)


def test_what_is_no_folder_is_named(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"lamp\.md: no folder"):
        opened(folder / "lamp.md")
