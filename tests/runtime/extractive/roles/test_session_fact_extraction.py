"""Which held fact a new statement replaces: the one that is most about the same matter, and none in doubt."""

import pytest

BUDGET, NIGHT = "Our budget is 1200 euros.", "We want to stay near the river, at most 90 euros a night."


def replaced(ask, said: str, *held: str) -> list[str]:
    """The held facts that no longer hold after these words."""
    known = "\n".join(f"f{n} [Logistics] {text} (2026-01-0{n}, turn {n})" for n, text in enumerate(held, 1))
    diff = ask("fact_keeper", said, {"known_facts": known})
    return [held[int(upsert["replaces"][1:]) - 1] for upsert in diff["upsert"] if upsert["replaces"]]


@pytest.mark.parametrize("held", [(BUDGET, NIGHT), (NIGHT, BUDGET)])
def test_a_new_budget_replaces_the_budget_alone(ask, held) -> None:
    """A limit of another matter stays in force, whichever was stated last."""
    assert replaced(ask, "Actually the budget is 1500 euros now.", *held) == [BUDGET]


def test_a_limit_of_another_matter_alone_stays(ask) -> None:
    assert replaced(ask, "Actually the budget is 1500 euros now.", NIGHT) == []


def test_the_closer_of_two_is_replaced_and_neither_of_two_as_close(ask) -> None:
    """Both stay where the words do not tell which is meant."""
    assert replaced(ask, "I no longer eat smoked fish.", "I eat fish.", "I eat smoked fish.") == ["I eat smoked fish."]
    assert replaced(ask, "I no longer eat fish.", "I eat grilled fish.", "I eat smoked fish.") == []
