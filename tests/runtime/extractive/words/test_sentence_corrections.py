"""Which sentence takes another back."""

import pytest

from pandora_dagster.runtime.extractive.words.sentence_corrections import corrects


@pytest.mark.parametrize(
    ("new", "old", "is_so"),
    [
        ("It is 295 euros instead of 260 for the vessel.", "The vessel costs 260 euros.", True),
        ("Swimming moved from Wednesday to Tuesday.", "Swimming is on Wednesday.", True),
        ("The courier now comes at 16:00.", "The courier comes at 14:30.", True),
        ("Der Kurier kommt jetzt um 16:00.", "Der Kurier kommt um 14:30.", True),
        ("The courier comes at 16:00.", "The courier comes at 14:30.", False),
        ("The plumber now comes at 16:00.", "The courier comes at 14:30.", False),
        ("The courier now comes.", "The courier comes at 14:30.", False),
        ("The courier now comes at 14:30.", "The courier comes at 14:30.", False),
        ("We moved from Oslo to Bergen.", "We met Anna in Oslo.", False),
        ("The rent for the flat is now 800 euros.", "The deposit for the flat is 500 euros.", False),
        ("The second team meeting is now on Friday.", "The first team meeting is on Monday.", False),
        ("Anna now has 2 cats.", "Anna has 3 dogs.", False),
        ("Tom moved to Rome in 2021.", "Tom lived in Rome in 2019.", False),
        ("The workshop is not on Monday but on Friday.", "The workshop is on Monday.", True),
        ("Korrektur: die Miete mindere ich um 20, nicht 15 Prozent.", "Die Miete mindere ich um 15 Prozent.", True),
    ],
)
def test_a_change_is_told_and_of_the_same_matter(new: str, old: str, is_so: bool) -> None:
    """A word of change, the same matter, and another value or the old one named as replaced."""
    assert corrects(new, old) is is_so
