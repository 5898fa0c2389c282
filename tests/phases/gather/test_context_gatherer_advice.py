"""Who asks for advice is bound by what they said before, though the question shares no word with it."""

import pytest

from tests.phases.embedded import Embedded


@pytest.fixture
def anna(tmp_path):
    made = Embedded(tmp_path / "store")
    yield made
    made.app.close()


@pytest.mark.parametrize("limit", ["I never eat fish.", "I am allergic to shellfish."])
def test_a_limit_of_the_session_is_given_to_who_asks_for_a_suggestion(anna, limit):
    """In section 2 of the session's next turn, with its day and turn; not for a question of fact about something else."""
    anna.ask(limit, session="home")
    key = anna.ask("Suggest a dinner for tonight.", session="home")
    assert f"({anna.app.turns.load(key).manifest.created_at[:10]}) {limit}" in anna.section(key, 2)
    assert limit not in anna.section(anna.ask("When was the moon landing?", session="home"), 2)


def test_another_session_is_not_bound_without_consent(anna):
    """The ledger is the session's own."""
    anna.ask("I never eat fish.", session="home")
    assert "fish" not in anna.section(anna.ask("Suggest a dinner for tonight.", session="work"), 2)


def test_own_fixed_sentences_never_come_back_as_what_was_said(anna):
    """What the embedded runtime said of finding nothing is no source for a later turn."""
    anna.ask("Where is the attic ladder?", session="one")
    anna.ask("Why does the attic ladder squeak?", session="two")
    answer = anna.section(anna.ask("attic ladder squeaks", session="three"), 5)
    assert "nearest" not in answer and "I found nothing about this" not in answer.partition("[")[2]
