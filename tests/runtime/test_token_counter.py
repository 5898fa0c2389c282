"""Token counts of cl100k, from the shipped vocabulary."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.documents.sections import new_context
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.runtime.token_counter import TokenCounter

VOCABULARY = Path(__file__).parents[2] / "data" / "tokenizer" / "cl100k_base.tiktoken"


@pytest.fixture(scope="module")
def counter():
    return TokenCounter(VOCABULARY)


KNOWN = {"": 0, "hello world": 2, "<|endoftext|>": 7, "tiktoken is great!": 6, " " * 81: 1}


@pytest.mark.parametrize("text", KNOWN)
def test_counts_are_those_of_cl100k(counter, text):
    """Known texts; a special token in a text counts as the text it is."""
    assert counter.count(text) == KNOWN[text]


@given(st.lists(st.text(), min_size=1, max_size=6))
@settings(max_examples=60)
def test_counting_again_gives_the_same(counter, texts):
    """Remembered counts agree with first ones; nothing counts more tokens than bytes."""
    counts = [counter.count(t) for t in texts]
    assert counts == [counter.count(t) for t in texts]
    assert all(0 <= n <= len(t.encode()) for n, t in zip(counts, texts, strict=True))


@given(st.text(), st.text())
@settings(max_examples=40)
def test_a_document_is_counted_per_section(counter, query, body):
    """Each section by its own text, the total by the whole."""
    document = new_context(query).with_section(5, body)
    found = counter.count_document(document.render())
    assert found.total == counter.count(document.render())
    assert found.by_section == {f"section_{s.number}": counter.count(s.text) for s in document.sections}


def test_more_texts_than_are_remembered_are_counted_right(counter):
    """The memory is bounded; what it forgot is counted again."""
    texts = [f"a text with the number {n} in it" for n in range(4_200)]
    first = [counter.count(t) for t in texts]
    assert first[:10] == [counter.count(t) for t in texts[:10]] and len(counter._cache) <= 4_097


def test_another_vocabulary_is_refused(tmp_path):
    """Missing, or not cl100k: ConfigurationError with the path."""
    with pytest.raises(ConfigurationError, match="cannot read the token vocabulary"):
        TokenCounter(tmp_path / "none")
    (tmp_path / "other").write_bytes(b"IQ== 0\n")
    with pytest.raises(ConfigurationError, match="not the cl100k vocabulary"):
        TokenCounter(tmp_path / "other")


def test_an_unchanged_section_is_not_counted_again(monkeypatch):
    """000 section 21.1: of a document whose last section changed only that one, and the whole, are counted."""
    made, seen = TokenCounter(VOCABULARY), list[str]()
    encoding = made._encoding

    class Spy:
        def encode_ordinary(self, text):
            seen.append(text)
            return encoding.encode_ordinary(text)

    monkeypatch.setattr(made, "_encoding", Spy())
    before = new_context("Which of the chairs was paid for by me?").with_section(2, "A chair was sold to a person of the town. " * 40)
    made.count_document(before.with_section(4, "Nothing was found in the shop so far.").render())
    seen.clear()
    after = before.with_section(4, "The shop says that the chair was sold.").render()
    made.count_document(after)
    assert len(seen) == 2 and after in seen and not any("person of the town" in text for text in seen if text != after)
