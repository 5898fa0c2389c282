"""A quote is verbatim: its words are one after another in the visible text. A value is in its quote."""

import pytest

from pandora_dagster.research.page_units import page_units
from pandora_dagster.research.run_decisions import is_supported
from pandora_dagster.research.verification import is_in_page, is_value_of
from tests.documents.webpages.pages import read
from tests.research.research_pages import page

PAGE = page("http://a.test/", "Vela", "The Vela weighs\n210 g.", "| Weight | 210 g |", hidden="Weight 1 g")
TABLE = (
    "<tr><th></th><th>2025</th><th>2026</th></tr><tr><td>Range</td><td>80 km</td><td></td></tr><tr><td>Price</td><td>2</td><td>3</td></tr>"
)
LAYOUTS = {
    "soft hyphens and wrapped lines": "<p>The Licht&shy;strom of the\n   Vela is\u202f300\u00a0lm.</p>",
    "letters without a width": "<p>The Vela wei\u200bghs 210\u2060 g on the scales.</p>",
    "lines of Chinese": "<p>这盏灯重\n二百一十克。它可以\n照明十二小时。</p>",
    "a table with empty cells": f"<table>{TABLE}</table>",
    "bars in a text": "<p>Weight | 210 g || black</p>",
    "inline elements": "<p>The <b>Vela</b> costs <span>74</span><sup>.99</sup> <i>euros</i>.</p>",
}


@pytest.mark.parametrize(
    ("quote", "verbatim"),
    [
        ("Vela weighs 210 g", True),
        ("weighs  210\tg", True),
        ("Weight 210 g", True),
        ("Weight 1 g", False),
        ("weighs 21 g", False),
        ("weighs 2 10 g", False),
        ("Vela weighs 21", False),
        ("10 g", False),
        ("TheVelaweighs", False),
        ("The Ve la weighs", False),
        ("", False),
    ],
)
def test_a_quote_is_in_the_visible_text(quote: str, verbatim: bool) -> None:
    assert is_in_page(quote, PAGE) is verbatim


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_unit_of_a_page_is_in_the_page(layout: str) -> None:
    """However the page lays its words out, the reader writes them once, so that blanks need not be taken away to find them."""
    doc = read(f"<html><body><main><h1>Vela</h1>{LAYOUTS[layout]}</main></body></html>")
    units = list(page_units(doc))
    assert len(units) > 1 and all(is_in_page(unit.quote, doc) for unit in units)


@pytest.mark.parametrize(
    ("value", "quote", "expected"),
    [
        ("210 g", "Weight 210 g", True),
        ("210g", "Weight 210 g", True),
        ("$ 74.99", "now $74.99 only", True),
        ("limited", "Only 3 left", True),
        ("2026-03-04", "Published on 4 March 2026", True),
        ("2026", "Published on 04.03.2026", True),
        ("10 g", "Weight 210 g", False),
        ("2 10 g", "Weight 210 g", False),
        ("21", "Weight 210 g", False),
        ("in_stock", "Only 3 left", False),
        ("", "Weight 210 g", False),
    ],
)
def test_a_value_is_in_its_quote_in_these_words_or_as_the_state_that_it_writes(value: str, quote: str, expected: bool) -> None:
    assert is_value_of(value, quote, PAGE) is expected


def test_a_minus_before_a_number_is_part_of_the_quote() -> None:
    cold = page("http://a.test/", "Vela", "- works in the cold\n- -20 °C at night\n## -10 °C by day\n---\n- ")
    assert {unit.quote for unit in page_units(cold)} == {"works in the cold", "-20 °C at night", "-10 °C by day"}


@pytest.mark.parametrize(
    ("value", "quote"),
    [
        *(("5 kg", "12.5 kg"), ("5 kg", "0,5 kg"), ("138 g", "1.138 g"), ("EUR 1", "EUR 1,200"), ("200 EUR", "1.200 EUR")),
        *(("20 °C", "down to -20 °C"), ("in stock", "Not in stock"), ("no", "It is well known."), ("yes", "his eyes")),
    ],
)
def test_a_part_of_a_number_or_of_a_word_is_no_value(value: str, quote: str) -> None:
    assert not is_value_of(value, quote, PAGE)


@pytest.mark.parametrize(
    ("value", "quote"),
    [
        *(
            ("5 kg", "It weighs 5 kg."),
            ("138 g", "Weight 138g"),
            ("20 °C", "from 10-20 °C"),
            ("49元", "价格是49元"),
            ("no", "No, it is not."),
        ),
        *(("in stock", "In stock, ships today"), ("limited", "Only 3 left"), ("EUR 49", "Price EUR 49.")),
    ],
)
def test_whole_words_are_a_value(value: str, quote: str) -> None:
    assert is_value_of(value, quote, PAGE)


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        *(
            ("It weighs 183 g.", "It weighs 138 g."),
            ("It costs EUR 94.00.", "It costs EUR 49.00."),
            ("Sold from 3 May.", "Sold from 8 May."),
        ),
        *(("The maker is Nordlys.", "The maker is Halden."), ("It is not waterproof.", "It is waterproof.")),
    ],
)
def test_a_statement_that_changes_a_value_or_a_name_is_not_supported(text: str, quote: str) -> None:
    assert not is_supported(text, [quote], "What of the lamp?")
    assert is_supported(quote, [quote], "What of the lamp?")
