"""The laws of compression: never over the target, within budget unchanged, stable, section 0 verbatim, or a reason."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression import compress, compressor
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.documents.meta import subsection_metas
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.token_counter import TokenCounter
from pandora_dagster.errors import InputError

from .conftest import VOCABULARY

COUNTER = TokenCounter(VOCABULARY)
CONTEXT = (
    "## 0. User Query\n\n  Find a laptop under $800, it must have 16 GB.\n\n"
    "## 1. Reflection Decision\n\nproceed, confidence 0.9\n\n"
    "## 2. Gathered Context\n\n### Topic\n\n```yaml\n_meta:\n  source_type: turn_summary\n```\n\n"
    + "".join(f"- Lenovo LOQ {n} costs ${600 + n}.00 at https://shop.example/{n} [{n % 9}]. It is described here.\n" for n in range(80))
    + "\n## 4. Tool Execution\n\nError: timeout after 30 seconds\n\n"
)
_WORDS = ["user: ", "assistant: ", "tool x: ", "Ada: ", "\n", "## 0. User Query\n", "# a|b", "|", "```", "$12.50", "must not",
          "[3]", "May 5", '{"id": "A1", "v": 2}', "[{", '"', "word ", "sentence ends. ", "Error: no\n",
          "😀", "漢字", "مرحبا", "\\", "not ", "- item\n"]  # fmt: skip
texts = st.lists(st.sampled_from(_WORDS), max_size=120).map("".join) | st.text(max_size=200)


@given(texts, st.integers(1, 80), st.sampled_from([*ContentType, None]), st.sampled_from([None, "what about May 5?"]))
@settings(max_examples=80, deadline=None)
def test_never_over_the_target(text: str, target: int, content_type: ContentType | None, query: str | None) -> None:
    """Any text gives a text within the target or a reason; and a text within it comes back as it is."""
    result = compress(CompressionRequest(text, content_type=content_type, query=query or "", target=target), COUNTER)
    assert (result.text is None) == (result.halted is not None)
    if result.text is not None:
        assert COUNTER.count(result.text) <= target and result.verification.facts_preserved
    if COUNTER.count(text) <= target:
        assert result.text == text
        assert result.counts["missing"] == result.counts["mutated"] == result.counts["invented"] == 0


@given(texts, st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_compressing_again_changes_nothing(text: str, target: int) -> None:
    """The second pass gives the same text and the same verdicts against the first ledger."""
    first = compress(CompressionRequest(text, target=target), COUNTER)
    if first.text is not None:
        again = compress(CompressionRequest(first.text, target=target), COUNTER, ledger=first.ledger)
        assert again.text == first.text
        assert set(again.missing) <= set(first.missing)


def test_the_same_call_gives_the_same_text(transcript: str) -> None:
    """Nothing depends on chance or on what ran before."""
    one, other = (compress(CompressionRequest(transcript, target=300), TokenCounter(VOCABULARY)) for _ in range(2))
    assert (one.text, one.verdicts) == (other.text, other.verdicts)


def test_section_0_stays_byte_for_byte_and_the_rest_stays_a_document() -> None:
    """Section 0, all headings, errors and `_meta` survive; the document is sound."""
    result = compress(CompressionRequest(CONTEXT, name="context.md", target=500), COUNTER)
    assert result.text
    document, original = ContextDocument.parse(result.text), ContextDocument.parse(CONTEXT)
    assert document.section(0) == original.section(0)
    assert [s.heading for s in document.sections] == [s.heading for s in original.sections]
    assert "Error: timeout after 30 seconds" in result.text
    assert subsection_metas(document.body(2)) == {"Topic": {"source_type": "turn_summary"}}


def test_critical_facts_stay_and_are_judged(transcript: str) -> None:
    """At a tenth of the text nothing critical is lost."""
    result = compress(CompressionRequest(transcript, target=260), COUNTER)
    assert result.text
    assert not result.verification.lost_critical
    assert result.counts["total"] == sum(v.fact is not None for v in result.verdicts)


def test_a_target_under_the_critical_facts_halts_with_the_figures() -> None:
    """Where what must stay can not stay, there is no text, and the reason has both figures."""
    text = "user: " + " ".join(f"Booking ZX{n}Q must not cost more than ${n}." for n in range(100, 200))
    result = compress(CompressionRequest(text, target=60), COUNTER)
    assert result.text is None
    assert "the target is 60" in (result.halted or "")


@pytest.mark.parametrize("target", [0, -5])
def test_a_target_under_one_is_refused(target: int) -> None:
    """A target that nothing can meet is the caller's error, named."""
    with pytest.raises(InputError, match="target_tokens"):
        compress(CompressionRequest("text", target=target), COUNTER)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_000,
        "7" * 50_000,
        "a-" * 50_000,
        'tool x: {"a": [1, {"b": "c' * 500,
        "\x00\x01\xff" * 4_000,
        "\ud800 abc " * 400,
        "lorem ipsum dolor sit amet 12. " * 8_000,
        "## 0. User Query\n\nhi\n\n## 0. User Query\n\nhi\n\n```yaml\n_meta:\n" + "a: 1\n" * 800,
        "| a | b |\n|---|\n" + "| 1 | 2\n" * 800,
        "````\n```python\nx = 1\n```\n" * 300,
        "السعر 500 دولار في القاهرة. " * 300,
        "这是一个很长的文本，价格是500元。" * 300,
        "🎉 party on May 5! " * 300,
    ],
)
def test_bad_input_gives_a_text_or_a_reason(text: str) -> None:
    """Broken, binary, endless or foreign text never raises and never exceeds the target."""
    result = compress(CompressionRequest(text, target=60), COUNTER)
    assert result.text is None or COUNTER.count(result.text) <= 60
    assert (result.text is None) == bool(result.halted)


def test_a_table_stays_a_table() -> None:
    """Rows that are kept stand under their head."""
    text = "Prices of lamps follow here.\n\n| lamp | price |\n|---|---|\n" + "".join(f"| Lamp {n} | ${n}.00 |\n" for n in range(200))
    result = compress(CompressionRequest(text, target=120), COUNTER)
    assert result.text
    rows = [line for line in result.text.split("\n") if line.startswith("| Lamp")]
    head = result.text.index("| lamp | price |\n|---|---|\n")
    assert rows
    assert all(result.text.index(row) > head for row in rows)


@pytest.mark.parametrize(
    ("kind", "before", "name"),
    [
        (ContentType.TOOL_RESULT, "", "turns/turn_000001/toolresults.md"),
        (ContentType.PRIOR_TURN, "tool stock: ", "turns/turn_000001/context.md"),
    ],
)
def test_what_is_stored_may_rest_on_its_original(kind: ContentType, before: str, name: str) -> None:
    """With a path, details of a result or an earlier turn that went are recoverable through the reference beside them."""
    text = before + "[" + ", ".join(f'{{"sku": "S{n}X", "price": {n}.5, "note": "on the shelf"}}' for n in range(200)) + "]"
    result = compress(CompressionRequest(text, name=name, content_type=kind, target=200), COUNTER)
    assert result.text
    assert result.text.endswith(f"whole text: {name}")
    assert result.counts["recoverable"] > 0
    assert result.counts["missing"] == 0


@pytest.mark.parametrize(
    "lie",
    ("Mira Holt pays $9,417.00 for it.", "The laptop must have 32 GB.", "It is not described here.", "See https://other.example/x."),
)
def test_what_a_method_makes_up_does_not_stay(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence that the text does not bear out is left out of every candidate, and the critical facts stay."""
    honest = compressor.method

    def lying(*given: Any, **named: Any) -> Callable[[int], str]:
        condensed = honest(*given, **named)
        return lambda room: f"{condensed(room - 30)}\n{lie}"

    monkeypatch.setattr(compressor, "method", lying)
    talk = "user: The laptop must have 16 GB.\n" + "".join(
        f"assistant: The Lenovo LOQ {n} costs ${600 + n}.00. It is described here and there at length, as everybody knows.\n"
        for n in range(60)
    )
    made = compress(CompressionRequest(talk, target=300), COUNTER)
    assert made.text and lie not in made.text and made.verification.facts_preserved and "must have 16 GB" in made.text


def test_where_nothing_can_be_made_true_it_halts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that says nothing but untruths gives no text; the reason says what was not borne out."""
    monkeypatch.setattr(compressor, "method", lambda *_, **__: lambda room: "The order 9417 of Mira Holt was cancelled.")
    monkeypatch.setattr(compressor, "borne_out", lambda text, *_, **__: text)
    made = compress(CompressionRequest("assistant: The Lenovo LOQ costs $600.00, and so it goes on and on. " * 30, target=60), COUNTER)
    assert made.text is None and "does not bear out" in (made.halted or "")


def test_where_nothing_fits_around_the_query_the_whole_counts() -> None:
    """Each line of a long text is longer than the target: no whole line can be kept for the question, sentences of all of them can."""
    places = ("fence", "gate", "bench", "wall", "door", "roof", "table", "path", "bridge", "lamp")
    homes = ("house", "barn", "school", "mill", "inn", "farm", "church", "tower", "shop", "hall") * 3
    lines = [" ".join(f"The {p} of the {w} was painted again by a friend of the family." for p in places) for w in homes]
    text, query = "\n".join(lines), "what happened to the fence of the barn?"
    assert min(map(COUNTER.count, lines)) > 60
    asked, whole = (compress(CompressionRequest(text, query=q or "", target=60), COUNTER) for q in (query, None))
    assert asked.halted is None and asked.text and asked.text == whole.text


def test_a_text_that_keeps_none_of_its_facts_is_none() -> None:
    """It says so, and names a target that works."""
    text = (
        "The choir sang again.\n\nAna paid 3 euros to Bo on 4 May 2026. Kim bought 7 lamps for 90 euros in Oslo. "
        "Lee owes 20 euros since 3 March 2025. Mia sold 5 boats for 800 euros.\n"
    )
    made = compress(CompressionRequest(text, target=9), COUNTER)
    assert made.text is None and "none of the" in (made.halted or "")
    again = compress(CompressionRequest(text, target=made.smallest_target), COUNTER)
    assert made.smallest_target > 9 and again.text and again.counts["kept"]
