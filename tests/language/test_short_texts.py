"""The language of a few words."""

import pytest

from pandora_dagster.language.short_texts import short_text_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Ella's swimming has moved to Tuesday.", "en"),
        ("Was kostet die Sanierung des Dachs?", "de"),
        ("¿Cuánto cuesta la noche?", "es"),
        ("外壁の塗り替え", "ja"),
        ("LOQ 15", "en"),
        ("", "en"),
    ],
)
def test_english_where_nothing_else_is_surer(text: str, language: str) -> None:
    """`has` is a word of Spanish too; names and numbers are of no language."""
    assert short_text_language(text) == language
