"""Author and dates of a page as it shows them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.web.page_doc import OUTSIDE_KINDS, ZoneKind
from pandora_dagster.documents.webpages.elements.blocks import Block
from pandora_dagster.documents.webpages.elements.html_tree import Element, full_text
from pandora_dagster.documents.webpages.layout.zones import JudgedBlock
from pandora_dagster.documents.webpages.written_dates import first_date, month_of_year

_NAME = r"[A-ZÀ-ÖØ-ÞŁŚŻ][\w.'’-]*(?: (?:[A-ZÀ-ÖØ-ÞŁŚŻ][\w.'’-]*|de|van|von|der|den|la|le|du|del|della|di|da|dos|bin|al|zu|af|ten)){0,4}"
_BY = re.compile(
    rf"(?:^|[|·•–—,.:] ?|\d{{4}},? |\b(?:written|words|text|story|posted|published|review|geschrieben) )(?:[Bb]y|BY|[Vv]on|"
    rf"[Pp]ar|[Pp]or|[Dd]i|[Dd]oor|[Aa]v|[Tt]ext|[Ww]ords|[Aa]utor(?:in)?|[Aa]uthor|[Aa]uteur) ?:? ({_NAME})"
)
_ONLY_NAME = re.compile(_NAME)
_BY_MARK = re.compile(r"author|byline|writer|contributor|autor|verfasser", re.IGNORECASE)
_DATE_MARK = re.compile(r"date|time|publish|posted|meta|byline|stamp|datum", re.IGNORECASE)
_CHANGED = re.compile(
    r"\b(?:updated?|last (?:updated|modified|changed|reviewed|edited)|modified|revised|revision|amended|correct(?:ed|ion)|"
    r"aktualisier\w+|geändert|überarbeitet|stand|mis[e]? à jour|"
    r"modifié|actualizado|modificado|aggiornato|modificato|bijgewerkt|gewijzigd|uppdatera[dt]|opdateret|oppdatert|atualizado|"
    r"zaktualizowano|обновлено)\b",
    re.IGNORECASE,
)
_PUBLISHED = re.compile(
    r"\b(?:published|posted|first published|issued|released?|date|dated|on|veröffentlicht|erschienen|publié|publicado|pubblicato|"
    r"gepubliceerd|publicerad|udgivet|publisert|opublikowano|опубликовано)\b",
    re.IGNORECASE,
)
_PARTING = re.compile(r"(?<=\d{4}) ?[|·•;,–—)] ?| [|·•] |(?<=[^\d\s][.;]) (?=[A-ZÄÖÜ])")
_NAME_AND_DATE = re.compile(rf"^({_NAME}) ?[,|·•–—-] ?(?=\D{{0,40}}\d)")
_BY_IN_LINE = re.compile(rf" (?:by|von|par|por|door|av) ({_NAME})")
"""Who made it, in a line that has a day too: `Issued by J. Doe, Head of Roads, on 9 October 2026`."""
_NEAR = 6
_NEXT_WORDS = frozenset({"Published", "Updated", "Posted", "Last", "On", "Am"})
"""Words that begin what follows a name."""
_MAX_WORDS = 30
_MAX_LINE = 15
_MIN_SCORE = 3


@dataclass(frozen=True, slots=True)
class Byline:
    """What a page shows of its origin; "" for what it does not show."""

    author: str = ""
    author_element: Element = None
    date: str = ""
    date_element: Element = None
    modified: str = ""
    modified_element: Element = None


@dataclass(frozen=True, slots=True)
class _DateCandidate:
    day: str
    score: int
    changed: bool
    place: int
    element: Element


def byline_of(judged: Sequence[JudgedBlock], language: str) -> Byline:
    """Author and dates that visible blocks beside the heading, at the end, or with words of publishing show."""
    title = next((place for place, item in enumerate(judged) if item.kind is ZoneKind.TITLE), -1)
    last = max((place for place, item in enumerate(judged) if item.kind not in OUTSIDE_KINDS), default=len(judged))
    author, author_element = _author(judged, title)
    dated: list[_DateCandidate] = []
    for place, item in enumerate(judged):
        if (
            item.kind in (ZoneKind.NAVIGATION, ZoneKind.RELATED, ZoneKind.ADVERT, ZoneKind.CONSENT, ZoneKind.SIDEBAR, ZoneKind.COMMENTS)
            or item.block.rows
        ):
            continue
        near = title >= 0 and abs(place - title) <= _NEAR and item.kind not in OUTSIDE_KINDS
        dated.extend(
            _dated(item.block, place, language, near=near, end=last - 2 <= place <= last + 4, byline=item.block.element is author_element)
        )
    published = [d for d in dated if not d.changed and d.score >= _MIN_SCORE]
    changed = [d for d in dated if d.changed and d.score >= _MIN_SCORE]
    first = max(published, key=lambda d: (d.score, -d.place), default=None)
    second = max(changed, key=lambda d: (d.score, d.day), default=None)
    if first is None and second is not None:
        first = second
    return Byline(
        author,
        author_element,
        first.day if first else "",
        first.element if first else None,
        second.day if second else "",
        second.element if second else None,
    )


def is_byline(block: Block, byline: Byline) -> bool:
    """Whether a short block names the author or the day: lines with `br` between them share their element with the text."""
    if len(block.text.split()) > _MAX_WORDS:
        return False
    return bool(byline.author and byline.author in block.text) or bool(byline.date and first_date(block.text) == byline.date)


def _author(judged: Sequence[JudgedBlock], title: int) -> tuple[str, Element]:
    candidates: list[tuple[int, int, str, Element]] = []
    for place, item in enumerate(judged):
        block = item.block
        if item.kind in OUTSIDE_KINDS or item.kind is ZoneKind.COMMENTS or len(block.text.split()) > _MAX_WORDS or block.rows:
            continue
        marked = bool(_BY_MARK.search(_marks(block)))
        near = abs(place - title) <= _NEAR if title >= 0 else place <= _NEAR
        if found := _BY.search(block.text):
            candidates.append((3 * near + 2 * marked + 1, -place, _person(found[1]), block.element))
        elif near and (found := _BY_IN_LINE.search(block.text)) and len(block.text.split()) <= _MAX_LINE and first_date(block.text):
            candidates.append((3, -place, _person(found[1]), block.element))
        elif near and len((name := _NAME_AND_DATE.match(block.text) or [""])[0].split()) >= 2 and first_date(block.text):
            candidates.append((3, -place, _person(name[1]), block.element))
        elif marked and 1 <= len(block.text.split()) <= 5 and _ONLY_NAME.fullmatch(block.text):
            candidates.append((2 * near + 2, -place, block.text, block.element))
    best = max((c for c in candidates if c[0] >= 3 and c[2]), key=lambda c: c[:2], default=None)
    return (best[2], best[3]) if best else ("", None)


def _person(name: str) -> str:
    """A name without a word that begins the next phrase."""
    parts = name.split()
    end = next((place for place, word in enumerate(parts) if place and word in _NEXT_WORDS), len(parts))
    return " ".join(parts[:end]).strip(" ,.")


def _dated(block: Block, place: int, language: str, *, near: bool, end: bool, byline: bool) -> list[_DateCandidate]:
    """The dates of a block with the signs that they are the page's own."""
    count = len(block.text.split())
    if count > _MAX_WORDS:
        return []
    found: list[_DateCandidate] = []
    times = {
        full_text(t): str(t.get("datetime"))
        for part in block.parts
        for t in (part, *part.iterancestors("time"))
        if str(part.tag) == "time" and part.get("datetime")
    }
    for piece in _pieces(block.text, times):
        day = next((first_date(stamp) for shown, stamp in times.items() if shown and shown in piece), "") or first_date(piece, language)
        changed, published = bool(_CHANGED.search(piece)), bool(_PUBLISHED.search(piece))
        score = 2 * near + end + 2 * byline + 2 * (changed or published) + 2 * bool(times) + bool(_DATE_MARK.search(_marks(block)))
        score += 2 if len(piece.split()) <= 5 and day else -2 if len(piece.split()) > 15 else 0
        if not day and (changed or published):
            day, score = month_of_year(piece), score - 1
        if day:
            found.append(_DateCandidate(day, score, changed, place, block.element))
    return found


def _pieces(text: str, times: Mapping[str, str]) -> list[str]:
    """The parts of a line that each hold one date: up to the end of each `time` element, else between the signs that part them."""
    pieces: list[str] = []
    start = 0
    for shown in times:
        at = text.find(shown, start)
        if shown and at >= 0:
            pieces.append(text[start : at + len(shown)])
            start = at + len(shown)
    return [*pieces, *(piece for piece in _PARTING.split(text[start:]) if piece)]


def _marks(block: Block) -> str:
    elements = (block.element, block.element.getparent(), *block.parts)
    return " ".join(
        f"{e.get('class') or ''} {e.get('id') or ''} {e.get('itemprop') or ''} {e.get('rel') or ''}" for e in elements if e is not None
    )
