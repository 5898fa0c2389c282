"""Detection of languages."""

import pytest

from pandora_dagster.language.detection import language_of, question_language, short_text_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The boiler was repaired in May and it costs more than before.", "en"),
        ("Der Kessel wurde im Mai repariert und kostet mehr als vorher.", "de"),
        ("La chaudière a été réparée en mai et elle coûte plus qu'avant.", "fr"),
        ("La caldera fue reparada en mayo y cuesta más que antes.", "es"),
        ("La caldaia è stata riparata a maggio e costa più di prima.", "it"),
        ("De ketel is in mei gerepareerd en het kost meer dan voorheen.", "nl"),
        ("Kocioł został naprawiony w maju i kosztuje więcej niż przedtem.", "pl"),
        ("ボイラーは五月に修理されました。", "ja"),
        ("锅炉已于五月修好。", "zh"),
        ("Котёл был отремонтирован в мае, и он стоит больше.", "ru"),
        ("보일러는 5월에 수리되었습니다.", "ko"),
        ("4417 HAT001 xyzzy", ""),
        ("", ""),
    ],
)
def test_the_language_of_a_text(text: str, language: str) -> None:
    """Where nothing is known, no language is named."""
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Ella's swimming has moved to Tuesday.", "en"),
        ("Was kostet die Sanierung des Dachs?", "de"),
        ("¿Cuánto cuesta la noche?", "es"),
        ("外壁の塗り替え", "ja"),
        ("Wie heißt die Lampe?", "de"),
        ("Gilt der Vertrag noch?", "de"),
        ("Guten Tag", "de"),
        ("Qui paie ?", "fr"),
        ("Bonjour", "fr"),
        ("¿Cuánto costó?", "es"),
        ("Muchas gracias", "es"),
        ("Wie betaalt dat?", "nl"),
        ("Quanto è costata?", "it"),
        ("Jakie biurko zamówiliśmy?", "pl"),
        ("Anna Berg", "en"),
        ("Hello there", "en"),
        ("LOQ 15", "en"),
        ("", "en"),
    ],
)
def test_english_where_nothing_else_is_surer(text: str, language: str) -> None:
    """Few words have few stop words, and `has` is one of Spanish too; names and numbers are of no language."""
    assert question_language(text) == language


@pytest.mark.parametrize(
    ("text", "language"), [("Ella's swimming has moved to Tuesday.", "en"), ("Was kostet das Dach?", "de"), ("LOQ 15", "en")]
)
def test_a_passage_is_english_where_its_stop_words_say_nothing_else(text: str, language: str) -> None:
    """Names and records have letters of any language: only stop words count."""
    assert short_text_language(text) == language
