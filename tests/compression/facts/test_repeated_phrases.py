"""Words that an earlier sentence said are left out before any fact is."""

import pytest

from pandora_dagster.compression.compressor import compress
from pandora_dagster.compression.facts.repeated_phrases import shortened
from pandora_dagster.contracts.compression_results import CompressionRequest

FILLER = "and the committee went on to talk about the weather and the coffee for the rest of a long afternoon"


def test_a_run_of_words_that_stood_before_is_a_gap() -> None:
    """The first sentence is left alone; the second keeps what is its own."""
    assert list(shortened([f"Order A1 cost $7 {FILLER}.", f"Order B2 cost $9 {FILLER}."])) == ["", "Order B2 cost $9 …"]


@pytest.mark.parametrize("tail", ["not {}", "unless {}", "at most {}", "{} with Ada", "{} for $12.50"])
def test_negations_limits_and_values_stay(tail: str) -> None:
    """A repeated run that turns, limits or names something keeps those words."""
    run = tail.format("the people of the house sit in the garden of the house")
    first, second = shortened([f"Then came the one {run}", f"Later went the other {run}"])
    assert first == ""
    words = second or f"Later went the other {run}"
    assert all(word in words for word in tail.replace("{}", "").split())


def test_sentences_of_their_own_words_have_no_shorter_form() -> None:
    """Shorter runs are how a language speaks."""
    assert list(shortened(["On the other hand the boat was late", "On the other hand the boat came home"])) == ["", ""]


@pytest.mark.parametrize("target", [700, 900, 1_300])
def test_no_fact_is_lost_while_filler_stands(counter, target: int) -> None:
    """Forty facts before the same long filler all stay, though the text is more than twice too long."""
    text = "\n".join(f"Order A{i:03d} cost ${i * 7 + 3}.50 {FILLER}, {FILLER.replace('weather', 'river')}." for i in range(40))
    made = compress(CompressionRequest(text, target=target), counter)
    assert made.text is not None and made.missing == ()
    assert made.original_tokens > target >= made.tokens
