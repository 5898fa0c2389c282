"""The shipped table and the features fit together; scores are relative to a text and do not depend on its subject."""

from pandora_dagster.compression.salience.salience import reading_salience, shipped_table
from pandora_dagster.compression.salience.text_reading import read_text
from pandora_dagster.compression.salience.unit_features import LENGTH_FEATURES, unit_features

TEXT = (
    "# Harbour rules\n\nWelcome to our nice little harbour.\n\nYou must not enter after 22:00.\n\n"
    "We decided to close berth 4 until 3 May.\n\n"
    "Some boats are blue.\n\nThanks for reading!\n"
)


def test_the_table_has_a_weight_for_each_feature() -> None:
    """Length is counted by the coverage and has none."""
    names = set(unit_features(read_text(TEXT))[0])
    table = shipped_table()
    assert set(table.needed.weights) == set(table.needed_most.weights) == names - LENGTH_FEATURES


def test_scores_are_one_on_average() -> None:
    """Headings aside; one score for each unit."""
    reading = read_text(TEXT)
    scores = reading_salience(reading)
    own = [s for s, u in zip(scores, reading.units, strict=True) if not u.is_context]
    assert len(scores) == len(reading.units) and abs(sum(own) / len(own) - 1) < 1e-9


def test_rules_and_decisions_are_needed_more_than_courtesy() -> None:
    """In any text."""
    reading = read_text(TEXT)
    scores = {u.text: s for u, s in zip(reading.units, reading_salience(reading), strict=True)}
    assert (
        min(scores["You must not enter after 22:00."], scores["We decided to close berth 4 until 3 May."]) > scores["Thanks for reading!"]
    )


def test_a_text_without_units_has_no_scores() -> None:
    """Nor does it raise."""
    assert reading_salience(read_text("")) == []
