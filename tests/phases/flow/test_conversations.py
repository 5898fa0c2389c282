"""Conversations of several turns on the embedded runtime: what a follow-up refers to, what is no evidence, what is remembered."""

import pytest

from pandora_dagster.contracts.ids import SessionId, user_id
from tests.phases.embedded import Embedded

CHAIR = "We ordered the Lumo chair from Holm for 249 euros; it arrives on 3 May."
DESK = "We ordered the Strand desk from Berg for 480 euros; it arrives on 9 June."
TRACE = """Traceback (most recent call last):
  File "orders.py", line 41, in load
    return json.loads(text)
  File "decoder.py", line 355, in raw_decode
    raise JSONDecodeError("Expecting value", s, err.value)
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"""


@pytest.fixture
def anna():
    made = Embedded(None)
    yield made
    made.app.close()


def _answer(anna: Embedded, query: str, session: str = "now") -> str:
    return anna.section(anna.ask(query, session=session), 5)


@pytest.mark.parametrize(("query", "told"), [("When does it arrive?", "3 May"), ("What did it cost?", "249 euros")])
def test_a_follow_up_asks_of_the_thing_just_shown(anna, query, told):
    """`it` is the chair of the question before, not the desk that was ordered too."""
    anna.ask(CHAIR, session="old")
    anna.ask(DESK, session="older")
    assert "Lumo chair" in _answer(anna, "Which chair did we order?").splitlines()[0]
    first = _answer(anna, query).splitlines()[0]
    assert told in first and "desk" not in first


def test_a_page_that_was_shown_is_loaded_again_for_a_follow_up(anna):
    """`Is it still in stock?` right after the price."""
    anna.visit(extracted_data={"title": "Lenovo LOQ 15", "price": "$697.00", "ram": "16GB", "availability": "In Stock"})
    assert "$697.00" in _answer(anna, "What does the Lenovo LOQ 15 cost?")
    assert "In Stock" in _answer(anna, "Is it still in stock?")


def test_a_pasted_trace_is_not_answered_with_orders_and_is_no_evidence_later(anna):
    """A trace that names `orders.py` shares one word with an order; afterwards it is no part of an answer about the chair."""
    anna.ask(CHAIR, session="old")
    assert "chair" not in _answer(anna, TRACE)
    assert "JSONDecodeError" not in _answer(anna, "Which chair did we order?")


def test_many_similar_questions_leave_the_answer_clean(anna):
    """Neither earlier questions nor earlier answers nor a summary of them are quoted."""
    anna.ask(CHAIR, session="old")
    for _ in range(9):
        answer = _answer(anna, "Which chair did we order?")
    assert answer.splitlines()[0].lstrip("- ").partition(") ")[2].startswith(CHAIR)
    assert "(turn" not in answer and "Which chair" not in answer and "nothing" not in answer


@pytest.mark.parametrize("said", ["Mia is allergic to nuts.", "We need wheelchair access.", "My passport expires in August."])
def test_a_statement_is_acknowledged_and_remembered(anna, said):
    """Without a source that has to do with it the answer repeats it; the session's facts hold it."""
    assert _answer(anna, said) == f"Noted: {said}"
    kept = anna.app.dependencies.facts.session(user_id("anna"), SessionId("now")).facts
    assert [f.fact for f in kept] == [said]


def test_a_correction_retires_the_value_that_it_corrects_and_nothing_else(anna):
    """A limit a night stays where the budget changes."""
    anna.ask("The hotel may cost at most 90 euros a night.", session="now")
    anna.ask("Our budget is 1200 euros.", session="now")
    anna.ask("Actually the budget is 1500 euros now.", session="now")
    kept = anna.app.dependencies.facts.session(user_id("anna"), SessionId("now")).facts
    current = {f.fact: f.current for f in kept}
    assert current == {
        "The hotel may cost at most 90 euros a night.": True,
        "Our budget is 1200 euros.": False,
        "Actually the budget is 1500 euros now.": True,
    }
