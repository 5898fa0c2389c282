"""Lists, code and their heads."""

from itertools import pairwise

from pandora_dagster.compression import compress
from pandora_dagster.compression.blocks import blocks
from pandora_dagster.text.tokens import TokenCounter

CODE = "".join(f'def load_{n}(path):\n    """Reads order {n}."""\n    return open(path).read({n}00)\n\n' for n in range(60))


def test_a_fence_larger_than_the_target_stays_code(counter: TokenCounter) -> None:
    """Its lines stand in a fence, each under the function it belongs to; it never comes back empty."""
    made = compress(f"# Loader\n\n```python\n{CODE}```\n\nIt must not run twice.\n", target_tokens=150, counter=counter)
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
    made = compress(f"```\n{log}Error: disk full on /dev/sda1\n```", target_tokens=100, counter=counter)
    assert made.text and "Error: disk full on /dev/sda1" in made.text
    assert made.text.startswith("```") and made.text.endswith("```")


def test_an_item_comes_with_the_item_above_it(counter: TokenCounter) -> None:
    """A price below a product never stands below another one."""
    text = "Our offers:\n" + "".join(
        f"- Lamp {n}\n  - Price: ${n}.50\n  - It is a fine lamp for many rooms, said many people.\n" for n in range(80)
    )
    made = compress(text, target_tokens=150, counter=counter)
    assert made.text
    name = ""
    for line in made.text.split("\n"):
        name = line if line.startswith("- Lamp") else name
        if "Price" in line:
            assert line.strip() == f"- Price: ${name.removeprefix('- Lamp ')}.50"


def test_a_query_that_nothing_answers_still_gives_a_text(counter: TokenCounter) -> None:
    """Where nothing sound can be chosen for it, all counts."""
    text = "\n".join(f"user: I must not pay more than ${n} for room R{n}." for n in range(1, 12)) + "\nassistant: " + "Well then. " * 300
    assert compress(text, target_tokens=320, query="zebra migration", counter=counter).text


def test_a_later_sentence_of_a_line_knows_the_lines_label() -> None:
    """`**Asked:**` and `Budget.` say what the sentences behind them are about."""
    found = blocks("**Asked:** May I return it? Order LMP-4471.\nBudget. We got $48,000. It is less than last year.")
    assert [b.label for b in found] == ["", "**Asked:**", "", "Budget.", "Budget."]


def test_code_outside_of_a_fence_keeps_its_indentation(counter: TokenCounter) -> None:
    """Lines of code and of a traceback stand as they were."""
    made = compress(CODE * 3, target_tokens=120, counter=counter)
    assert made.text
    lines = CODE.split("\n")
    assert any(line.startswith("    ") for line in made.text.split("\n"))
    assert all(line in lines for line in made.text.split("\n") if line.startswith(" "))


def test_a_meta_block_that_never_closes_stays_yaml() -> None:
    """It ends where the indentation ends, and is closed there."""
    found = blocks("# T\n\n```yaml\n_meta:\n  type: memory\n  count: 2\nIt costs $5.\n")
    assert [b.text for b in found] == ["# T", "```yaml\n_meta:\n  type: memory\n  count: 2\n```", "It costs $5."]
