"""Two values of one thing, told in different conversations: what a later question is given, looked at in its packs."""

import pytest

from tests.phases.embedded import Embedded


@pytest.fixture
def anna(tmp_path):
    made = Embedded(tmp_path / "store")
    yield made
    made.app.close()


def test_the_newer_value_is_current_and_the_older_stays_with_its_date(anna):
    """Said in two sessions, asked in a third: the answer's pack holds both, the older marked, and the answer tells the newer first."""
    anna.ask("My limit for flights is 400 euros.", session="spring")
    anna.ask("Actually, my limit for flights is 450 euros.", session="summer")
    key = anna.ask("What is my limit for flights?", session="autumn")
    given = next(p for p in reversed(anna.runtime.packs) if p.role == "synthesizer").document("context.md")
    day = anna.app.turns.load(key).manifest.created_at[:10]
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
    """A note's day is the one in its front matter; without one neither is newer, and both are reported with their sources."""
    front = f"---\nupdated: {noted}\n---\n" if noted else ""
    anna.note("Travel/Limits.md", f"{front}# Limits\n\nMy limit for flights is 400 euros.")
    anna.ask("My limit for flights is 450 euros.", session="summer")
    key = anna.ask("What is my limit for flights?", session="autumn")
    given = next(p for p in reversed(anna.runtime.packs) if p.role == "synthesizer").document("context.md")
    day = anna.app.turns.load(key).manifest.created_at[:10]
    text = f"({day}, no longer current) " if current == "note" else f"({day}) "
    written = {"conversation": "(2000-01-01, no longer current) ", "note": "(2999-01-01) ", "unknown": ""}[current]
    assert f"{text}My limit for flights is 450 euros." in given
    assert f"- {written}My limit for flights is 400 euros. [" in given


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        (
            "The expansion vessel will cost about 260 euros.",
            "The expansion vessel costs 295 euros instead of 260.",
            "How much does the expansion vessel cost?",
        ),
        ("Ella's swimming is on Wednesday.", "Ella's swimming has moved to Tuesday.", "On which day is Ella's swimming?"),
        (
            "We use pgvector for similarity search.",
            "We switched from pgvector to Qdrant for similarity search.",
            "What does similarity search use?",
        ),
        ("Der Umzug ist am 15. Dezember.", "Der Umzug ist jetzt am 22. Dezember.", "Wann ist der Umzug?"),
    ],
)
def test_what_a_user_corrected_of_anything_is_no_longer_current(anna, before, after, asked):
    """Not only of themselves: a figure, a day, a choice that a later sentence replaces; the newer one is reported first."""
    anna.ask(before, session="one")
    anna.ask(after, session="two")
    key = anna.ask(asked, session="three")
    given = next(p for p in reversed(anna.runtime.packs) if p.role == "synthesizer").document("context.md")
    day = anna.app.turns.load(key).manifest.created_at[:10]
    assert f"({day}) {after}" in given and f"({day}, no longer current) {before}" in given
    lines = [line for line in anna.section(key, 5).splitlines() if line.startswith("- (")]
    assert after in lines[0] and not any(before in line and "no longer current" not in line for line in lines)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("The expansion vessel will cost about 260 euros.", "The pump costs 295 euros now."),
        ("Ella's swimming is on Wednesday.", "Ella's piano lesson has moved to Tuesday."),
        ("We use pgvector for similarity search.", "We use Qdrant for the catalogue."),
        ("The expansion vessel costs 260 euros.", "The expansion vessel was ordered on Tuesday, it is now on its way."),
    ],
)
def test_another_matter_takes_nothing_back(anna, before, after):
    """Another thing, another value or no value: both hold."""
    anna.ask(before, session="one")
    anna.ask(after, session="two")
    key = anna.ask(f"What do you know? {before} {after}", session="three")
    assert "no longer current" not in anna.section(key, 2)


def test_what_stood_in_one_sentence_with_a_corrected_limit_holds_on(anna):
    """An allergy does not end with the budget that it was reported with: the ledger keeps the two apart, and nothing marks the sentence."""
    anna.ask("I am allergic to walnuts and my limit for a cake is 40 euros.", session="trip")
    anna.ask("Actually, my limit for a cake is 55 euros.", session="trip")
    key = anna.ask("What am I allergic to, and what is my limit for a cake?", session="trip")
    known = {f.fact: f.is_current for f in anna.app.dependencies.facts.session(key.user, "trip").facts}
    assert known["I am allergic to walnuts"] and not known["my limit for a cake is 40 euros."]
    assert "no longer current) I am allergic" not in anna.section(key, 2)
