"""Pages of docs/ that code, recipes, prompts and data files name in messages, help texts and comments exist."""

import re
from pathlib import Path

from tests.docs.pages import DOCS, REPOSITORY, name

_PAGE = re.compile(r"docs/[\w./-]+?\.md\b")
_SOURCES = sorted(
    path
    for folder, patterns in (("pandora_dagster", ("*.py",)), ("data", ("*.yaml",)), ("recipes", ("*",)), ("prompts", ("*.md",)))
    for pattern in patterns
    for path in (REPOSITORY / folder).rglob(pattern)
    if path.is_file()
)


def _missing_pages(path: Path) -> list[str]:
    return [page for page in _PAGE.findall(path.read_text(encoding="utf-8")) if not (DOCS.parent / page).is_file()]


def test_every_page_that_is_named_exists() -> None:
    """`Give a server a launch block; docs/serving.md shows the form.` once led nowhere."""
    assert any(_PAGE.search(path.read_text(encoding="utf-8")) for path in _SOURCES)
    assert {name(path): missing for path in _SOURCES if (missing := _missing_pages(path))} == {}
