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


def test_follow_ups_keep_to_their_thing_and_deny_what_nobody_said(anna):
    """The price behind the date is the chair's; of its stock nothing is known."""
    anna.ask("We ordered the Lumo chair for 249 euros. It arrives on 12 May.")
    assert "Lumo chair" in _answer(anna, "Which chair did we order?")
    assert "12 May" in _answer(anna, "When does it arrive?").splitlines()[0]
    assert "249 euros" in _answer(anna, "What did it cost?").splitlines()[0]
    assert _answer(anna, "Is it still in stock?") == "I found nothing about this."


def test_what_was_just_said_is_quoted_for_a_question_of_common_words(anna):
    """`go` is a word of matter: beside older turns about desks, the statement that shares it answers."""
    anna.ask("My budget for desk and chair is 700 euros, and the desk must not be wider than 140 cm.", session="old")
    anna.ask(DESK, session="old")
    anna.ask("The desk goes to the second floor.")
    assert "second floor" in _answer(anna, "Where does the desk go?")


def test_another_number_is_another_thing(anna):
    """Desk of room 7, none of room 9."""
    anna.ask("The desk of room 7 is birch.")
    assert "birch" in _answer(anna, "What is the desk of room 7?")
    assert _answer(anna, "What is the desk of room 9?") == "I found nothing about this."


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


@pytest.mark.parametrize(
    "said",
    [
        "For hotels I want to pay at most 90 euros a night.",
        "Dr. Patel will do the surgery on 9 June.",
        "Mein Zug fährt am Freitag um 8:15 Uhr von Gleis 7.",
        "Notre réservation à l'hôtel Bellevue est du 4 au 7 juin.",
        "会議は6月3日の午後2時からです。",
    ],
)
def test_what_only_tells_is_noted_in_any_language(anna, said):
    """Also beside sources that share words with it."""
    anna.ask("My budget for the trip is 1200 euros.", session="old")
    assert _answer(anna, said) == f"Noted: {said}"


def test_advice_is_bound_by_what_was_stated(anna):
    """Limits that the question does not repeat; thanks and greetings are no evidence."""
    for said in ("Hello", "Mia is allergic to nuts.", "Thanks, that helps!", "We need wheelchair access."):
        anna.ask(said, session="now")
    answer = _answer(anna, "Suggest a restaurant for us.")
    assert "nuts" in answer and "wheelchair" in answer and "Hello" not in answer and "Thanks" not in answer


def test_a_newer_preference_takes_the_place_of_the_stored_one(anna):
    """The older one is shown as no longer current, if at all."""
    anna.ask("I prefer window seats.", session="now")
    anna.ask("I prefer aisle seats now.", session="now")
    lines = _answer(anna, "Which seats do I prefer?").splitlines()
    assert "aisle seats" in lines[0] and all("no longer current" in line for line in lines if "window" in line)


def test_a_correction_retires_the_value_that_it_corrects_and_nothing_else(anna):
    """A limit a night stays where the budget changes."""
    anna.ask("The hotel may cost at most 90 euros a night.", session="now")
    anna.ask("Our budget is 1200 euros.", session="now")
    anna.ask("Actually the budget is 1500 euros now.", session="now")
    kept = anna.app.dependencies.facts.session(user_id("anna"), SessionId("now")).facts
    current = {f.fact: f.is_current for f in kept}
    assert current == {
        "The hotel may cost at most 90 euros a night.": True,
        "Our budget is 1200 euros.": False,
        "Actually the budget is 1500 euros now.": True,
    }
