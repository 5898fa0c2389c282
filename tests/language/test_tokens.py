"""The tokenizer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.language.tokens import TokenKind, all_words, tokens

W, N, V, C = TokenKind.WORD, TokenKind.NAME, TokenKind.VALUE, TokenKind.CODE


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Positive for hepatitis A, not B.", "en", [(W, "posit"), (W, "hepat"), (N, "A"), (N, "B")]),
        ("The desk costs 300 €.", "en", [(W, "desk"), (W, "cost"), (V, "300 €")]),
        ("Mia met Jonas", "en", [(W, "mia"), (W, "met"), (N, "jona")]),
        ("then I met Jonas I", "en", [(W, "met"), (N, "jona")]),
        ("type I", "de", [(W, "typ"), (N, "I")]),
        ("flight HAT001 of mia_li_3668", "en", [(W, "flight"), (C, "hat001"), (C, "mia_li_3668")]),
        ("see src/app.py:12, #441, v2.31.0, io.BytesIO", "en", [(C, "src/app.py:12"), (C, "#441"), (C, "v2.31.0"), (C, "io.bytesio")]),
        ("mail ann@x.org or https://x.org/a?b=1", "en", [(W, "mail"), (C, "ann@x.org"), (C, "https://x.org/a?b=1")]),
        ("on 2024-05-26 14th", "en", [(V, "2024-05-26"), (V, "14.")]),
        ("the fee is forty two pounds", "en", [(W, "fee"), (V, "forty two"), (W, "pound")]),
        ("two three-hour walks, twenty-five each", "en", [(V, "two"), (W, "three-hour"), (W, "walk"), (V, "twenty five")]),
        ("attempts 5", "en", [(W, "attempt"), (V, "5 (attempt)")]),
        ("予算は5万円", "ja", [(W, "予算"), (W, "算は"), (W, "は"), (V, "5 万"), (W, "円")]),
    ],
)
def test_tokens_have_kind_and_key(text: str, language: str, expected: list[tuple[TokenKind, str]]) -> None:
    """Equal things have equal keys."""
    assert [(token.kind, token.key) for token in tokens(text, language)] == expected


@given(st.text(max_size=80))
def test_a_token_stands_at_its_place(text: str) -> None:
    """In order, without overlap but for pairs of signs."""
    found = tokens(text, "en")
    assert all(text[token.start : token.end] == token.text for token in found)
    assert [token.start for token in found] == sorted(token.start for token in found)


def test_all_words_are_lower_cased() -> None:
    """Stop words and numbers too."""
    assert all_words("The 3 Chairs aren't") == ["the", "3", "chairs", "aren't"]
