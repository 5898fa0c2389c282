"""Amounts of money in a text, in the spelling of any locale, and which of a product page's amounts is its price."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from pandora_dagster.documents.webpages.elements.blocks import Block
from pandora_dagster.documents.webpages.elements.html_tree import Element, tag_of
from pandora_dagster.documents.webpages.elements.visibility import VisiblePage, style_of
from pandora_dagster.documents.webpages.libraries import library

_NUMBER = r"\d{1,3}(?:[.,'’\u00a0\u202f\u2009 ]\d{2,3})+(?:[.,]\d{1,2})?(?!\d)|\d+(?:[.,]\d{1,2})?(?!\d)"
_EMPTY_CENTS = r"(?:[.,][-–—]{1,2})?"
_LOCAL_SYMBOLS = ("kr", "Kr", "zł", "Kč", "Ft", "Fr.", "SFr.", "S/", "TL", "RON", "лв", "kn")
_OTHER_RATE = re.compile(
    r"^\s*(?:/|per\b|pro\b|im\b|je\b|a\s+(?:month|week|year|day)|each\s+month|monthly|mtl|mensual|par\b|al\s+mes|por\b|al\b|"
    r"i\s+m[åa]naden|/?mo\b|p\.?m\.?\b)",
    re.IGNORECASE,
)
_OTHER_CHARGE = re.compile(
    r"\b(?:shipping|delivery|postage|deposit|instal?ments?|financ\w+|voucher|coupon|orders? over|save|saving|discount|surcharge|"
    r"fees?|fine|zuschlag|gebühr\w*|versand\w*|lieferung ab|porto|pfand|rate[n]?|gutschein|"
    r"spar\w*|rabatt|livraison|port|consigne|remise|envío|gastos|descuento|spedizione|sconto|verzend\w*|korting|frakt|fraktfritt)\b",
    re.IGNORECASE,
)
_FORMER = re.compile(
    r"\b(?:was|rrp|r\.r\.p|msrp|list price|regular price|previously|before|uvp|statt|vorher|früher|bisher|ehemals|bisheriger preis|"
    r"unverb\w*|avant|au lieu de|prix conseillé|"
    r"antes|precio anterior|pvp|prima|anziché|prezzo di listino|adviesprijs|van|voorheen|ordinarie|förr|før|tidligere|"
    r"ord\.?)\b[^\d]{0,24}$",
    re.IGNORECASE,
)
_FROM = re.compile(r"\b(?:ab|from|starting at|à partir de|desde|a partire da|vanaf|från|fra)\s*$", re.IGNORECASE)
_PRICE_NAME = re.compile(r"pri[cs]e|preis|prix|precio|prezzo|prijs|amount|cena", re.IGNORECASE)
_FORMER_NAME = re.compile(
    r"(?:^|[\s_-])(?:old|was|list|rrp|uvp|before|regular|original|strike|strikethrough|crossed|msrp|former|previous)(?:$|[\s_-])",
    re.IGNORECASE,
)
MIN_SCORE = 2.5
"""Signs that an amount needs to be the price of the page."""
_MAX_AMOUNTS = 20
"""Amounts of one block that are looked at: the price of a page is not one of many in a line."""
_MAX_CHOICE = 50
"""Elements at the beginning of a choice among which its button is."""
_NEAR = 8
"""Blocks around a heading or a price that are beside it."""


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount at `start:end` of a text."""

    start: int
    end: int
    value: str
    currency: str


@dataclass(frozen=True, slots=True)
class PriceCandidate:
    """An amount on the page with what speaks for it as the price."""

    amount: Amount
    block: int
    element: Element
    score: float
    former: bool
    size: float
    holder: Element
    """The element of its block."""


def amounts(text: str, language: str = "") -> Iterator[Amount]:
    """The amounts with a currency that a text names."""
    if not any(ch.isdigit() for ch in text):
        return
    for found in _pattern().finditer(text):
        price = library("price_parser").Price.fromstring(found[0].rstrip("-–—"))
        if price.amount is not None and price.currency:
            yield Amount(*found.span(), f"{price.amount:f}", currency_code(str(price.currency), language))


def number_of(text: str) -> str:
    """The decimal number of a price that structured data gives, in any spelling; "" for none."""
    amount = library("price_parser").Price.fromstring(text).amount
    return "" if amount is None else f"{amount.normalize():f}"


@cache
def _pattern() -> re.Pattern[str]:
    parser = library("price_parser.parser")
    symbols = sorted(
        {*parser.SAFE_CURRENCY_SYMBOLS, *parser.CURRENCY_SYMBOLS, *_LOCAL_SYMBOLS, "€", "$", "£", "¥", "₹"}, key=len, reverse=True
    )
    signs = "|".join(
        re.escape(s) if not s[-1].isalpha() else re.escape(s) + r"(?![^\W\d_])" for s in symbols if len(s) > 1 or not s.isalpha()
    )
    codes = "|".join(sorted(parser.CURRENCY_CODES))
    before, after = rf"(?:(?<![^\W\d_])(?:{signs}|(?:{codes})\b))", rf"(?:{signs}|(?:{codes})\b|[Ee]uros?\b)"
    return re.compile(rf"{before}\s?(?:{_NUMBER}){_EMPTY_CENTS}|(?<![\w.,])(?:{_NUMBER}){_EMPTY_CENTS}\s?{after}")


@cache
def currency_code(symbol: str, language: str) -> str:
    """The ISO 4217 code of a symbol, as a reader of the page's language writes it; the symbol in capitals where none is known."""
    numbers, core = library("babel.numbers"), library("babel.core")
    sign = symbol.strip()
    if sign.upper() in library("price_parser.parser").CURRENCY_CODES:
        return sign.upper()
    if sign.lower() in ("euro", "euros", "eur"):
        return "EUR"
    for locale in (language.replace("-", "_"), core.get_global("likely_subtags").get(language.partition("-")[0], ""), "en_US"):
        try:
            parsed = core.Locale.parse(locale) if locale else None
        except (ValueError, core.UnknownLocaleError):
            continue
        if parsed is None:
            continue
        local: list[str] = numbers.get_territory_currencies(parsed.territory) if parsed.territory else []
        for code in [*local, "EUR", "GBP", "USD", "JPY", "INR", "BRL", "CHF", "PLN", "CZK", "SEK", "NOK", "DKK", "AUD", "CAD"]:
            if sign.rstrip(".").lower() in {str(numbers.get_currency_symbol(code, locale=parsed)).rstrip(".").lower()}:
                return code
    return {"fr": "CHF", "sfr": "CHF", "zł": "PLN", "kč": "CZK", "ft": "HUF", "kr": "SEK", "tl": "TRY"}.get(
        sign.rstrip(".").lower(), sign.upper()
    )


def price_candidates(
    page: VisiblePage, blocks: Sequence[Block], heading: int, language: str, stated: Sequence[str] = ()
) -> list[PriceCandidate]:
    """The amounts of the blocks; `heading` is the place of the page's heading among them or -1, `stated` what structured data says."""
    values = {number_of(value) for value in stated}
    found: list[PriceCandidate] = []
    for place, block in enumerate(blocks):
        if not block.rows and (named := list(islice(amounts(block.text, language), _MAX_AMOUNTS))):
            texts = [(part, _squeezed("".join(part.itertext()))) for part in block.parts]
            found.extend(_candidate(page, block, texts, place, heading, amount, values) for amount in named)
    return found


def choose_price(candidates: Sequence[PriceCandidate]) -> PriceCandidate | None:
    """The price of the page: the current amount with the most signs, of equal ones the larger and then the first."""
    current = [c for c in candidates if not c.former and c.score >= MIN_SCORE]
    return max(current, key=lambda c: (c.score, c.size, -c.block), default=None)


def choose_old_price(candidates: Sequence[PriceCandidate], price: PriceCandidate) -> PriceCandidate | None:
    """The former price beside the price: marked as such, higher, and in the same currency."""
    former = [
        c
        for c in candidates
        if c.former
        and abs(c.block - price.block) <= _NEAR
        and c.amount.currency == price.amount.currency
        and float(c.amount.value) > float(price.amount.value)
    ]
    return min(former, key=lambda c: abs(c.block - price.block), default=None)


def _candidate(
    page: VisiblePage,
    block: Block,
    texts: Sequence[tuple[Element, str]],
    place: int,
    heading: int,
    amount: Amount,
    stated: set[str],
) -> PriceCandidate:
    element = _element_of(block, texts, amount)
    before, after = block.text[: amount.start], block.text[amount.end :]
    style = style_of(page, element)
    names = " ".join(f"{e.get('class') or ''} {e.get('id') or ''}" for e in (element, *list(element.iterancestors())[:3]))
    around = [e for e in (element, element.getparent()) if e is not None]
    own = " ".join(f"{e.get('class') or ''} {e.get('id') or ''}" for e in around)
    former = style.struck or bool(_FORMER.search(before)) or bool(_FORMER_NAME.search(own))
    count = len(block.text.split())
    score = 2.0 if count <= 8 else 1.0 if count <= 15 else 0.0 if count <= 25 else -3.0
    score += 3.0 if str(element.get("itemprop") or "").lower() == "price" else 0.0
    score += 2.0 if _PRICE_NAME.search(names) else 0.0
    score += 1.0 if tag_of(element) in ("strong", "b", "em", "h2", "h3") else 0.0
    score += 1.0 if style.font_px > 17 else 0.0
    score += 1.0 if 0 <= place - heading <= _NEAR and heading >= 0 else 0.0
    score -= 1.0 if count >= 8 and block.text.endswith(".") else 0.0
    score += 1.0 if number_of(amount.value) in stated else 0.0
    score -= 0.5 if _FROM.search(before) else 0.0
    score -= 3.0 if _OTHER_RATE.search(after) else 0.0
    score -= 3.0 if _OTHER_CHARGE.search(before[-60:] + " " + after[:40]) else 0.0
    return PriceCandidate(amount, place, element, score + _choice(element), former, style.font_px, block.element)


def _element_of(block: Block, texts: Sequence[tuple[Element, str]], amount: Amount) -> Element:
    """The innermost element of a block that holds the amount; `texts`: its parts with what they say."""
    written = _squeezed(block.text[amount.start : amount.end])
    holders = [part for part, text in texts if written in text]
    return holders[-1] if holders else block.parts[-1] if block.parts else block.element


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def _choice(element: Element) -> float:
    """Signs of a choice: the chosen one of several variants, or one that is not chosen."""
    label = next((e for e in (element, *element.iterancestors()) if tag_of(e) in ("label", "option", "li")), None)
    if label is None:
        return 0.0
    if tag_of(label) == "option":
        return 1.0 if label.get("selected") is not None else -2.0
    inside = islice(label.iter(), _MAX_CHOICE)
    inputs = [e for e in inside if tag_of(e) == "input" and str(e.get("type") or "").lower() in ("radio", "checkbox")]
    if not inputs:
        return 0.0
    return 2.0 if any(e.get("checked") is not None for e in inputs) else -2.0


def is_other_choice(element: Element) -> bool:
    """Whether an element belongs to a variant that is not the chosen one."""
    return _choice(element) < 0
