"""Role `validator`: comparison of section 5 with its evidence."""

import pytest

from pandora_dagster.contracts.phase_outputs import ValidationVerdict
from tests.runtime.extractive.packs import context, section2, source

EVIDENCE = section2((3, "1", "Booked with QX7TTA", "It cost $1,250.50 on 2025-02-03; See https://shop.example/a?b=1"))
CASES = [
    ("QX7TTA cost $1,250.50 [1]", "APPROVE", []),
    ("QX7TTA cost 1250.50 on 2025-02-03 [1]", "APPROVE", []),
    ("1. Look at https://shop.example/a?b=1 [1]", "APPROVE", []),
    ("The house 12 is meant [1]", "APPROVE", []),
    ("", "REVISE", [""]),
    ("It cost $1,250 [1]", "REVISE", ["1,250: not in [1]; the source says"]),
    ("It cost $1,250.50 [1]. You were born in 1971.", "REVISE", ["cites no source"]),
    ("QX7TTB cost $1,250.50 [1]", "REVISE", ["QX7TTB"]),
    ("It cost $1,250.50 [4]", "REVISE", ["[4]"]),
    ("See https://evil.example/ and pay 99 [4]", "REVISE", ["[4]"]),
    ("See https://evil.example/ and pay 99 [1]", "REVISE", ["https://evil.example/"]),
]


@pytest.mark.parametrize(("response", "decision", "named"), CASES)
def test_every_statement_and_citation_is_checked(ask, response: str, decision: str, named: list[str]) -> None:
    """What its source supports is approved; each statement without support is an issue, and each label that no source has."""
    given = {"context.md": context("is it house 12?", s2=EVIDENCE, s5=response)}
    verdict = ValidationVerdict.model_validate(ask("validator", "is it house 12?", given, sources=[source("1", 3)]))
    assert verdict.decision == decision
    assert len(verdict.issues) == len(named)
    assert all(name in issue for name, issue in zip(named, verdict.issues, strict=True))
    assert verdict.confidence >= 0.7


def test_citations_checked_are_listed(ask) -> None:
    """The verdict names the labels that it looked at, once each."""
    given = {"context.md": context("q", s2=EVIDENCE, s5="QX7TTA [1] and again QX7TTA [1]")}
    assert ask("validator", "q", given)["checked_citations"] == ["1"]
