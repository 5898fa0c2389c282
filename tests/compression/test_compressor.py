"""The laws of compression: never over the target, within budget unchanged, stable, section 0 verbatim, or a reason."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression.compressor import compress
from pandora_dagster.compression.selection.omission_marks import without_marks
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.documents.meta import subsection_metas
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.units.unit_reader import read_units
from pandora_dagster.errors import InputError
from pandora_dagster.runtime.token_counter import TokenCounter

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
        assert COUNTER.count(result.text) <= target
    if COUNTER.count(text) <= target:
        assert result.text == text
        assert result.verification.counts["missing"] == result.verification.counts["mutated"] == result.verification.counts["invented"] == 0


@given(texts, st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_compressing_again_changes_nothing(text: str, target: int) -> None:
    """The second pass gives the same text and the same verdicts against the facts of the first original."""
    first = compress(CompressionRequest(text, target=target), COUNTER)
    if first.text is not None:
        again = compress(CompressionRequest(first.text, target=target), COUNTER, original_facts=first.original_facts)
        assert again.text == first.text
        assert {f.text for f in again.verification.lost} <= {f.text for f in first.verification.lost}


def test_the_same_call_gives_the_same_text(transcript: str) -> None:
    """Nothing depends on chance or on what ran before."""
    one, other = (compress(CompressionRequest(transcript, target=300), TokenCounter(VOCABULARY)) for _ in range(2))
    assert (one.text, one.verification) == (other.text, other.verification)


def test_section_0_stays_byte_for_byte_and_the_rest_stays_a_document() -> None:
    """Section 0, all headings, errors and `_meta` survive; the document is sound."""
    result = compress(CompressionRequest(CONTEXT, name="context.md", target=500), COUNTER)
    assert result.text
    document, original = ContextDocument.parse(result.text), ContextDocument.parse(CONTEXT)
    assert document.section(0) == original.section(0)
    assert [s.heading for s in document.sections] == [s.heading for s in original.sections]
    assert "Error: timeout after 30 seconds" in result.text
    assert subsection_metas(document.body(2)) == {"Topic": {"source_type": "turn_summary"}}


def test_the_newest_section_stays_whole_where_it_fits() -> None:
    """Section 4 went from 400 to 65 tokens while section 2 kept its 400. Nothing in it is as salient as the prices of section 2."""
    older = "".join(f"- Lenovo LOQ {n} costs ${600 + n}.00 at https://shop.example/{n}. It is described here.\n" for n in range(40))
    words = ("quiet", "garden", "people", "walked", "along", "river", "talked", "little", "music", "house", "there")
    newest = "".join(f"- The {words[n % 11]} {words[n * 3 % 11]} and {words[n * 7 % 11]} were old {words[n // 3]}.\n" for n in range(25))
    text = f"## 0. User Query\n\nHow many desks?\n\n## 2. Gathered Context\n\n{older}\n## 4. Tool Execution\n\n{newest}\n"
    made = compress(CompressionRequest(text, name="context.md", target=COUNTER.count(newest) + 150), COUNTER).text
    assert made and newest.strip() in made and "Lenovo LOQ" in made
    smaller = compress(CompressionRequest(text, name="context.md", target=200), COUNTER).text
    assert smaller and newest.strip() not in smaller and "Lenovo LOQ" in smaller


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
    """Broken, binary, endless or foreign text gives a text within the target, or says that not one unit fits."""
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
    assert result.verification.counts["recoverable"] > 0
    assert result.verification.counts["missing"] == 0


PARAGRAPHS = [
    "The harbour office opens at 08:00 and closes at 17:30.",
    "All boats must show a light after dusk.",
    "The old crane was painted green last year.",
    "Berth 14 costs 32 € a night, berth 15 costs 41 €.",
    "We decided to dredge the east basin in March.",
    "Some members like to sit on the wall and look at the water.",
    "Fuel is not sold on Sundays unless the office was called before noon.",
    "The pump failed on 3 May with error E417.",
]
documents = st.lists(st.sampled_from(PARAGRAPHS), min_size=4, max_size=40, unique_by=None).map("\n\n".join)


@given(documents, st.integers(30, 120))
@settings(max_examples=40, deadline=None)
def test_lines_are_whole_units_or_marks_and_the_marks_count_right(text: str, target: int) -> None:
    """Every line is a unit of the text as it is there; what is kept and what the marks count is the whole text."""
    result = compress(CompressionRequest(text, target=target), COUNTER)
    assert result.text is not None
    plain, omissions = without_marks(result.text)
    lines = [line for line in plain.split("\n") if line.strip()]
    assert all(line.strip() in PARAGRAPHS for line in lines)
    if result.text != text:
        assert len(lines) + sum(o.count for o in omissions) == len(text.split("\n\n"))


@given(documents, st.integers(60, 120), st.integers(25, 59))
@settings(max_examples=30, deadline=None)
def test_marks_of_a_compressed_text_are_summed(text: str, first: int, second: int) -> None:
    """A text compressed twice counts everything that both passes left out, and has no mark of a mark."""
    once = compress(CompressionRequest(text, target=first), COUNTER).text
    assert once is not None
    twice = compress(CompressionRequest(once, target=second), COUNTER).text
    assert twice is not None
    plain, omissions = without_marks(twice)
    kept = sum(not u.is_context for u in read_units(plain))
    assert "left out" not in plain and "…" not in plain
    if twice != text:
        assert kept + sum(o.count for o in omissions) == sum(not u.is_context for u in read_units(text))


def test_a_question_decides_what_is_kept() -> None:
    """Of a text of many subjects the units about the question stay."""
    text = "\n\n".join(PARAGRAPHS * 3)
    made = compress(CompressionRequest(text, query="when can I buy fuel?", target=40), COUNTER)
    assert made.text and "Fuel is not sold on Sundays" in made.text


def test_what_needs_a_heading_or_speaker_comes_with_it() -> None:
    """A sentence is under its heading, and behind the name of who said it."""
    talk = "".join(f"Ann: {a}\nBob: {b}\n" for a, b in zip(PARAGRAPHS, reversed(PARAGRAPHS), strict=True))
    made = compress(CompressionRequest(talk, target=80), COUNTER)
    assert made.text
    assert all(line.startswith(("Ann:", "Bob:", "[", "Also named:")) for line in made.text.split("\n") if line)


def test_where_not_one_unit_fits_there_is_no_text_but_a_target() -> None:
    """The reason has the target, and the target that is named works."""
    text = "The choir sang again in the old church behind the harbour on a very long evening in May.\n" * 4
    made = compress(CompressionRequest(text, target=5), COUNTER)
    assert made.text is None and "not one unit fits in 5 tokens" in (made.halt_reason or "")
    assert compress(CompressionRequest(text, target=made.smallest_target), COUNTER).text


def test_a_repeated_compression_is_made_of_the_original() -> None:
    """What a summary between says wrongly goes; what it lost may come back."""
    text = "\n\n".join(PARAGRAPHS)
    lie = PARAGRAPHS[3].replace("41 €", "61 €")
    made = compress(CompressionRequest(f"{PARAGRAPHS[1]}\n\n{lie}", original=text, target=60), COUNTER)
    assert made.text and "61 €" not in made.text and "41 €" in made.text
    again = compress(CompressionRequest(made.text, original=text, target=60), COUNTER)
    assert again.text == made.text


def test_rows_of_a_tool_stay_its_own_in_a_shortened_talk() -> None:
    """Their header names the tool, so that the message before them in the shortened talk is not theirs."""
    rows = ", ".join(f'{{"flight": "HAT{n:03}", "seats": {n}, "fare": {n + 170}}}' for n in range(20, 60))
    talk = f"user: A flight to Boston.\nassistant: I look for one on 4 May.\ntool search_flights: [{rows}]\nuser: Then HAT031 for Ann Li."
    made = compress(CompressionRequest(talk, target=500), COUNTER)
    assert made.text and "assistant: I look for one on 4 May.\n# search_flights: " in made.text
    assert made.verification.no_fact_changed and len(made.verification.kept) > 60


CLAIMS = (
    "## Prices\n\n- Lenovo LOQ 15 costs $697 (bestbuy.com, confidence 0.62)\n- Lenovo LOQ 15 costs $697 (lenovo.com, confidence 0.95)\n"
    "- Lenovo LOQ 15 costs $697 (blog.example, confidence 0.41)\n- HP Victus 15 costs $749 (hp.com, confidence 0.93)\n"
    "- HP Victus 15 costs $749 (forum.com, confidence 0.31)\n"
)


@pytest.mark.parametrize("target", [30, 45, 60, 75, 90, 105])
@pytest.mark.parametrize("text", [CLAIMS, "\n".join(reversed(CLAIMS.splitlines()))])
def test_of_equal_claims_the_surest_is_kept(text: str, target: int) -> None:
    """Specification 001, section 3: the same fact from several sources keeps its highest confidence. 0.41 and 0.62 stood for 0.95."""
    shortened = compress(CompressionRequest(text, target=target), COUNTER).text or ""
    assert "0.95" in shortened and ("0.93" in shortened or target < 60)
    assert "0.31" not in shortened or "0.93" in shortened
    assert not ("0.62" in shortened or "0.41" in shortened) or "0.93" in shortened, "a less sure claim took the tokens of another statement"
