"""What is a condensed text, and what is none."""

import pytest

from pandora_dagster.compression import is_a_summary
from pandora_dagster.text.tokens import TokenCounter

SOURCE = "\n".join(f"Shop {n} sells the blue lamp for ${n}.50 and ships it to Bergen within {n} days of the order." for n in range(1, 40))


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        ("", "empty"),
        ("Sure! Here is a summary of the document you gave me: lamps are sold.", "chat reply"),
        ("I'm sorry, but I can't help with compressing this text.", "refusal"),
        ("Could you please provide the text that you want me to condense?", "question back"),
        (SOURCE, "echo"),
        (SOURCE + " And more of it.", "inflated"),
        ("\n".join(["Shop 3 sells the blue lamp for $3.50 every day."] * 4), "echo"),
        ("; ".join(f"${n}.50" for n in range(1, 30)), "bare list"),
        (" ".join(sorted(w for w in SOURCE.split() if len(w) > 4)[::7]), "bag of words"),
    ],
)
def test_no_condensed_text(counter: TokenCounter, candidate: str, reason: str) -> None:
    """Each failure is refused with its reason."""
    check = is_a_summary(candidate, SOURCE, 200, counter)
    assert not check.ok
    assert any(reason in r for r in check.reasons)


@pytest.mark.parametrize(
    "candidate",
    [
        "Shop 3 sells the blue lamp for $3.50 and ships it to Bergen within 3 days.",
        "# shop|price|days\n1|$1.50|1\n2|$2.50|2\n3|$3.50|3",
        '{"shop":"Shop 3","lamp":"blue","price":"$3.50","days":"3","to":"Bergen","also":["$4.50","$5.50","$6.50"],"id":"S-3"}',
        "Prices for the lamp run from $1.50 to $39.50; every shop ships to Bergen.",
    ],
)
def test_a_condensed_text(counter: TokenCounter, candidate: str) -> None:
    """Sentences and tables pass."""
    assert is_a_summary(candidate, SOURCE, 200, counter).ok


@pytest.mark.parametrize(("values", "ok"), [(3, True), (6, False), (10, False)])
def test_a_tenth_of_a_text_may_be_bare_values(counter: TokenCounter, values: int, ok: bool) -> None:
    """Six sentences of 150 tokens bear three values at their end, of 12 tokens; not six, of 24."""
    candidate = " ".join(SOURCE.split("\n")[:6]) + "\n" + "; ".join(f"${n}.50" for n in range(20, 20 + values))
    check = is_a_summary(candidate, SOURCE, 400, counter)
    assert check.ok is ok and all(reason.startswith("bare list of values: ") for reason in check.reasons)


@pytest.mark.parametrize("mark", ["", "options: ", "also seen: ", "earlier ", "call ", "# "])
def test_no_mark_makes_a_bag_of_words_a_list(counter: TokenCounter, mark: str) -> None:
    """Words thrown together are none the better for a mark in front."""
    source = "The tenant pays the rent on the first of May. " * 3 + "Keys, lamps, chairs and carpets belong to the landlord in Bergen. " * 3
    bag = "landlord first carpets tenant Bergen rent chairs keys lamps pays belong carpets first landlord rent tenant " * 2
    assert "bag of words" in " ".join(is_a_summary(mark + bag, source, 500, counter).reasons)
