"""The pages of the documentation as data: fenced blocks with their info strings, headings with their anchors, links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
PAGES = sorted([*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md")])
SCENARIOS = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", DOCS / "tutorial.md", *sorted((DOCS / "guides").glob("*.md"))]
"""Pages whose commands are run. Explanations and references show no command that a guide does not."""

_FENCE = re.compile(r"^```(?P<language>\w*)(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r'(?P<name>[\w-]+)(?:="(?P<value>[^"]*)")?')
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)|<img src=\"([^\"]+)\"")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: where it begins, its language, its options, its text."""

    page: Path
    line: int
    language: str
    options: dict[str, str]
    text: str

    @property
    def place(self) -> str:
        return f"{name(self.page)}:{self.line}"


def name(page: Path) -> str:
    """A page's path in the repository."""
    return page.relative_to(REPOSITORY).as_posix()


def blocks(page: Path) -> list[Block]:
    """The page's fenced blocks, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text[: m.start()].count("\n") + 1,
            m["language"],
            {o["name"]: o["value"] or "" for o in _OPTION.finditer(m["info"])},
            m["text"],
        )
        for m in _FENCE.finditer(text)
    ]


def anchors(page: Path) -> set[str]:
    """The anchors of the page's headings, as GitHub and the site make them."""
    return {_slug(heading) for heading in _HEADING.findall(_prose(page))}


def links(page: Path) -> Iterator[str]:
    """The targets of the page's links and images."""
    for markdown, html in _LINK.findall(re.sub(r"`[^`\n]*`", "`code`", _prose(page))):
        yield markdown or html


def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def _slug(heading: str) -> str:
    plain = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
    return re.sub(r"[-\s]+", "-", plain.strip())
