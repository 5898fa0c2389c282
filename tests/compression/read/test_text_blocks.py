"""Lists, code and their heads."""

from itertools import pairwise

import pytest

from pandora_dagster.compression import compress
from pandora_dagster.compression.condense.prose import Prose
from pandora_dagster.compression.read.text_blocks import blocks
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.documents.token_counter import TokenCounter

CODE = "".join(f'def load_{n}(path):\n    """Reads order {n}."""\n    return open(path).read({n}00)\n\n' for n in range(60))


def test_a_fence_larger_than_the_target_stays_code(counter: TokenCounter) -> None:
    """Its lines stand in a fence, each under the function it belongs to; it never comes back empty."""
    made = compress(CompressionRequest(f"# Loader\n\n```python\n{CODE}```\n\nIt must not run twice.\n", target=150), counter)
    assert made.text
    lines = made.text.split("\n")
    assert lines.count("```python") == lines.count("```") == 1
    inside = lines[lines.index("```python") + 1 : lines.index("```")]
    assert inside and not inside[0].startswith(" ")
    for above, line in pairwise(inside):
        assert not line.startswith(" ") or above.startswith(("def ", " "))


def test_nothing_but_a_large_fence_is_condensed(counter: TokenCounter) -> None:
    """A log in a fence keeps its error."""
    log = "".join(f"2026-01-{n % 28 + 1:02d} request {n} took {n * 7} ms\n" for n in range(300))
    made = compress(CompressionRequest(f"```\n{log}Error: disk full on /dev/sda1\n```", target=100), counter)
    assert made.text and "Error: disk full on /dev/sda1" in made.text
    assert made.text.startswith("```") and made.text.endswith("```")


def test_an_item_comes_with_the_item_above_it(counter: TokenCounter) -> None:
    """A price below a product never stands below another one."""
    text = "Our offers:\n" + "".join(
        f"- Lamp {n}\n  - Price: ${n}.50\n  - It is a fine lamp for many rooms, said many people.\n" for n in range(80)
    )
    made = compress(CompressionRequest(text, target=150), counter)
    assert made.text
    name = ""
    for line in made.text.split("\n"):
        name = line if line.startswith("- Lamp") else name
        if "Price" in line:
            assert line.strip() == f"- Price: ${name.removeprefix('- Lamp ')}.50"


def test_a_query_that_nothing_answers_still_gives_a_text(counter: TokenCounter) -> None:
    """Where nothing sound can be chosen for it, all counts."""
    text = "\n".join(f"user: I must not pay more than ${n} for room R{n}." for n in range(1, 12)) + "\nassistant: " + "Well then. " * 300
    assert compress(CompressionRequest(text, query="zebra migration", target=320), counter).text


def test_a_later_sentence_of_a_line_knows_the_lines_label() -> None:
    """`**Asked:**` and `Budget.` say what the sentences behind them are about."""
    found = blocks("**Asked:** May I return it? Order LMP-4471.\nBudget. We got $48,000. It is less than last year.")
    assert [b.label for b in found] == ["", "**Asked:**", "", "Budget.", "Budget."]


def test_code_outside_of_a_fence_keeps_its_indentation(counter: TokenCounter) -> None:
    """Lines of code and of a traceback stand as they were."""
    made = compress(CompressionRequest(code := "\n".join(CODE.split("\n")[:32]), target=120), counter)
    assert made.text
    lines = code.split("\n")
    assert any(line.startswith("    ") for line in made.text.split("\n"))
    assert all(line in lines for line in made.text.split("\n") if line.startswith(" "))


def test_a_meta_block_that_never_closes_stays_yaml() -> None:
    """It ends where the indentation ends, and is closed there."""
    found = blocks("# T\n\n```yaml\n_meta:\n  type: memory\n  count: 2\nIt costs $5.\n")
    assert [b.text for b in found] == ["# T", "```yaml\n_meta:\n  type: memory\n  count: 2\n```", "It costs $5."]


SOURCE = '''"""Invoices."""

VAT = 19


class Invoice:
    """An invoice with its lines."""

    def __init__(self, number, lines):
        if not lines:
            raise ValueError("an invoice must have at least one line")
        self.number = number
        self.lines = lines

    def gross(self):
        """Sum with tax, rounded to cents."""
        value = self.net() * (100 + VAT) / 100
        return round(value, 2)

    def remind(self, sender):
        if self.reminders >= 3:
            return False
        sender.send(self.number, self.gross())
        return True


def overdue(invoices, today, grace=3):
    """Invoices whose due date passed more than `grace` days ago."""
    late = [one for one in invoices if (today - one.date).days > grace]
    return late
'''


@pytest.mark.parametrize("target", [120, 90, 60])
def test_a_line_of_code_comes_with_what_it_belongs_to(counter: TokenCounter, target: int) -> None:
    """No body stands without its function, and no method without its class; signatures come first."""
    made = compress(CompressionRequest(SOURCE, target=target), counter).text or ""
    assert "class Invoice:" in made and "def __init__(self, number, lines):" in made
    lines, above = list[str](SOURCE.split("\n")), dict[int, str]()
    for line in made.split("\n"):
        indent = len(line) - len(line.lstrip())
        holder = next((o for o in reversed(lines[: lines.index(line)]) if o.strip() and len(o) - len(o.lstrip()) < indent), "")
        assert not indent or holder in above.values(), line
        above[indent] = line


FACTS = """# Fact check

- **Claim:** The tram line cost 410 million euros.
  **Verdict:** Refuted. The final bill was 523 million euros, said the audit office.

Claim: No trees were cut for the line.
Refuted: 118 trees were cut in Linden Street alone. The council has since planted 60.

The bridge is safe for 40 tonnes, said the report of 2019. However, the inspection of 2024 found 12 tonnes.
The harbour has a crane of 1911, which was painted in 1951, in 1962 and in 1983, each time by another crew of the town.
The mayor opened the bridge together with 300 guests from 14 towns, and a band played for 2 hours in the rain.
"""


@pytest.mark.parametrize("target", [25, 40, 55, 70, 85, 100])
def test_a_claim_never_stands_without_its_verdict(counter: TokenCounter, target: int) -> None:
    """Nor a label with a sentence that is not its own."""
    made = Prose(FACTS, counter).condensed(target)
    assert ("410 million" in made) == ("Refuted. The final" in made or "**Verdict:** Refuted." in made)
    assert ("No trees" in made) == ("Refuted: 118 trees" in made)
    assert ("40 tonnes" in made) == ("12 tonnes" in made)
    assert "Refuted: The council" not in made


@pytest.mark.parametrize("target", [12, 20, 30, 45])
def test_a_pronoun_stands_with_what_it_means(counter: TokenCounter, target: int) -> None:
    """A sentence that takes up the one before it does not stand without that."""
    text = "Karl Amundsen built the harbour in 1911. He was no engineer. His brother drew the plans. It rained.\n\nLiv Berg paid 80 kroner."
    made = Prose(f"{text}\n\n{'Nobody knows the weather of that summer, or of the next one. ' * 9}", counter).condensed(target)
    assert "Karl" in made or ("He was" not in made and "His brother" not in made)
    assert "He was no engineer." in made or "His brother" not in made


def test_a_line_broken_in_a_sentence_does_not_stand_in_half(counter: TokenCounter) -> None:
    """Where a text is wrapped, both lines of a sentence stand, or none."""
    text = "The tenant pays the rent of 900 euros on the third day of\nevery month to the account of the landlord.\n\n"
    for target in (14, 25, 40):
        made = Prose(text + "The garden lies behind the house, and the cellar below it. " * 9, counter).condensed(target)
        assert ("900 euros" in made) == ("every month" in made)


MAIL = """From: Jonas Weber <jonas@weber.example>
Subject: Re: Offer 118

On Tue, 3 Mar 2026, Carla Stein <carla@stein.example> wrote:
> Is the scaffold included in the 18,400 euros?

Yes, for four weeks. Each further week costs 210 euros.

> Can you start before Easter?

No, we can't. The earliest date is 13 April.

> On Mon, 2 Mar 2026, Jonas Weber <jonas@weber.example> wrote:
>> We need a down payment of 30 %.
>
> I don't agree with the down payment. My bank says that 10 % is usual.

We can meet at 20 %, not less.
"""


@pytest.mark.parametrize("target", [30, 50, 70, 90, 110])
def test_a_mail_keeps_whose_words_each_line_is(counter: TokenCounter, target: int) -> None:
    """Quoted sentences keep their marks below the line that says who wrote them, and an answer what it answers."""
    made = Prose(MAIL, counter).condensed(target).split("\n")
    writer = {0: "", 1: "", 2: ""}
    for line in made:
        level = line[:3].count(">")
        if line.endswith("wrote:"):
            writer[level + 1] = line
            continue
        for said, deep in (("scaffold", 1), ("Easter", 1), ("My bank", 1), ("We need a down", 2), ("I don't agree", 1)):
            assert said not in line or level == deep
        assert level != 1 or "Carla" in writer[1]
        assert level != 2 or "Jonas" in writer[2]
    for said, answered in (("Yes, for four", "scaffold"), ("No, we can't", "Easter")):
        assert said not in "\n".join(made) or answered in "\n".join(made)
    for above, line in pairwise(made):
        assert not above.endswith("wrote:") or line.startswith(">")


@pytest.mark.parametrize("target", [16, 30])
def test_sentences_in_small_letters_stand_one_by_one(target: int, counter: TokenCounter) -> None:
    """A line that begins with a small letter has its ends before small letters."""
    text = "box 1: nine pears from Turku, ripe. box 2: forty plums from Lund, dry. box 3: ten figs from Graz, sweet. box 4: salt from Bonn."
    made = compress(CompressionRequest(text, target=target), counter)
    assert made.text and all(part in text for part in made.text.split(". "))
