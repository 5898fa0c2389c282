"""How condensed prose reads, and what it costs."""

import json

import pytest

from pandora_dagster.compression.compressor import compress
from pandora_dagster.compression.condense.attribution import Origin
from pandora_dagster.compression.condense.fact_restoration import snippet
from pandora_dagster.compression.condense.prose import Prose
from pandora_dagster.compression.facts.fact_types import Outcome
from pandora_dagster.compression.judge.ledger import build_ledger
from pandora_dagster.compression.words.word_classes import sentences
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.documents.token_counter import TokenCounter

TALK = "It was a long day and we spoke about the weather, the coffee, the garden and the neighbours of the old house by the sea. "


def test_a_sentence_stands_with_the_label_of_its_line(counter: TokenCounter) -> None:
    """The first sentence goes, what it was about stays."""
    text = "# Turn 11\n\n**Asked:** " + TALK + "The order is LMP-4471 of May 3.\n\n" + "\n\n".join(f"{n} {TALK}" for n in "abcdef")
    assert "**Asked:** The order is LMP-4471 of May 3." in Prose(text, counter).condensed(30)


def test_the_title_stands_and_a_table_ends(counter: TokenCounter) -> None:
    """A title needs no word of its own; the line behind a table is none of its rows."""
    rows = "\n".join(f"| part {n} | ${n}.50 |" for n in range(3))
    text = f"# Prices\n\n{TALK}\n\n| part | price |\n|---|---|\n{rows}\n\nThe offer ends on 2026-05-01.\n\n{TALK}"
    made = Prose(text, counter).condensed(70)
    assert made.startswith("# Prices\n")
    assert f"{rows}\n\nThe offer ends on 2026-05-01." in made


def test_a_short_fence_stays(counter: TokenCounter) -> None:
    """What a person is to run is worth more than talk."""
    made = Prose(f"{TALK}\n\n```bash\nthing init\n```\n\n{TALK * 3}", counter).condensed(30)
    assert "```bash\nthing init\n```" in made


def test_a_sentence_keeps_its_closing_quote() -> None:
    """A quotation is not left open."""
    assert sentences('She said: "We build it." Then she left.') == ['She said: "We build it."', "Then she left."]


def test_a_text_is_taken_apart_once_for_all_targets(counter: TokenCounter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six shares of a target cost one reading."""
    from pandora_dagster.compression.condense import prose

    read: list[str] = []
    found = prose.find_values
    monkeypatch.setattr(prose, "find_values", lambda text, **options: (read.append(text), found(text, **options))[1])
    apart = Prose("\n".join(f"{n} {TALK}" for n in range(60)), counter)
    for target in (900, 800, 700):
        assert apart.condensed(target)
    assert len(read) == 60


def test_later_generations_are_judged_by_the_first_original(counter: TokenCounter) -> None:
    """What the first pass lost stays missing in the second one's verdicts, and nothing more is lost."""
    text = "\n\n".join(
        f"Order A{n:03d} of 2026-03-{n % 28 + 1:02d} cost ${n * 7}.50 and came from shop{n}.example. {TALK}" for n in range(40)
    )
    first = compress(CompressionRequest(text, target=500), counter)
    again = compress(CompressionRequest((first.text or "") + "\n\n" + TALK, target=500), counter, ledger=first.ledger)
    assert first.missing and again.ledger is first.ledger
    assert again.counts["total"] == first.counts["total"]
    assert {v.text for v in first.verification.of(Outcome.KEPT)} - {v.text for v in again.verification.of(Outcome.KEPT)} == set()


def test_a_fact_put_back_keeps_its_denial(counter: TokenCounter) -> None:
    """`not ... $900` is not put back as `$900`."""
    source = "We will not any longer agree to a total price of $900 here."
    fact = next(f for f in build_ledger(source).facts if f.text == "$900")
    assert "not" in snippet(fact, Origin(source)).split()


def test_rows_that_nobody_talks_about_have_more_than_an_id(counter: TokenCounter) -> None:
    """A result by itself, too long for all its rows: fewer rows, none of them a mere identity."""
    items = [
        {"id": f"HUB-{n}", "title": f"USB hub {n}", "seller": ["Acme", "Cable and Co of Bergen"][n % 2], "price": n} for n in range(60)
    ]
    made = compress(CompressionRequest(json.dumps({"total": 60, "results": items}), target=300), counter)
    rows = [line for line in (made.text or "").split("\n") if line.startswith("HUB-")]
    assert rows and all("|" in row for row in rows)


PAGE = """[Skip to content](#main) | [Cart](/cart) | [Sign in](/login)

# Aqualis K2 Kettle

The kettle costs $89.00 and ships within 24 hours. It holds 0.9 litres, and keeps warm for 60 minutes.

- [Filter papers](/p/1)
- [Burr grinder](/p/2)

We use cookies to improve your experience. All rights reserved. Terms, Privacy, Imprint, Careers, Press.
"""


def test_what_stands_on_every_page_comes_last(counter: TokenCounter) -> None:
    """The price stands before links that lead elsewhere and before the small print."""
    made = Prose(PAGE, counter).condensed(34)
    assert "$89.00" in made
    assert "cookies" not in made and "Imprint" not in made and "/cart" not in made


def test_what_repeats_is_said_once(counter: TokenCounter) -> None:
    """A disclaimer that stands on twenty lines is no more than one."""
    small = "\n".join(
        f"Disclaimer line {n}: The lamps of this shop and all their parts were made with care for the rooms of you." for n in range(20)
    )
    made = Prose(f"The parcel 7712 arrived broken on 3 May.\nMaria wants 80 euros back.\n\n{small}", counter).condensed(60)
    assert made.count("Disclaimer") <= 1 and "7712" in made and "80 euros" in made
