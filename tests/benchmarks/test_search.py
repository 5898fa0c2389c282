"""What the search benchmark calls a failure."""

import pytest

from benchmarks.search import ABOVE_WORDS, TARGETS, WITH_VECTORS, Score, vector_verdicts, verdicts


def score(percent, **conversations):
    """Every target reached with `percent`; recalls of each conversation."""
    made = Score()
    for measure in (*TARGETS, ABOVE_WORDS[:2], WITH_VECTORS[:2]):
        made.values[measure].append(percent / 100)
    made.conversations.update(conversations)
    return made


@pytest.mark.parametrize(("ben", "missed"), [([0.8], 0), ([0.6], 1), ([0.5], 1)])
def test_every_conversation_must_gain(ben, missed, capsys):
    """One that only equals the baseline fails the run, however well the others do; it is named."""
    assert verdicts(score(100, ann=[1.0, 1.0], ben=ben), score(50, ann=[0.2, 0.4], ben=[0.6]), ()) == missed
    assert ("| ben | MISSED |" in capsys.readouterr().out) == bool(missed)


@pytest.mark.parametrize(("ben", "missed"), [([0.8], 0), ([0.6], 0), ([0.5], 1)])
def test_no_conversation_may_lose_by_vectors(ben, missed, capsys):
    """What they leave as it was is no loss."""
    assert vector_verdicts(score(100, ann=[1.0], ben=ben), score(50, ann=[0.2], ben=[0.6])) == missed
    assert ("| ben | MISSED |" in capsys.readouterr().out) == bool(missed)


def test_a_target_or_a_budget_that_is_missed_counts():
    """Each recall under its target, and each pack over its budget."""
    poor, base = score(50, ann=[0.5]), score(40, ann=[0.4])
    assert verdicts(poor, base, ()) == len(TARGETS)
    poor.over_count = 2
    assert verdicts(poor, base, ()) == len(TARGETS) + 2
