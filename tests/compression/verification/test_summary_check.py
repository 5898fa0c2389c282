"""What is a condensed text, and what is none."""

import pytest

from pandora_dagster.compression.verification.summary_check import check_summary
from pandora_dagster.runtime.token_counter import TokenCounter

SOURCE = "\n".join(f"Shop {n} sells the blue lamp for ${n}.50 and ships it to Bergen within {n} days of the order." for n in range(1, 40))


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        ("", "empty"),
        ("Sure! Here is a summary of the document you gave me: lamps are sold.", "unsupported"),
        ("I'm sorry, but I can't help with compressing this text.", "unsupported"),
        ("Could you please provide the text that you want me to condense?", "unsupported"),
        (SOURCE, "echo"),
        (SOURCE + " And more of it.", "inflated"),
        ("\n".join(["Shop 3 sells the blue lamp for $3.50 every day."] * 4), "echo"),
        ("; ".join(f"${n}.50" for n in range(1, 30)), "bare list"),
    ],
)
def test_no_condensed_text(counter: TokenCounter, candidate: str, reason: str) -> None:
    """Each failure is refused with its reason."""
    check = check_summary(candidate, SOURCE, 200, counter)
    assert check
    assert any(reason in r for r in check)


@pytest.mark.parametrize(
    "candidate",
    [
        "Shop 3 sells the blue lamp for $3.50 and ships it to Bergen within 3 days.",
        "# shop | price | days\n1 | $1.50 | 1\n2 | $2.50 | 2\n3 | $3.50 | 3",
        '{"shop":"Shop 3","lamp":"blue","price":"$3.50","days":"3","to":"Bergen","also":["$4.50","$5.50","$6.50"],"id":"S-3"}',
        "Prices for the lamp run from $1.50 to $39.50; every shop ships to Bergen.",
    ],
)
def test_a_condensed_text(counter: TokenCounter, candidate: str) -> None:
    """Sentences and tables pass."""
    assert not check_summary(candidate, SOURCE, 200, counter)


@pytest.mark.parametrize(("values", "ok"), [(3, True), (6, False), (10, False)])
def test_a_tenth_of_a_text_may_be_bare_values(counter: TokenCounter, values: int, ok: bool) -> None:
    """Six sentences of 150 tokens bear three values at their end, of 12 tokens; not six, of 24."""
    candidate = " ".join(SOURCE.split("\n")[:6]) + "\n" + "; ".join(f"${n}.50" for n in range(20, 20 + values))
    check = check_summary(candidate, SOURCE, 400, counter)
    assert (not check) is ok and all(reason.startswith("bare list of values: ") for reason in check)


@pytest.mark.parametrize("mark", ["", "options: ", "also seen: ", "earlier ", "call "])
def test_no_mark_makes_a_bag_of_words_a_list(counter: TokenCounter, mark: str) -> None:
    """Words thrown together are none the better for a mark in front."""
    source = "The tenant pays the rent on the first of May. " * 3 + "Keys, lamps, chairs and carpets belong to the landlord in Bergen. " * 3
    bag = "landlord first carpets tenant Bergen rent chairs keys lamps pays belong carpets first landlord rent tenant " * 2
    assert "heap of words" in " ".join(check_summary(mark + bag, source, 500, counter))


REPORT = (
    "The harbour of Nessby handled 412 ships in 2024, a tenth more than the year before. The council will dredge the eastern channel in "
    "May and has set aside 3 million crowns. Fishermen complained that the new cranes frighten the seals near the breakwater. "
    "Engineer Tove Aas inspected both cranes and found worn cables. Ferries to Lund will leave from pier six until the repairs end."
)


@pytest.mark.parametrize(
    "candidate",
    [
        "...",
        "\u2026 ?!",
        "Unfortunately this kind of material is beyond what an assistant should be handling.",
        "Es tut mir leid, aber dabei kann ich leider nicht helfen.",
        "Lo siento, no puedo procesar este contenido.",
        "Which passage would you like to see first?",
        "Nessby handled 412 ships in 2024. Shall I go into more depth for you?",
        "Cats sleep most of the day and prefer warm places; kittens play more than old animals do.",
        "Keep figures, keep dates, remove repetition, answer with plain text only.",
        "harbour Nessby ships year council channel crowns fishermen cranes seals breakwater engineer Tove Aas cables ferries Lund repairs",
    ],
)
def test_what_the_source_does_not_bear_is_refused(counter: TokenCounter, candidate: str) -> None:
    """Refusals, questions, prefaces, other matters, words in a heap: by what the source has, not by phrases."""
    assert check_summary(candidate, REPORT, 200, counter)


@pytest.mark.parametrize(
    "candidate",
    [
        "Nessby's harbour saw 412 ships in 2024; the eastern channel is dredged in May for 3 million crowns.",
        "Summary: Fishermen say the cranes scare seals. Tove Aas discovered worn cables on both cranes.",
        "- 412 ships handled (2024)\n- Dredging of the channel: May, 3 million crowns\n- Ferries to Lund: pier six",
        "The inspection by Tove Aas showed worn crane cables, so Lund ferries use pier six during repairs.",
    ],
)
def test_an_honest_paraphrase_stays(counter: TokenCounter, candidate: str) -> None:
    """Other words, with the content, the values and the names of the source."""
    assert check_summary(candidate, REPORT, 200, counter) == ()


VALUES = (
    "$349.00",
    "12 March 2026",
    "CH700X",
    "14 km",
    "3.5 %",
    "https://a.example/b",
    "10:31",
    "ORD-7712",
    "88 kg",
    "2026-05-06",
    "QK12-77",
    "9 days",
)


@pytest.mark.parametrize("between", (". ", " ", " / ", " and ", " | ", ") (", "; ", ", ", "\n", "\n- "))
@pytest.mark.parametrize("before", ("", "Values: ", "also: ", '"'))
def test_no_sign_between_makes_values_a_text(counter: TokenCounter, between: str, before: str) -> None:
    """Twelve values one after the other say nothing, however they are set apart."""
    source = "".join(f"The thing with number {n} was said to be {value} by everybody who was there.\n" for n, value in enumerate(VALUES))
    check = check_summary(before + between.join(VALUES), source, 200, counter)
    assert any(reason.startswith("bare list of values") for reason in check), check
