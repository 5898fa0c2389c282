"""Talk between named people."""

from pandora_dagster.compression.dialogue import Dialogue
from pandora_dagster.compression.dialogue_lines import is_dialogue, read_lines
from pandora_dagster.compression.telegraph import telegraph
from pandora_dagster.text.tokens import TokenCounter

TALK = "\n".join(
    line
    for n in range(12)
    for line in (
        f"Ada: Hey! So I was thinking that we could really go and see the museum in Bergen around day {n + 1}, what do you think?",
        "Ivo: Yeah, that sounds really great to me! I don't want to drive though, you know.",
    )
)


def test_the_words_that_carry_content_stay(counter: TokenCounter) -> None:
    """Numbers, names and negations survive; the speakers are named once."""
    out = Dialogue(TALK, counter).condensed(90)
    assert out.startswith("A=Ada; I=Ivo\n")
    assert counter.count(out) <= 90
    assert "Bergen" in out
    assert "don't want" in out


def test_the_legend_is_read_back(counter: TokenCounter) -> None:
    """Short names become whole names again."""
    out = Dialogue(TALK, counter).condensed(90)
    assert {line.speaker for line in read_lines(out)} == {"Ada", "Ivo"}


def test_a_negation_keeps_what_it_denies() -> None:
    """The words behind a negation are never deleted, whatever their class, up to the end of what it denies."""
    assert telegraph("I do not go there at all", ()) == "not go there"
    assert telegraph("It is about not giving up and trying it", ()) == "not giving up trying"
    assert telegraph("We didn't make it, but it was close", ()) == "didn't make it, close"


def test_plain_text_is_no_dialogue() -> None:
    """A colon here and there makes no speakers."""
    assert is_dialogue(TALK)
    assert not is_dialogue("Note: a thing.\nSome text.\nMore text.\nAnd more.")


def test_a_greeting_is_no_statement(counter: TokenCounter) -> None:
    """What holds the speakers' names and function words only is not kept, however much room there is."""
    talk = "\n".join(f"Ada: Hey Ivo! The boat to Bergen leaves at {n}:30.\nIvo: Hello Ada! Thanks Ada!" for n in range(1, 12))
    made = Dialogue(talk, counter).condensed(180)
    assert "11:30" in made and "Hey" not in made and "Hello" not in made
