"""What a page says about a question: the statement itself names what is asked, or is the page's own price."""

import pytest

from pandora_dagster.contracts.web.research_lines import PageLine, UnitLine
from pandora_dagster.runtime.extractive.research.asked_question import AskedQuestion
from pandora_dagster.runtime.extractive.research.page_statements import PageReader

PAGE = PageLine(url="http://shop.test/vela-30", title="Vela 30 lamp with charger", page_type="product", language="en", price="70.00")


def values(question: str, *texts: str) -> list[str]:
    units = [UnitLine(number=number, text=text) for number, text in enumerate(texts, 1)]
    return [statement.value for statement in PageReader(AskedQuestion(question), PAGE, units).statements()]


def test_the_page_s_own_price_needs_no_word_of_the_question() -> None:
    assert values("What does the Vela 30 lamp cost?", "£70.00", "Delivery £4.50") == ["£70.00"]


@pytest.mark.parametrize(
    ("statement", "found"), [("The charger costs £9.00.", ["£9.00"]), ("The strap costs £9.00.", []), ("Now from £9.00.", [])]
)
def test_another_amount_must_name_what_is_asked(statement: str, found: list[str]) -> None:
    assert values("How much is the charger of the Vela 30?", statement) == found


def test_a_value_of_the_asked_kind_alone_is_no_answer() -> None:
    """The title of the page names the charger, the statement another part."""
    assert values("How much does the charger of the Vela 30 weigh?", "Weight: 140 g", "Weight of the charger: 60 g") == ["60 g"]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What does the Vela 30 lamp cost?", ["£70.00"]),
        ("What does the large Vela 30 lamp cost?", []),
        ("What does the wide Vela 30 lamp cost?", ["£85.00"]),
    ],
)
def test_which_of_several_prices_is_asked_must_be_named(question: str, found: list[str]) -> None:
    """The page's own price answers a question without a further word; `large` may mean the size that the page calls wide."""
    assert values(question, "Narrow £70.00", "Wide £85.00")[:1] == found


@pytest.mark.parametrize(
    "question", ["How do I open a Vela 30 that is frozen?", "Why is my Vela 30 frozen?", "Wie kann ich die Vela 30 öffnen?"]
)
def test_a_way_or_a_reason_is_not_recognized_by_words(question: str) -> None:
    assert values(question, "My Vela 30 is frozen and I cannot open it.", "Die Vela 30 lässt sich nicht öffnen.") == []
