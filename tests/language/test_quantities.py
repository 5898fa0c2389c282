"""Numbers with their units."""

import pytest

from pandora_dagster.language.quantities import quantities


@pytest.mark.parametrize(
    ("text", "language", "keys"),
    [
        ("The seat costs 9 €.", "en", ["9 €"]),
        ("Ines is 9 years old.", "en", ["9 year"]),
        ("$697.00 and £1,234.50 and 400 £", "en", ["697.00 $", "1234.50 £", "400 £"]),
        ("1.234,50 € für 3 Räume", "de", ["1234.50 €", "3 raum"]),
        ("EUR 300, 300 euros, 5 dollars, 20 CHF", "en", ["300 €", "300 €", "5 $", "20 chf"]),
        ("-3 °C, 40 °F, +5 V", "en", ["-3 °c", "40 °f", "+5 v"]),
        ("blood pressure 140/90, 20 mg, 5 %, five percent of 12 percent", "en", ["140/90", "20 mg", "5 %", "12 %"]),
        ("1 ½ cups, ½ cup, 2-3 km, 120 x 60 cm", "en", ["1 ½ cup", "½ cup", "2-3 km", "120 x 60 cm"]),
        ("at 6:30 pm, 7 a.m.", "en", ["6:30 pm", "7 am"]),
        ("1 234 567 habitants, 5,5 kg", "fr", ["1234567 habit", "5.5 kg"]),
        ("the 3rd and 14th of May", "en", ["3.", "14."]),
        ("$1,299.00 in total, 140/90 in the morning, 27in", "en", ["1299.00 $", "140/90", "27 in"]),
        ("会議は3時、予算は50万円", "ja", ["3 時", "50 万"]),
        ("4WQ150 and 12h30 are no plain numbers", "en", []),
        ("≥ 7, ~30, 40 Mbit/s, 14,500 users", "en", ["≥7", "~30", "40 mbit/s", "14500 user"]),
        ("Was £92.00 £74.99, or 92 £74.99, 400 £ and 5 $", "en", ["92.00 £", "74.99 £", "92", "74.99 £", "400 £", "5 $"]),
        ("Was £92.00£74.99Now£70, 3€4€, (€5)€6, $5-$10", "en", ["92.00 £", "74.99 £", "70 £", "3 €", "4 €", "5 €", "6 €", "5 $", "10 $"]),
        ("US$5, A$ 12.50, -HK$1,200, R$ 9, 7 SGD, US5, a $3", "en", ["5 $", "12.50 aud", "-1200 hkd", "9 brl", "7 sgd", "3 $"]),
        ("10:15, 10.5, 1,000", "en", ["10:15", "10.5", "1000"]),
    ],
)
def test_a_number_is_read_with_what_belongs_to_it(text: str, language: str, keys: list[str]) -> None:
    """`9 €` is never `9`."""
    assert [q.key for q in quantities(text, language)] == keys


def test_a_quantity_knows_its_place() -> None:
    """Sign and unit are in it."""
    text = "about -3 °C tonight"
    (found,) = quantities(text, "en")
    assert text[found.start : found.end] == "-3 °C"
