"""Which questions research takes: those of every script, without characters that act on a terminal or reorder text."""

import pytest

from pandora_dagster.app.web.research_service import checked_question
from pandora_dagster.errors import InputError


@pytest.mark.parametrize(
    "question",
    ["چرا نمی\u200cشود؟", "क्\u200dष क्या है?", "Which tent fits 👨\u200d👩\u200d👧\u200d👦?", "ราคา\u200bเท่าไร", "李小龙是谁？"],
)
def test_a_question_of_any_script_is_taken_as_it_is(question: str) -> None:
    assert checked_question(f"  {question}\n") == question


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\x9b", "\u202e", "\u2066", "\u200f", "\ud800"])
def test_a_question_with_a_control_character_is_refused(character: str) -> None:
    with pytest.raises(InputError, match="1 to 2,000 characters without control characters"):
        checked_question(f"What does{character}it cost?")
