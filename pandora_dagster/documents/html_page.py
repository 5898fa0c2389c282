"""One HTML page that stands for itself: no network, no script, its one style named by hash. Knows escaping; knows no documents.

Nothing reaches a page but through `escaped`, `marked`, or names of this module: text of people never becomes markup.
"""

import base64
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

_INVALID = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_DIRECTION_MARKS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Marks that turn the direction of what follows: text would show in another order than it stands."""
_WORD = re.compile(r"[a-z][a-z0-9_-]*")

STYLE = """
:root { color-scheme: light dark; --ground: #fdfdfc; --ink: #1d2125; --faint: #646b73; --line: #d8dbde; --pane: #f5f5f3; --link: #0a58b5;
  --kept: #cdebd3; --equal: #d3e5f8; --recoverable: #e4dcf7; --dropped_by_rule: #e6e6e2; --missing: #f9dccb; --mutated: #f7c9cf;
  --invented: #f7c9cf; --span: #fdf0b3; }
@media (prefers-color-scheme: dark) { :root { --ground: #15181b; --ink: #e3e6e8; --faint: #98a1a9; --line: #363c42; --pane: #1c2024;
  --link: #7db5f5; --kept: #1d4a2a; --equal: #1c3f63; --recoverable: #3d3163; --dropped_by_rule: #3a3d40; --missing: #5f3519;
  --mutated: #6b2530; --invented: #6b2530; --span: #54490f; } }
body { margin: 0 auto; max-width: 110rem; padding: 1.5rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1, h2 { overflow-wrap: anywhere; } h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 2.5rem 0 .5rem; padding-top: .5rem;
  border-top: 1px solid var(--line); } h3 { font-size: .9rem; margin: .5rem 0; color: var(--faint); }
a { color: var(--link); } p.told, table { color: var(--faint); font-size: .9rem; } table { border-collapse: collapse; }
th { white-space: nowrap; } td, th { text-align: left; vertical-align: top; padding: .15rem .8rem .15rem 0; overflow-wrap: anywhere; }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; font: 13px/1.5 ui-monospace, monospace; }
pre.tree { overflow-x: auto; white-space: pre; overflow-wrap: normal; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; } .sides > div, .pane { background: var(--pane); border: 1px solid
  var(--line); border-radius: 6px; padding: .8rem; min-width: 0; } @media (max-width: 60rem) { .sides { grid-template-columns: 1fr; } }
mark { color: inherit; border-radius: 3px; background: none; } mark[title] { cursor: help; }
mark.critical { border-bottom: 2px solid currentcolor; } 
ul.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; }
mark.missing, mark.mutated { text-decoration: underline dotted; } :target { outline: 2px solid var(--link); outline-offset: 3px; }
""" + "".join(
    f"mark.{name} {{ background: var(--{name}); }}\n"
    for name in ("kept", "equal", "recoverable", "dropped_by_rule", "missing", "mutated", "invented", "span")
)


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters of a text that are shown in a way: of a class, with words for who points at them, as a link, as a target.

    Of classes that lie over each other the shortest shows. An `anchor` is a place: where it begins.
    """

    start: int
    end: int
    kind: str = ""
    title: str = ""
    href: str = ""
    anchor: str = ""


def escape(text: str) -> str:
    """Any text as text of an element or of an attribute in quotes."""
    clean = _DIRECTION_MARKS.sub(
        lambda found: f"<U+{ord(found[0]):04X}>", _INVALID.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    )
    return html.escape(clean, quote=True)


def element(name: str, inside: str, **attributes: str) -> str:
    """An element around what is markup already; attributes are escaped, `class_` is `class`, empty ones are left out."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items() if value)
    return f"<{name}{given}>{inside}</{name}>"


def link(href: str, text: str) -> str:
    """A link within the page, or text where there is none."""
    return element("a", escape(text), href=f"#{href}") if href else escape(text)


def highlight(text: str, marks: Sequence[Mark]) -> str:
    """A text as one block of lines, each character once, with its marks."""
    size = len(text)
    sound = [m for m in marks if 0 <= m.start <= m.end <= size and (m.start < m.end or m.anchor)]
    borders = sorted({0, size, *(m.start for m in sound), *(m.end for m in sound)})
    starting: dict[int, list[Mark]] = {}
    for mark in sound:
        starting.setdefault(mark.start, []).append(mark)
    parts: list[str] = []
    over: list[Mark] = []
    for start, end in zip(borders, [*borders[1:], size], strict=True):
        begun = starting.get(start, [])
        over = [m for m in over if m.end > start] + [m for m in begun if m.end > start]
        parts += [element("a", "", id=m.anchor) for m in begun if m.anchor]
        parts.append(_piece(text[start:end], over) if end > start else "")
    return element("pre", "\n" + "".join(parts), dir="auto")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of plain texts."""
    head = "".join(element("th", escape(name)) for name in heads)
    body = "".join(element("tr", "".join(element("td", escape(value)) for value in row)) for row in rows)
    return element("table", element("thead", element("tr", head)) + element("tbody", body))


def page(title: str, body: str) -> str:
    """The whole page; `body` is markup that this module made."""
    digest = base64.b64encode(sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _piece(text: str, over: Sequence[Mark]) -> str:
    """Characters under the same marks: the shortest class, inside the shortest link."""
    shown = escape(text)
    kinds = sorted((m for m in over if m.kind), key=lambda m: m.end - m.start)
    if kinds:
        if not all(_WORD.fullmatch(word) for word in kinds[0].kind.split()):
            raise ValueError(f"class {kinds[0].kind!r}: expected words")
        shown = element("mark", shown, class_=kinds[0].kind, title=kinds[0].title)
    links = sorted((m for m in over if m.href), key=lambda m: m.end - m.start)
    return element("a", shown, href=f"#{links[0].href}") if links else shown
