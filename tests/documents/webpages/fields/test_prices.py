import pytest

from pandora_dagster.documents.webpages.fields.prices import amounts
from tests.documents.webpages.pages import read


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        ("89,90 €", "de", [("89.90", "EUR")]),
        ("was £92.00 now £74.99", "en", [("92.00", "GBP"), ("74.99", "GBP")]),
        ("1.299,00 €", "de", [("1299.00", "EUR")]),
        ("$1,299.00", "en-US", [("1299.00", "USD")]),
        ("$1,299.00", "en-AU", [("1299.00", "AUD")]),
        ("1'299.00 CHF", "de-CH", [("1299.00", "CHF")]),
        ("1 299 kr", "sv", [("1299", "SEK")]),
        ("1 299 kr", "da", [("1299", "DKK")]),
        ("R$ 1.299,90", "pt", [("1299.90", "BRL")]),
        ("₹1,29,900", "en-IN", [("129900", "INR")]),
        ("129,- €", "de", [("129", "EUR")]),
        ("1 299,00 zł", "pl", [("1299.00", "PLN")]),
        ("5 km in 20 min, since 2026", "en", []),
        ("price on request", "en", []),
    ],
)
def test_amounts_of_all_locales(text: str, language: str, found: list[tuple[str, str]]) -> None:
    assert [(amount.value, amount.currency) for amount in amounts(text, language)] == found


def shop(offer: str, head: str = "") -> str:
    return (
        f'<html lang="en"><head><title>Aurora desk lamp - Lamp Shop</title>{head}</head>'
        f"<body><header><p>Basket: £0.00</p></header><main>"
        f"<h1>Aurora desk lamp</h1>{offer}"
        "<p>A lamp for the desk with a foot of iron.</p></main><aside><h2>Others</h2><p>Bulb £3.50</p></aside></body></html>"
    )


@pytest.mark.parametrize(
    ("offer", "price", "old_price"),
    [
        ("<p>£24.00</p>", "24.00", None),
        ("<p><del>£30.00</del> <b>£24.00</b></p>", "24.00", "30.00"),
        ("<p>RRP £30.00</p><p>£24.00</p>", "24.00", "30.00"),
        ('<p>or £2.00 a month</p><p class="price">£24.00</p>', "24.00", None),
        ("<p>Free delivery over £50</p><p>Our price £24.00</p>", "24.00", None),
        (
            '<label><input type="radio" name="s">Small £20.00</label><label><input type="radio" name="s" checked>Large £24.00</label>',
            "24.00",
            None,
        ),
        ('<style>.w{text-decoration:line-through}</style><p><span class="w">£30.00</span> <span>£24.00</span></p>', "24.00", "30.00"),
        ("<p>Price on request</p>", None, None),
    ],
)
def test_the_price_of_the_page(offer: str, price: str | None, old_price: str | None) -> None:
    fields = read(shop(offer)).extracted_data
    assert (fields.price, fields.old_price) == (price, old_price)


LISTED = (
    '<script type="application/ld+json">{"@context":"https://schema.org","@type":"Product","name":"Aurora desk lamp",'
    '"offers":{"@type":"Offer",'
    '"price":"19.99","priceCurrency":"GBP","availability":"https://schema.org/InStock"}}</script>'
)


def test_the_visible_page_wins_over_its_structured_data() -> None:
    doc = read(shop("<p>£24.00</p><p>Sold out</p>", LISTED))
    assert (doc.extracted_data.price, doc.extracted_data.currency, doc.extracted_data.availability) == ("24.00", "GBP", "out_of_stock")
    assert "price: the page shows '24.00', its structured data says '19.99'" in doc.notices
    assert "availability: the page shows 'out_of_stock', its structured data says 'in_stock'" in doc.notices
    agreed = read(shop("<p>£19.99</p><p>In stock</p>", LISTED))
    assert agreed.evidence["price"].confidence > doc.evidence["price"].confidence > 0.5


def test_a_value_that_no_visible_place_shows_has_low_confidence() -> None:
    doc = read(shop("<p>A lamp.</p>", LISTED))
    assert doc.extracted_data.price == "19.99"
    assert doc.evidence["price"].confidence < 0.5
