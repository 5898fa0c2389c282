"""Terms: words stemmed, numbers and identifiers whole."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.language.terms import MONEY, TermReader, is_common, prefix_of


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Reservations were booked", ["reserv", "book"]),
        ("which did we, and what?", []),
        ("It cost $1,234.50 in all", ["cost", "1234.5"]),
        ("$697.00 or 697", ["697", "697"]),
        ("flight HAT113 of mia_li_3668", ["flight", "hat113", "mia_li_3668", "mia", "li"]),
        ("5RJ7UH", ["5rj7uh"]),
        ("on 2024-05-26", ["2024-05-26", "2024", "may", "26"]),
        ("2024-01-05", ["2024-01-05", "2024", "januari", "5"]),
        ("2024-00-05", ["2024-00-05", "2024", "5"]),
        ("on 2024-13-26", ["2024-13-26", "2024", "26"]),
        ("a well-known e-mail", ["know", "mail"]),
        ("don't, what's, I'll, won't", []),
        ("Größe Ärger", ["gross", "arger"]),
        ("東京旅行", ["東京", "京旅", "旅行"]),
        ("🙂🙃", []),
        ("", []),
        ('{"price":117,"cabin":"basic_economy"}', ["price", "117", "cabin", "basic_economy", "basic", "economi"]),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    """A text gives its words stemmed, without stop words, its numbers and identifiers whole."""
    assert TermReader().terms(text) == terms


@pytest.mark.parametrize(("text", "named"), [("it was $340", True), ("€ 5", True), ("20 dollars", True), ("room 340", False)])
def test_money_is_a_term(text: str, named: bool) -> None:
    """A text that names an amount of money carries the term that price questions ask for."""
    assert (MONEY in TermReader().counts(text)) is named


def test_a_term_longer_than_an_identifier_is_left_out() -> None:
    """A pasted blob does not become a term."""
    assert TermReader().terms("x1" * 100 + " flight") == ["flight"]


@given(st.text(max_size=300))
@settings(max_examples=150)
def test_remembering_changes_nothing(text: str) -> None:
    """A reader that has read the text before gives the same terms, and no term holds a space."""
    reader = TermReader()
    first = reader.terms(text)
    assert reader.terms(text) == first
    assert not any(" " in term or not term for term in first)


@pytest.mark.parametrize(("one", "other"), [("bought", "buying"), ("children", "child"), ("Women", "woman"), ("won", "wins")])
def test_irregular_forms_meet_their_word(one: str, other: str) -> None:
    """What a stemmer can not know is looked up."""
    assert TermReader().terms(one) == TermReader().terms(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Krüger", "krueger"),
        ("kruger", "Krüger"),
        ("krueger", "kruger"),
        ("Schluesseluebergabe", "Schlüsselübergabe"),
        ("cafe\u0301", "cafe"),
    ],
)
def test_accents_and_typed_umlauts_do_not_part_a_word(one: str, other: str) -> None:
    """Every spelling shares a term with every other."""
    assert set(TermReader().terms(one)) & set(TermReader().terms(other))


@pytest.mark.parametrize(("word", "terms"), [("queue", ["queue"]), ("blue", ["blue"]), ("shoes", ["shoe"]), ("東京", ["東京"])])
def test_other_words_keep_their_one_term(word: str, terms: list[str]) -> None:
    """Two letters that are no umlaut, and letters of other scripts, stay."""
    assert TermReader().terms(word) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Was ist in den Kartons im Keller?", ["karton", "keller", "kell"]),
        ("Où est la couleur de la voiture ?", ["couleur", "voitur"]),
        ("Which hat did die Firma buy?", ["hat", "die", "firma", "buy"]),
        ("the last die", ["last", "die"]),
    ],
)
def test_short_function_words_of_a_texts_language_are_no_terms(text: str, terms: list[str]) -> None:
    """Longer ones count less in a question."""
    assert TermReader().terms(text) == terms


def test_forms_of_a_german_word_meet_in_german_texts() -> None:
    """By the stem of their language, where the English one does not join them."""
    reader = TermReader()
    assert set(reader.terms("Wir haben die Häuser verkauft")) & set(reader.terms("Was ist mit dem Haus?"))
    assert reader.read("Die Häuser und der Bär").length == 2


@pytest.mark.parametrize(
    ("term", "language", "common"),
    [("make", "en", True), ("comput", "", True), ("desk", "en", False), ("welch", "de", True), ("welch", "en", False), ("xq", "zz", False)],
)
def test_words_of_a_stop_list_are_common(term: str, language: str, common: bool) -> None:
    """Of English and of the question's language."""
    assert is_common(term, language) is common


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("โรคเบาหวาน", "น้องสาวเป็นโรคเบาหวานตั้งแต่เด็ก"),
        ("เบาหวาน", "น้องสาวเป็นโรคเบาหวาน"),
        ("李小龙", "李小龙最近住院了"),
        ("मधुमेह", "मेरी बहन को मधुमेह है।"),
    ],
)
def test_a_word_has_its_terms_within_a_text_of_its_script(word: str, text: str) -> None:
    """Vowels that are marks ended a word, so that a word of Thai was found only where a text was cut in the same place."""
    assert set(TermReader().terms(word)) <= set(TermReader().terms(text))
    assert min(map(len, TermReader().terms(word))) > 1


@pytest.mark.parametrize(("term", "prefix"), [("comput", "~compu"), ("paint", ""), ("hat113", ""), ("1234567", ""), ("", "")])
def test_longer_words_have_a_beginning(term: str, prefix: str) -> None:
    """Only words of more than five letters do; numbers and identifiers are whole or nothing."""
    assert prefix_of(term) == prefix


def test_threads_may_share_a_reader() -> None:
    """Each gets the terms that it would get alone."""
    texts = [
        " ".join(f"{start}{end}" for start in ("nation", "relat", "comput", "organ") for end in (f"{'a' * n}ational", "izations"))
        for n in range(60)
    ]
    alone = [TermReader().terms(text) for text in texts]
    patience = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(TermReader().terms, texts)) == alone
    finally:
        sys.setswitchinterval(patience)
