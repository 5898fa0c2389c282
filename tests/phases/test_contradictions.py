"""Two values of one thing, told in different conversations: what a later question is given, looked at in its packs."""

import pytest

from tests.phases.embedded import Embedded


@pytest.fixture
def anna(tmp_path):
    made = Embedded(tmp_path / "store")
    yield made
    made.house.close()


def test_the_newer_value_is_current_and_the_older_stays_with_its_date(anna):
    """Said in two sessions, asked in a third: the answer's pack holds both, the older marked, and the answer tells the newer first."""
    anna.ask("My limit for flights is 400 euros.", session="spring")
    anna.ask("Actually, my limit for flights is 450 euros.", session="summer")
    key = anna.ask("What is my limit for flights?", session="autumn")
    given = next(p for p in reversed(anna.runtime.packs) if p.role == "synthesizer").document("context.md")
    day = anna.house.turns.load(key).manifest.created_at[:10]
    assert f"({day}) Actually, my limit for flights is 450 euros." in given
    assert f"({day}, no longer current) My limit for flights is 400 euros." in given
    lines = anna.section(key, 5).splitlines()
    assert lines[0].startswith(f"- ({day}) Actually, my limit for flights is 450 euros. [")
    assert lines[1].startswith(f"- ({day}, no longer current) My limit for flights is 400 euros. [")


def test_a_note_and_research_are_found_by_what_they_say(anna):
    """Neither title nor topic names what is asked: the headers tell RETRIEVAL which words of the question stand behind them."""
    anna.note("Home/Flat.md", "# Flat\n\nThe landlord is Ada Berg.")
    anna.research()
    assert "The landlord is Ada Berg." in anna.section(anna.ask("Who is my landlord?"), 5)
    assert "$697" in anna.section(anna.ask("What does the Lenovo LOQ 15 cost?"), 5)


@pytest.mark.parametrize(("noted", "current"), [("2000-01-01", "conversation"), ("2999-01-01", "note"), ("", "unknown")])
def test_of_a_note_and_a_conversation_the_newer_is_current(anna, noted, current):
    """A note's day is the one in its front matter; without one neither is newer, and both are told with their sources."""
    front = f"---\nupdated: {noted}\n---\n" if noted else ""
    anna.note("Travel/Limits.md", f"{front}# Limits\n\nMy limit for flights is 400 euros.")
    anna.ask("My limit for flights is 450 euros.", session="summer")
    key = anna.ask("What is my limit for flights?", session="autumn")
    given = next(p for p in reversed(anna.runtime.packs) if p.role == "synthesizer").document("context.md")
    day = anna.house.turns.load(key).manifest.created_at[:10]
    said = f"({day}, no longer current) " if current == "note" else f"({day}) "
    written = {"conversation": "(2000-01-01, no longer current) ", "note": "(2999-01-01) ", "unknown": ""}[current]
    assert f"{said}My limit for flights is 450 euros." in given
    assert f"- {written}My limit for flights is 400 euros. [" in given
