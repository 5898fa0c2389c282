"""`pandora pages` as a process: from the days of the archive to a document's lineage, and nothing else."""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.app.archive_service import open_archive
from pandora_dagster.archive.archive_run import archive_turns
from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.settings import load_settings
from tests.api.server_process import Api, started

EVIL = 'Order 7741 costs $420. <script>alert(1)</script> & "quotes" <img src=x onerror=alert(2)> ' * 12


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    root = tmp_path_factory.mktemp("pages") / "store"
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    app.transfer.import_example()
    texts = [{"role": "user", "content": EVIL}, {"role": "assistant", "content": EVIL}]
    line = {"id": "evil", "user_id": "eve", "created_at": "2026-01-04T10:00:00Z", "messages": texts}
    app.transfer.import_conversations([json.dumps(line).encode()], where="evil")
    ctx = open_archive(app)
    app.run(archive_turns(select_turns(ctx), ctx))
    app.close()
    with started(root, door="pages", answers="/") as running:
        yield running


def links(text: str) -> list[str]:
    return [html.unescape(found) for found in re.findall(r'<a href="(/[^"]*)"', text)]


def test_every_page_is_reached_from_the_first(pages: Api) -> None:
    """Days, then documents, then lineage; each link leads somewhere, and a lineage page has both texts side by side."""
    with pages.http() as client:
        days = [link for link in links(client.get("/").text) if link.startswith("/archive/")]
        assert days and all(day.startswith("/archive/2026-") for day in days)
        seen = 0
        for day in days:
            report = client.get(day)
            assert report.status_code == 200 and "nothing_left_behind: passed" in report.text
            for document in [link for link in links(report.text) if link.startswith("/lineage/")]:
                shown = client.get(document)
                assert shown.status_code == 200 and "/cold/" in shown.text and "Made from" in shown.text
                seen += 1
        assert seen >= 7
        assert client.get("/lineage/eve:turn_000001").status_code == 200


def test_what_users_wrote_never_becomes_markup(pages: Api) -> None:
    """Tags and attributes of a turn stand on its page as text; no page may run a script or be framed."""
    with pages.http() as client:
        for path in ("/lineage/eve:turn_000001", "/archive/2026-01-04", "/lineage/<script>alert(3)</script>", "/archive/<b>x"):
            report = client.get(path)
            assert report.text.count("<script") == 1 and "<img" not in report.text and "<b>" not in report.text
            assert "default-src 'none'" in html.unescape(report.text) and report.headers["X-Frame-Options"] == "DENY"


def test_what_is_not_there_is_one_sentence(pages: Api) -> None:
    """An unknown day, document, user or way; a path out of the store; another name of this machine."""
    with pages.http() as client:
        for path, status in (
            ("/archive/2026-13-99", 404), ("/archive/1999-01-01", 200), ("/lineage/nobody:turn_000001", 404), ("/nowhere", 404),
            ("/lineage/eve:turn_000009", 404), ("/lineage/..%2F..%2Fetc%2Fpasswd", 404), ("/lineage/", 404),
        ):  # fmt: skip
            report = client.get(path)
            assert report.status_code == status, (path, report.text)
            assert "Traceback" not in report.text and "root:" not in report.text
        assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
        assert client.post("/").status_code == 405


def test_a_port_that_is_taken_is_one_sentence(pages: Api, tmp_path: Path) -> None:
    """It says which, and what to do."""
    with (
        pytest.raises(AssertionError, match="expected a free address"),
        started(tmp_path / "store", "--port", str(pages.port), door="pages", answers="/"),
    ):
        pass


def test_a_day_opens_its_cold_objects_only_when_asked(pages: Api) -> None:
    """The page says that it has not looked, and leads to one that has."""
    with pages.http() as client:
        (day, *_) = re.findall(r'href="(/archive/[0-9-]+)"', client.get("/").text)
        report = client.get(day).text
        assert "originals_restorable: passed" not in report and f'href="{day}?verify=1"' in report
        assert "originals_restorable: passed" in client.get(f"{day}?verify=1").text
