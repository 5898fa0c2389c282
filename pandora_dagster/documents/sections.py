"""Sections of context.md: parsing, rendering and escaping of headings.

A section begins at a line `## N. Title` with N from 0 to 6. The text of a user or a document may contain such a line too:
`escape_headings` puts a backslash before it and `unescape_headings` removes it, so that text never becomes structure.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pandora_dagster.contracts.enums import SECTION_TITLES
from pandora_dagster.errors import DocumentError

_HEADING = re.compile(r"^## ([0-6])\. [^\n]*(?:\n|\Z)", re.MULTILINE)
_LOOKS_LIKE_HEADING = re.compile(r"^(\\*)(?=## [0-6]\. )", re.MULTILINE)
_FENCE_OR_HEADING = re.compile(r"^ {0,3}(?:(?P<fence>```|~~~)|(?P<marks>#{1,3})[ \t])", re.MULTILINE)
_ESCAPED_HEADING = re.compile(r"^\\(\\*)(?=## [0-6]\. )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """One section, byte for byte: its heading line and everything up to the next heading line."""

    number: int
    heading: str
    body: str

    @property
    def text(self) -> str:
        return self.heading + self.body


@dataclass(frozen=True, slots=True)
class ContextDocument:
    """A parsed context.md. `render(parse(text)) == text` for any text (specification 000, section 11.3)."""

    preamble: str
    sections: tuple[Section, ...]

    @classmethod
    def parse(cls, text: str) -> "ContextDocument":
        """Parse any text; raises nothing. `faults` lists what makes it an invalid context.md."""
        headings = list(_HEADING.finditer(text))
        if not headings:
            return cls(text, ())
        ends = [heading.start() for heading in headings[1:]] + [len(text)]
        return cls(
            text[: headings[0].start()],
            tuple(Section(int(h[1]), h[0], text[h.end() : end]) for h, end in zip(headings, ends, strict=True)),
        )

    def render(self) -> str:
        return self.preamble + "".join(s.text for s in self.sections)

    def faults(self) -> tuple[str, ...]:
        """Why this is not a valid context.md, each as one sentence; empty for a valid one."""
        numbers = [s.number for s in self.sections]
        faults = [f"section {n} occurs {numbers.count(n)} times, expected once" for n in sorted(set(numbers)) if numbers.count(n) > 1]
        if 0 not in numbers:
            faults.append("section 0 (`## 0. User Query`) is missing, expected once")
        if not faults and numbers != sorted(numbers):
            faults.append(f"sections are in the order {numbers}, expected ascending numbers")
        return tuple(faults)

    def section(self, number: int) -> Section | None:
        return next((s for s in self.sections if s.number == number), None)

    @property
    def newest(self) -> Section | None:
        """The section that was written last: the highest number with text, None where only section 0 has any."""
        return max((s for s in self.sections if s.number and s.body.strip()), key=lambda s: s.number, default=None)

    def body(self, number: int) -> str:
        """The body of section `number`, unescaped and without the blank lines around it; "" where it is absent."""
        section = self.section(number)
        return unescape_headings(section.body).strip("\n") if section else ""

    def query(self) -> str:
        """Section 0 exactly as the user wrote it."""
        section = self.section(0)
        return unescape_headings(section.body).removeprefix("\n").removesuffix("\n\n") if section else ""

    def with_section(self, number: int, body: str) -> "ContextDocument":
        """A copy with `body` as section `number`, in its place by number. Section 0 cannot be replaced."""
        if number == 0 and self.section(0):
            raise ValueError("section 0 is never altered")
        new = Section(number, f"## {number}. {SECTION_TITLES[number]}\n", f"\n{escape_headings(body)}\n\n")
        others = [_with_final_newline(s) for s in self.sections if s.number != number]
        preamble = self.preamble if self.preamble.endswith("\n") or not self.preamble else f"{self.preamble}\n"
        return ContextDocument(preamble, tuple(sorted([*others, new], key=lambda s: s.number)))

    def select(self, numbers: Iterable[int]) -> str:
        """The text of the chosen sections; section 0 is always among them (specification 000, section 12.2)."""
        chosen = {0, *numbers}
        return "".join(s.text for s in self.sections if s.number in chosen)


def _with_final_newline(section: Section) -> Section:
    """The section with a newline at its end, so that a heading can follow."""
    return section if section.text.endswith("\n") else Section(section.number, section.heading, f"{section.body}\n")


def new_context(query: str) -> ContextDocument:
    """A context.md with the query, verbatim, and no other section."""
    return ContextDocument("", ()).with_section(0, query)


def parse_context(text: str, *, where: str) -> ContextDocument:
    """Parse a context.md that must be valid; raises DocumentError with every fault."""
    document = ContextDocument.parse(text)
    if faults := document.faults():
        raise DocumentError(f"{where}: {'; '.join(faults)}")
    return document


def escape_headings(body: str) -> str:
    """Escape lines that look like section headings."""
    return _LOOKS_LIKE_HEADING.sub(r"\1\\", body)


def unescape_headings(body: str) -> str:
    """Undo `escape_headings`."""
    return _ESCAPED_HEADING.sub(r"\1", body)


def escape_subheadings(text: str) -> str:
    """Escape the headings in text that a section quotes: a line `# `, `## ` or `### ` gets a backslash, so that it is not a heading of the
    section.

    Within code only `### ` is escaped: `# ` is a comment there, and no reader takes it for a heading.
    """
    in_code = False

    def escaped(found: re.Match[str]) -> str:
        nonlocal in_code
        if found["fence"]:
            in_code = not in_code
            return found[0]
        return found[0] if in_code and found["marks"] != "###" else found[0].replace("#", "\\#", 1)

    return _FENCE_OR_HEADING.sub(escaped, text)
