"""Whether what a page says is in a picture: no text of its own beside pictures, or a product whose price is drawn."""

import re

from pandora_dagster.contracts.web.page_doc import MIN_CONFIDENCE, OUTSIDE_KINDS, PageDoc, PageType, ZoneKind

_MIN_CHARACTERS = 40
"""A page with less text beside its title is taken for one that shows it in a picture, where it has one."""
_PICTURE = re.compile(r"<(img|canvas|svg|object|embed|video)\b", re.IGNORECASE)
_WITHOUT_CONTENT = (PageType.LOGIN, PageType.CAPTCHA, PageType.ERROR, PageType.CONSENT, PageType.PDF)


def picture_kinds(html: str) -> frozenset[str]:
    """The kinds of elements of a page as it was fetched that show pictures."""
    return frozenset(name.lower() for name in _PICTURE.findall(html))


def picture_need(page_doc: PageDoc, pictures: frozenset[str]) -> str:
    """Why a page is read from its picture; "" where its text says it."""
    if not pictures or page_doc.page_type in _WITHOUT_CONTENT:
        return ""
    said = sum(
        len(zone.text)
        for zone in page_doc.zones
        if zone.visible and zone.confidence >= MIN_CONFIDENCE and zone.kind not in OUTSIDE_KINDS and zone.kind is not ZoneKind.TITLE
    )
    if said < _MIN_CHARACTERS:
        return "its text is in a picture"
    if "canvas" in pictures and page_doc.page_type is PageType.PRODUCT and page_doc.extracted_data.price is None:
        return "no price is in its text, and it draws a picture"
    return ""
