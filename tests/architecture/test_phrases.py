"""Fence around phrases: one list of replaced metaphors for code, messages, recipes, benchmarks and documentation pages."""

import ast
import re
from collections.abc import Iterable, Iterator

import pytest

from tests.architecture.sources import REPOSITORY, Source, package_sources

# Phrase -> what to write in its place; docs/reference/glossary.md defines the terms.
REPLACED = {
    r"left alone": "circuit open, or unchanged",
    r"stands? twice": "is repeated",
    r"stands? there": "is stored, or exists",
    r"says? something else": "differs, or contradicts",
    r"go(es)? by words": "compares words",
    r"anew": "again, or rebuilt",
    r"mend(s|ed|ing)?": "repair",
    r"l(ies?|ying) in": "is in",
    r"the switch": "the commit point, or the setting by its name",
    r"com(es?|ing) to rest": "is completed",
    r"takes? back": "retires, retracts or undoes",
    r"nobody watches": "without metrics",
    r"held against": "verified against, or compared with",
    r"borne out": "supported",
    r"let go": "released",
    r"can not": "cannot",
    r"cookbook|kitchen": "recipes",
    r"(set|kept) aside": "kept under another name",
}
BANNED = re.compile(rf"\b({'|'.join(REPLACED)})\b", re.IGNORECASE)
# A pattern of the reader of answers accepts what a model writes; texts of users are quoted in code as `...`.
QUOTED = re.compile(r"`[^`]*`|r\"[^\"]*\"")
FOLDERS = ("pandora_dagster", "recipes", "docs", "benchmarks")
SUFFIXES = {".py", ".md", ".yaml", ".html", ".toml"}
# In docstrings only: string data holds word lists and texts for models and users.
BANNED_IN_DOCSTRINGS = re.compile(r"\b(stands?|stood|bears? (on|out)|nobody|gives? up|the person)\b", re.IGNORECASE)


def docstring_phrases(sources: Iterable[Source]) -> list[str]:
    """Phrases in docstrings of modules, classes, functions and attributes; `...` quotes what users and the program write."""
    return [
        f"{source.name}:{node.lineno}: {found[0]}"
        for source in sources
        for node in source.nodes(ast.Expr)
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for found in BANNED_IN_DOCSTRINGS.finditer(QUOTED.sub("", node.value.value))
    ]


def test_no_docstring_uses_a_replaced_phrase() -> None:
    assert docstring_phrases(package_sources()) == []


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ('"""What stands in the file, for nobody."""', 2),
        ('LIMIT = 3\n"""What the person may read."""', 1),
        ('def f():\n    """Whether the sources bear it out: a note bears on the query."""', 1),
        ('FORMS = "stand stood"\n"""What `stands` means; an understood standard."""', 0),
    ],
)
def test_a_phrase_in_a_docstring_is_found(text: str, faults: int) -> None:
    assert len(docstring_phrases([Source("app.turns", text)])) == faults


def pages() -> Iterator[tuple[str, str]]:
    """Path and text of each page; the change log describes earlier versions in their words."""
    files = [path for folder in FOLDERS for path in sorted((REPOSITORY / folder).rglob("*")) if path.suffix in SUFFIXES]
    for path in (*files, REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"):
        yield str(path.relative_to(REPOSITORY)), path.read_text(encoding="utf-8")


def replaced_phrases(texts: Iterable[tuple[str, str]]) -> list[str]:
    return [
        f"{name}:{number}: {found[0]}"
        for name, text in texts
        for number, line in enumerate(text.splitlines(), 1)
        for found in BANNED.finditer(QUOTED.sub("", line))
    ]


def test_no_text_uses_a_replaced_phrase() -> None:
    assert replaced_phrases(pages()) == []


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ("# The file lies in the store and is written anew.", 2),
        ("An address that was Left Alone cannot be used.", 1),
        ('message = "this can not be mended"', 2),
        ("The meaning of an amendment; `pandora_server_left_alone` is a meter; the bug is gone.", 0),
    ],
)
def test_a_replaced_phrase_is_found(line: str, faults: int) -> None:
    assert len(replaced_phrases([("page.md", line)])) == faults
