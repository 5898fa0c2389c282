"""A query finds the units that share its words, and in a long text what is around them."""

from pandora_dagster.compression.salience.text_reading import read_text
from pandora_dagster.compression.selection.passage_relevance import relevance, smoothed

TEXT = "The ferry leaves at 7.\n\nTickets for the ferry cost 9 €.\n\nThe café sells soup.\n\nDogs stay outside."


def test_the_unit_with_the_rarest_words_of_the_query_is_first() -> None:
    """Units without any have less, none has more than 1."""
    reading = read_text(TEXT)
    scores = relevance(reading, "What do tickets cost?", [8] * len(reading.units))
    assert max(scores) == 1.0 == scores[1]
    assert scores[1] > scores[0] and scores[1] > scores[3]


def test_a_query_of_other_words_finds_nothing() -> None:
    """All scores are 0, and salience decides."""
    reading = read_text(TEXT)
    assert not any(relevance(reading, "xylophone", [8] * len(reading.units)))


def test_hits_fall_off_on_both_sides() -> None:
    """With the tokens between."""
    spread = smoothed([0, 0, 1, 0, 0], [10] * 5, 20.0)
    assert spread[2] > spread[1] == spread[3] > spread[0] == spread[4] > 0


TALK = "user: Book the flight, please.\ntool pay: Error: card_5512 was declined\nuser: Then pay with card_9031.\nuser: The weather is nice."


def test_a_question_finds_a_code_by_its_words_and_a_word_that_is_also_a_speaker() -> None:
    """`card` is a part of `card_9031`; `pay` names a tool, and is said too."""
    reading = read_text(TALK)
    scores = relevance(reading, "Which card pays?", [8] * len(reading.units))
    best = sorted(range(len(scores)), key=lambda i: -scores[i])[:2]
    assert {reading.units[i].text for i in best} == {"Error: card_5512 was declined", "Then pay with card_9031."}
