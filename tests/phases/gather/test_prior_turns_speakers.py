"""A line of a tool's result in an earlier turn is reported as the tool's, in the packs and in the answer."""

import json

CALL = [{"id": "c1", "type": "function", "function": {"name": "orders.find", "arguments": "{}"}}]
GIVEN = "The parcel lies at the depot in Ghent. My supervisor approved it."
HISTORY = {
    "id": "parcel",
    "user_id": "anna",
    "created_at": "2026-05-01T10:00:00Z",
    "messages": [
        {"role": "user", "content": "Where is my parcel?"},
        {"role": "assistant", "content": "", "tool_calls": CALL},
        {"role": "tool", "tool_call_id": "c1", "name": "orders.find", "content": GIVEN},
        {"role": "assistant", "content": "It is on its way."},
        {"role": "user", "content": "Thanks, I will pick up the parcel at noon."},
        {"role": "assistant", "content": "Fine."},
    ],
}


def test_what_a_tool_said_is_not_told_as_the_users_word(anna):
    """Its name stands before its line, in section 2 as in the answer; what the user said stands under the day alone."""
    assert not anna.app.transfer.import_conversations([json.dumps(HISTORY).encode()], where="history").faults
    key = anna.ask("Where did the parcel lie?", session="new")
    given = next(p for p in reversed(anna.runtime.packs) if p.role == "synthesizer").document("context.md")
    answer = anna.section(key, 5)
    for text in (given, answer):
        assert "(2026-05-01) tool orders.find: The parcel lies at the depot in Ghent." in text
        assert "(2026-05-01) My supervisor" not in text and "(2026-05-01) The parcel" not in text
    assert "(2026-05-01) Thanks, I will pick up the parcel at noon." in given


def test_what_follows_a_tool_in_its_turn_is_not_the_tools(anna):
    """The answer of that turn stands without the tool's name."""
    anna.app.transfer.import_conversations([json.dumps(HISTORY).encode()], where="history")
    answer = anna.section(anna.ask("What did I say about noon?", session="new"), 5)
    assert "I will pick up the parcel at noon." in answer and "orders.find" not in answer
