"""Names in the excerpt of a recorded turn."""

import json
from dataclasses import dataclass

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.documents.recorded_context import attributed_text, render_recorded_context
from pandora_dagster.retrieval.turn_excerpts import Excerpt, excerpt


@dataclass(frozen=True)
class Words:
    """Counts words."""

    def count(self, text: str) -> int:
        return len(text.split())


MESSAGES = [
    {"role": "user", "name": "Ida", "content": "The ferry is late.\n\n- one\n- two\n\nWhat now?"},
    {"role": "assistant", "name": "Ben Ali", "content": "Take the train."},
]


def piece(messages: list[dict[str, str]], limit: int = 100) -> Excerpt:
    lines = "".join(json.dumps(m) + "\n" for m in messages)
    when = "2025-03-01T09:00:00Z"
    manifest = Manifest(
        user_id="u", turn_id="turn_000007", session_id="s", state=TurnState.SAVED, created_at=when, last_activity=when, recorded=True
    )
    turn = Turn(TurnKey(UserId("u"), 7), manifest, render_recorded_context(messages), {"messages.jsonl": lines})
    return excerpt(turn, "ferry", limit=limit, counter=Words(), scores=lambda _, texts: [1.0] * len(texts))


def test_names_stand_before_what_was_said() -> None:
    """Listed first, then before each paragraph of prose; a list stays a list."""
    assert piece(MESSAGES).text == (
        "Speakers: Ida, Ben Ali\n\n0. User Query: Ida: The ferry is late.\n\n- one\n- two\n\nIda: What now?\n\n"
        "5. Synthesis: Ben Ali: Take the train."
    )


def test_without_names_nothing_is_added() -> None:
    """Neither where nobody is named nor where only a tool is."""
    bare = [{"role": m["role"], "content": m["content"]} for m in MESSAGES]
    assert piece(bare).text.startswith("0. User Query: The ferry is late.") and "Speakers" not in piece(bare).text
    assert attributed_text({"role": "tool", "name": "search", "content": "found"}) == "found"


def test_the_names_count_against_the_limit() -> None:
    """An excerpt with its names stays within its tokens."""
    for limit in range(30):
        found = piece(MESSAGES, limit)
        assert len(found.text.split()) <= found.tokens <= limit


def test_a_greeting_before_the_first_turn_bears_its_name() -> None:
    """Its message is not among the turn's own, so that its section tells who spoke."""
    greeting = [{"role": "system", "content": "Be kind."}, {"role": "assistant", "name": "Ben Ali", "content": "Hello Ida!"}]
    assert "### Before This Turn\n\nBen Ali: Hello Ida!\n" in render_recorded_context(MESSAGES, preamble=greeting)
