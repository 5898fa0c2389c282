"""Which of the found messages bear on a query, and which of their lines."""

from datetime import date

import pytest

from pandora_dagster.contracts.turns import FoundMessage
from pandora_dagster.language.terms import TermReader
from pandora_dagster.retrieval.messages.document_numbers import document_number
from pandora_dagster.retrieval.messages.message_relevance import neighbouring_messages, relevant_messages


@pytest.fixture(scope="module")
def reader():
    return TermReader()


def _message(turn: int, place: int, text: str, speaker: str = "user", day: str = "2023-05-08") -> FoundMessage:
    return FoundMessage(f"turn_{turn:06d}", f"{day}T10:00:00Z", f"m{turn}.{place}", speaker, text, 1.0, document_number(turn, place))


def _kept(query: str, messages: list[FoundMessage], reader: TermReader) -> list[str]:
    return [m.text for m in relevant_messages(query, messages, reader)]


def test_what_shares_no_word_with_the_query_is_left_out(reader):
    """The answer to a match stays, another turn of the person does not, nor does a greeting."""
    messages = [
        _message(1, 1, "Hello, how are you?"),
        _message(2, 1, "Which lamps did you see?"),
        _message(2, 2, "The Nordlys costs $41.", "assistant"),
        _message(3, 1, "The train leaves at noon."),
    ]
    assert _kept("lamp", messages, reader) == ["Which lamps did you see?", "The Nordlys costs $41."]


def test_what_people_say_to_each_other_stays(reader):
    """An answer may come turns later in words of its own."""
    said = ("Nice weather today.", "I bought a lamp.", "It was cheap in Bergen.", "My sister plays chess.")
    messages = [_message(n, 1, text, "Ann" if n % 2 else "Ben") for n, text in enumerate(said, 1)]
    assert _kept("lamp", messages, reader) == list(said)


def test_a_long_message_shows_its_matching_lines(reader):
    """A tool's output is told by the lines that share a word with the query; one without such a line is left out."""
    dump = "### Result 1: doc.search\n\n**Status:** success\n\nThe lamp costs $41.\n\nThe kettle costs $9."
    other = "### Result 1: memory.query\n\n**Status:** success\n\nnothing\n\nelse"
    assert _kept("lamp", [_message(1, 1, dump, "tool"), _message(1, 2, other, "tool")], reader) == ["The lamp costs $41."]


def test_what_only_repeats_is_left_out(reader):
    """`Noted: ...` after the statement itself, and a message without a word of matter."""
    messages = [
        _message(1, 1, "The lamp is green."),
        _message(1, 2, "Noted: The lamp is green.", "assistant"),
        _message(1, 3, "You are!", "tool"),
    ]
    assert _kept("lamp", messages, reader) == ["The lamp is green."]


def test_a_date_and_a_beginning_count_as_matches(reader):
    """What was said on a day, and a word that begins alike."""
    messages = [_message(1, 1, "I swam.", day="2023-05-08"), _message(4, 1, "Computation is hard.", day="2023-06-01")]
    assert _kept("8 May 2023", messages, reader) == ["I swam."]
    assert _kept("computers", messages, reader) == ["Computation is hard."]


def test_answers_without_a_find_stand_back_where_anything_tells_more(reader):
    """So do questions that nobody answered; alone they are shown."""
    empty = [
        _message(1, 1, "Which oil for the attic ladder?"),
        _message(1, 2, "I found nothing about oil for the attic ladder.", "assistant"),
    ]
    told = _message(2, 1, "The attic ladder is 2 m long.")
    assert _kept("attic ladder", [*empty, told], reader) == ["The attic ladder is 2 m long."]
    assert _kept("attic ladder", empty, reader) == [m.text for m in empty]


def test_a_question_with_a_statement_or_an_answer_stays(reader):
    """It tells something itself, or what is told after it."""
    messages = [
        _message(1, 1, "I oiled the ladder. What else?"),
        _message(2, 1, "How long is the ladder?"),
        _message(2, 2, "The ladder is 2 m long.", "assistant"),
    ]
    assert _kept("ladder", messages, reader) == [m.text for m in messages]


def test_the_turns_beside_a_find_are_offered(reader):
    """Not those farther away, of another day, or what only acknowledges."""
    found = [
        _message(2, 1, "Too many files leak."),
        _message(3, 1, "The pool is made on every request."),
        _message(3, 2, "Noted.", "assistant"),
        _message(1, 1, "Good morning.", day="2023-05-07"),
        _message(4, 1, "The release is planned."),
    ]
    kept = relevant_messages("leak", found, reader)
    assert [m.text for m in kept] == ["Too many files leak."]
    assert [m.text for m in neighbouring_messages(found, kept, reader)] == ["The pool is made on every request."]
    assert neighbouring_messages(found, [], reader) == []


def test_what_was_said_on_the_day_that_is_meant_is_kept(reader):
    """`yesterday` is counted from the day of the question."""
    messages = [_message(1, 1, "I swam.", day="2023-05-08"), _message(4, 1, "I ran.", day="2023-06-01")]
    assert [m.text for m in relevant_messages("yesterday", messages, reader, date(2023, 5, 9))] == ["I swam."]
