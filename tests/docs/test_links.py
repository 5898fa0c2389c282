"""Links between the pages lead somewhere, down to the heading; the site's navigation has every page."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.pages import DOCS, PAGES, REPOSITORY, anchors, links, name


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    """Pages of the site link inside docs/ only."""
    for link in links(page):
        if re.match(r"https?:|mailto:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name(page)}: {link}: no such file"
        assert not page.is_relative_to(DOCS) or target.is_relative_to(DOCS), f"{name(page)}: {link}: leads out of docs/"
        assert not anchor or anchor in anchors(target), f"{name(page)}: {link}: no such heading; there are {sorted(anchors(target))}"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Strict: a broken link, a page outside of the navigation or an unknown anchor fails. Every page can be searched."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    index = (tmp_path / "site" / "search" / "search_index.json").read_text(encoding="utf-8")
    pages = [page.relative_to(DOCS).with_suffix("").as_posix().removesuffix("/README") for page in PAGES if page.is_relative_to(DOCS)]
    assert [page for page in pages if f'"{page}.html"' not in index and f'"{page}/index.html"' not in index] == []
