"""Talk between named people."""

import random
import re

import pytest

from pandora_dagster.compression import compress
from pandora_dagster.compression.condense.dialogue import Dialogue
from pandora_dagster.compression.condense.fact_restoration import restore_facts
from pandora_dagster.compression.facts.fact_statements import forced
from pandora_dagster.compression.judge.ledger import build_ledger
from pandora_dagster.compression.read.dialogue_lines import is_dialogue, read_lines
from pandora_dagster.compression.words.courtesy import is_courtesy
from pandora_dagster.compression.words.sentence_compression import telegraph
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.documents.token_counter import TokenCounter

TALK = "\n".join(
    line
    for n in range(12)
    for line in (
        f"Ada: Hey! So I was thinking that we could really go and see the museum in Bergen around day {n + 1}, what do you think?",
        "Ivo: Yeah, that sounds really great to me! I don't want to drive though, you know.",
    )
)


def test_the_words_that_carry_content_stay(counter: TokenCounter) -> None:
    """Numbers, names and negations survive, behind the name of who says it."""
    out = Dialogue(TALK, counter).condensed(90)
    assert out.startswith(("Ada: ", "Ivo: "))
    assert counter.count(out) <= 90
    assert "Bergen" in out
    assert "don't want" in out


def test_the_legend_is_read_back(counter: TokenCounter) -> None:
    """A long talk names its speakers once, and short names become whole names again."""
    out = Dialogue("\n".join([TALK] * 8), counter).condensed(120)
    assert out.startswith("A=Ada; I=Ivo\n")
    assert {line.speaker for line in read_lines(out)} == {"Ada", "Ivo"}


def test_a_negation_keeps_what_it_denies() -> None:
    """The words behind a negation are never deleted, whatever their class, up to the end of what it denies."""
    assert telegraph("I do not go there at all", ()) == "do not go there all"
    assert telegraph("It is about not giving up and trying it", ()) == "not giving up trying it"
    assert telegraph("We didn't make it, but it was close", ()) == "didn't make it, but was close"


def test_plain_text_is_no_dialogue() -> None:
    """A colon here and there makes no speakers."""
    assert is_dialogue(TALK)
    assert not is_dialogue("Note: a thing.\nSome text.\nMore text.\nAnd more.")


def test_a_greeting_is_no_statement(counter: TokenCounter) -> None:
    """What holds the speakers' names and function words only is not kept, however much room there is."""
    talk = "\n".join(f"Ada: Hey Ivo! The boat to Bergen leaves at {n}:30.\nIvo: Hello Ada! Thanks Ada!" for n in range(1, 12))
    made = Dialogue(talk, counter).condensed(180)
    assert "11:30" in made and "Hey" not in made and "Hello" not in made


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I was charged twice for March.", "was charged twice March."),
        ("The corrected bill will be sent by Friday.", "corrected bill will be sent by Friday."),
        ("She sold her car to Anna.", "She sold her car to Anna."),
        ("It takes 3 to 5 days if the bank is open.", "takes 3 to 5 days if bank is open."),
        ("He turned down the offer, I think.", "He turned down offer, think."),
        ("Ben fixes it, Tilo writes to ACME.", "Ben fixes it, Tilo writes to ACME."),
        ("So are we ready to ship today?", "ready ship today?"),
    ],
)
def test_what_is_deleted_turns_nothing(said: str, kept: str) -> None:
    """Who does it, to whom, when and under which condition, and that a question is one, are still told."""
    assert telegraph(said, forced(said)) == kept


CHAT = """[09:01] Mara: morning all!
[09:01] Ben: morning :)
[09:02] Tilo: Good morning! Hope you are all well!
[09:04] Ben: Tests are green except test_refund_rounding.
It fails on Windows only.
[09:07] Mara: then let's ship on Thursday 18 June, at 10:00.
[09:08] Mara: Ben fixes it, Tilo writes to ACME.
[09:10] Mara: we can't give 15. Offer 8 % and a free month, that's $1,150 less for us.
[09:12] Tilo: have fun at lunch! have a lovely day!
[10:22] Mara: great, thanks!
[11:02] Tilo: ACME accepts 8 %, but they want the free month in September, not July.
[11:03] Mara: thank you so much, have a lovely day!"""


def test_a_chat_with_times_is_talk(counter: TokenCounter) -> None:
    """Each line that is kept stands behind its time and its speaker; what goes on below a line is that speaker's."""
    assert is_dialogue(CHAT)
    assert [line.speaker for line in read_lines(CHAT)][3:5] == ["Ben", "Ben"]
    made = compress(CompressionRequest(CHAT, target=110), counter).text or ""
    assert made and all(re.match(r"\[\d\d:\d\d\] (Mara|Ben|Tilo): ", line) for line in made.split("\n"))


@pytest.mark.parametrize("row", ["2026-03-01, 09:01 - Mara: hi there", "**Mara:** hi there", "<Mara> hi there", "Mara (09:01): hi there"])
def test_the_speaker_is_read_from_the_stamps_of_chat_programs(row: str) -> None:
    """However a program writes time and name, the name is the speaker."""
    assert [(line.speaker, line.text) for line in read_lines(row)] == [("Mara", "hi there")]


def test_decisions_and_amounts_come_before_courtesy(counter: TokenCounter) -> None:
    """At a fifth the amounts and dates stand, and no greeting."""
    made = compress(CompressionRequest(CHAT, target=60), counter).text or ""
    assert "8 %" in made and "18 June" in made
    assert "orning" not in made and "lovely" not in made and "hank" not in made


@pytest.mark.parametrize(
    "said", ["Thank you so much, have a lovely day!", "Good morning! Hope you are well.", "You're welcome!", "Merci !"]
)
def test_a_set_phrase_is_courtesy(said: str) -> None:
    """Greetings, thanks and good wishes tell nothing, in more than one language."""
    assert is_courtesy(said)


@pytest.mark.parametrize("said", ["Thanks, but the refund of $5 is missing.", "Hi, I was charged twice.", "Let me know by 5 May."])
def test_a_phrase_with_a_statement_is_none(said: str) -> None:
    """What is said besides counts."""
    assert not is_courtesy(said)


def test_values_keep_what_joins_them() -> None:
    """A span of hours stays one, and an amount does not run into a date."""
    assert telegraph("I can come on Tuesday between 8 and 12.", ()) == "can come Tuesday between 8 and 12."
    assert telegraph("That makes 10 euros for 6 March.", ()) == "makes 10 euros for 6 March."


def test_a_sentence_stands_whole_where_there_is_room(counter: TokenCounter) -> None:
    talk = "Ann: That makes 10 euros for the cheese that I bought.\nBen: I have paid it on 3 May.\nAnn: Hey there!\nBen: Hello!\n" * 3
    out = Dialogue(talk, counter).condensed(60)
    assert counter.count(out) <= 60
    assert "That makes 10 euros for the cheese that I bought." in out


def test_a_value_is_put_back_with_the_values_it_stands_in_one_with(counter: TokenCounter) -> None:
    source = "The fitter comes, weather permitting, on Wednesday 11 March, 14:00 to 17:00, with two colleagues."
    facts = [f for f in build_ledger(source, ContentType.GENERIC).facts if f.text == "14:00"]
    assert "Wednesday 11 March, 14:00 to 17:00" in restore_facts("", facts, source, 60, counter)


class DearNames:
    """Counts as if every speaker's name were as long as a line."""

    def count(self, text: str) -> int:
        return len(text.split()) + 40 * text.count(": ")


@pytest.mark.parametrize("target", [1_000, 2_000, 4_000, 8_000])
def test_talk_of_long_names_fills_its_target(target: int) -> None:
    """A line costs its speaker's whole name; what had to be cut back once is not cut back again and again."""
    chance = random.Random(1)
    sounds = ["ba", "de", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va", "we"]

    def sentence() -> str:
        return " ".join(["We saw", *("".join(chance.choices(sounds, k=3)) for _ in range(chance.randint(10, 25)))]) + "."

    lines = [f"{chance.choice(('Ada', 'Ivo', 'Eve'))}: {' '.join(sentence() for _ in range(chance.randint(1, 4)))}" for _ in range(120)]
    made = Dialogue("\n".join(lines), DearNames()).condensed(target)
    assert 0.9 * target <= DearNames().count(made) <= target


@pytest.mark.parametrize(
    ("said", "kept"),
    (
        ("So please do not send anything there.", "do not send anything there."),
        ("Maya will not sign anything above that.", "Maya will not sign anything above that."),
        ("Could we reduce the run to 11,500 copies?", "Could we reduce run to 11,500 copies?"),
        ("Is there nothing on 10 June?", "Is there nothing 10 June?"),
        ("However we have to stay under 19,000 euros.", "However we have to stay under 19,000 euros."),
    ),
)
def test_a_shortened_sentence_is_no_order_and_denies_what_it_denied(said: str, kept: str) -> None:
    assert telegraph(said, forced(said)) == kept
