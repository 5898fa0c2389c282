"""Whether a product can be had: the states of schema.org, and how shops write them."""

import re

_STATES = {
    "instock": "in_stock", "onlineonly": "in_stock", "instoreonly": "in_stock", "available": "in_stock",
    "limitedavailability": "limited", "lowstock": "limited",
    "outofstock": "out_of_stock", "soldout": "out_of_stock", "unavailable": "out_of_stock", "reserved": "out_of_stock",
    "preorder": "preorder", "presale": "preorder", "backorder": "backorder", "madetoorder": "backorder", "discontinued": "discontinued",
}  # fmt: skip
_NUMBER_WORD = r"(?:\d{1,3}|one|two|three|four|five|a few|wenige|einzelne|quelques|pocas|pochi|enkele|få)"
_PHRASES = (
    ("discontinued", r"discontinued|no longer (?:available|sold|made)|end of life|auslaufartikel|nicht mehr (?:lieferbar|"
        r"erhältlich|verfügbar)|plus commercialisé|descatalogado|fuori produzione|niet meer leverbaar|utgått"),
    ("preorder", r"pre-?order|coming soon|available from|ships from|releases? on|vorbestell\w*|erscheint am|précommande\w*|"
        r"preventa|reserva "
        r"anticipada|preordin\w*|pre-?bestel\w*|förbeställ\w*|forudbestil\w*"),
    ("out_of_stock", r"(?:temporarily )?out of stock|awaiting stock|unavailable|sold[\s-]?out|(?:currently|temporarily) "
        r"(?:unavailable|not available)|not in stock|none left|"
        r"nicht (?:lieferbar|verfügbar|auf lager|vorrätig)|ausverkauft|vergriffen|rupture de stock|épuisé|indisponible|"
                     r"agotado|sin existencias|no disponible|esaurito|non disponibile|uitverkocht|niet (?:op voorraad|leverbaar)|"
                     r"slutsåld|ej i lager|udsolgt|utsolgt|esgotado|wyprzedan\w+|niedostępn\w+|нет в наличии"),
    ("backorder", r"back-?order\w*|made to order|auf bestellung|nachbestell\w*|sur commande|bajo pedido|su ordinazione|op bestelling"),
    ("limited", rf"(?:only|just|last) {_NUMBER_WORD}\b[\w\s]{{0,20}}(?:left|remaining|in stock|available)|{_NUMBER_WORD}(?: \w+)? (?:left|"
        rf"remaining)\b|low stock|few left|limited (?:stock|availability)|nur noch {_NUMBER_WORD}|noch {_NUMBER_WORD} (?:stück|auf "
        rf"lager|verfügbar)|"
                rf"plus que {_NUMBER_WORD}|solo quedan? {_NUMBER_WORD}|últimas unidades|ultimi {_NUMBER_WORD}|nog {_NUMBER_WORD} "
                rf"(?:op voorraad|stuks)|bara {_NUMBER_WORD} kvar"),
    ("in_stock", r"in stock|(?:usually )?dispatch(?:ed|es)? (?:within|in|today)|available to order|ready to (?:ship|dispatch)|"
        r"ships (?:today|tomorrow|within|in \d)|available now|auf lager|vorrätig|"
        r"lieferbar|sofort verfügbar|lieferzeit\W{0,3}\d|en stock|disponible|disponibile|op voorraad|leverbaar|i lager|på lager|em "
        r"estoque|dostępn\w+|na skladě|в наличии"),
)  # fmt: skip
"""In order: what says more about a product comes before what a part of it would say."""
_PATTERNS = tuple((state, re.compile(rf"(?<!\w)(?:{phrases})", re.IGNORECASE)) for state, phrases in _PHRASES)
STATES = frozenset(state for state, _ in _PHRASES)
MAX_WORDS = 25
"""A longer text tells about availability, it does not state it."""


def stated_availability(value: str) -> str:
    """The state that a word of schema.org names; "" for none."""
    return _STATES.get(re.sub(r"[\s_-]", "", value.rstrip("/").rpartition("/")[2]).lower(), "")


def written_availability(text: str) -> str:
    """The state that a short text states; "" for none."""
    if len(text.split()) > MAX_WORDS:
        return ""
    return next((state for state, pattern in _PATTERNS if pattern.search(text)), "")
