"""Section 5 tells what section 2 holds, of every kind of source, on the embedded runtime."""

import pytest

LAPTOP = {
    "title": "Lenovo LOQ 15 Gaming Laptop",
    "price": "$697.00",
    "specs": {"gpu": "NVIDIA RTX 4050", "ram": "16GB DDR5", "storage": "512GB SSD"},
    "availability": "In Stock",
}
"""004 section 3.6's own record."""


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("What is the price of the Lenovo LOQ 15?", "price: $697.00"),
        ("Is the Lenovo LOQ 15 in stock?", "availability: In Stock"),
        ("How much RAM has the Lenovo LOQ 15?", "ram: 16GB DDR5"),
    ],
)
def test_the_fields_of_a_page_belong_to_its_title(anna, query, message):
    """One record: the field that answers, with the title that says of what it is, under the page's label."""
    anna.visit(extracted_data=LAPTOP)
    answer = anna.section(anna.ask(query), 5)
    assert answer.startswith("title: Lenovo LOQ 15 Gaming Laptop, ") and message in answer
    assert "\n" not in answer and answer.endswith(" [1]")


def test_another_product_is_no_answer(anna):
    """A number is part of a product's name: the page of the LOQ 15 says nothing of a LOQ 17."""
    anna.visit(extracted_data=LAPTOP)
    anna.research()
    assert anna.section(anna.ask("What does the Lenovo LOQ 17 cost?"), 5) == "I found nothing about this."


def test_prose_of_a_page_knows_what_its_address_names(anna):
    """Without a title: long text is read sentence by sentence, and the address says of what it speaks."""
    text = "The machine is very quiet and it was built to stand in a small kitchen between other things. The warranty is 5 years."
    anna.visit(url="https://shop.example/silento-60", extracted_data={"text": text})
    assert "The warranty is 5 years. [1]" in anna.section(anna.ask("How long is the warranty of the Silento 60?"), 5)


WARRANTY = "The warranty is 5 years."
SOURCES = {
    "visit": lambda anna: anna.visit(url="https://shop.example/p7", extracted_data={"title": "Silento 60", "text": WARRANTY}),
    "research": lambda anna: anna.research(claims=[{"claim": f"Silento 60: {WARRANTY}", "source": "shop.example", "confidence": 0.9}]),
    "note": lambda anna: anna.note("Home/EngineRig.md", f"# Silento 60\n\nThe dishwasher stands by the window. {WARRANTY}"),
    "preference": lambda anna: anna.remember("dishwasher", f"Silento 60. {WARRANTY}"),
    "prior turn": lambda anna: anna.ask(f"We bought the Silento 60. {WARRANTY}", session="old"),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_source_is_reported(anna, kind):
    """What section 2 holds is found, with its citation: nothing is reported to be missing, and no phase's own words are reported."""
    SOURCES[kind](anna)
    key = anna.ask("How long is the warranty of the Silento 60?", session="new")
    answer = anna.section(key, 5)
    assert WARRANTY.rstrip(".") in anna.section(key, 2) and WARRANTY.rstrip(".") in answer and "[1]" in answer
    assert "nothing" not in answer and "No tools" not in answer


def test_a_note_s_sentence_without_a_word_of_the_question_knows_its_title(anna):
    """`What does it cost` shares only the title's words with the note."""
    anna.note("Home/EngineRig.md", "# Silento 60\n\nIt cost 899 euros at the fair.")
    assert "It cost 899 euros at the fair. [1]" in anna.section(anna.ask("What did the Silento 60 cost?"), 5)


def test_expired_research_says_so_also_beside_another_source(anna):
    """Alone and beside a page that is fresh, which leads; a page seen long ago says when."""
    anna.research(hours=48, life=6)
    query = "What does the Lenovo LOQ 15 cost?"
    assert anna.section(anna.ask(query), 5) == "(expired 42.0 hours ago) Lenovo LOQ 15 @ $697 [1]"
    anna.visit(extracted_data=LAPTOP)
    lines = anna.section(anna.ask(query, session="fresh"), 5).splitlines()
    assert lines[0].startswith("- title: Lenovo LOQ 15 Gaming Laptop, price: $697.00 [")
    assert lines[-1].startswith("- (expired 42.0 hours ago) Lenovo LOQ 15 @ $697 [")


def test_a_page_seen_long_ago_says_when(anna):
    """One within the hours that section 2 relies on bears no age."""
    anna.visit(hours=40, extracted_data=LAPTOP)
    answer = anna.section(anna.ask("What is the price of the Lenovo LOQ 15?"), 5)
    assert answer == "(seen 40.0 hours ago) title: Lenovo LOQ 15 Gaming Laptop, price: $697.00 [1]"


def test_an_earlier_question_is_no_answer(anna):
    """It stands in section 2, is not reported and does not count as found, unless it is asked what was asked."""
    anna.ask("How long is the warranty of the Silento 60 dishwasher?", session="old")
    key = anna.ask("Which dishwasher warranty did the Silento 60 come with?", session="new")
    answer = anna.section(key, 5)
    assert "nothing" in answer and "How long" not in answer and "nearest" not in answer
    message = anna.section(anna.ask("What did I ask about the Silento 60?", session="third"), 5)
    assert "How long is the warranty of the Silento 60 dishwasher? [" in message and "nothing" not in message
