"""A quote is verbatim: its words are one after another in the visible text."""

import pytest

from pandora_dagster.research.verification import is_in_page
from tests.research.research_pages import page

PAGE = page("http://a.test/", "Vela", "The Vela weighs\n210 g.", "| Weight | 210 g |", hidden="Weight 1 g")


@pytest.mark.parametrize(
    ("quote", "verbatim"), [("Vela weighs 210 g", True), ("Weight 210 g", True), ("Weight 1 g", False), ("weighs 21 g", False), ("", False)]
)
def test_a_quote_is_in_the_visible_text(quote: str, verbatim: bool) -> None:
    assert is_in_page(quote, PAGE) is verbatim
