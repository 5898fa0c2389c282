"""Facts as calls read them: the ledger's lines, and the compact context of 002 section 6. Forms only, written here and read back here."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.user.user_memory import NotableFact

PREFERENCES_HEADING = "--- User preferences to honor ---"
FACTS_HEADING = "--- Notable facts ---"
_NOT_CURRENT = "no longer current"
_LEDGER_LINE = re.compile(rf"^([fp]\d+) \[(\w+)(, {_NOT_CURRENT})?\] (.+) \((\d{{4}}-\d\d-\d\d), turn (\d+)\)$", re.MULTILINE)
_SHOWN_LINE = re.compile(rf"^- \[(\w+)(, {_NOT_CURRENT})?\] (.+) \((\d{{4}}-\d\d-\d\d), turn (\d+)\) \[(\d+)\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FactLine:
    """A fact as a line tells it. `name` is its id in a ledger's line, its citation label in a shown one."""

    name: str
    category: str
    text: str
    date: str
    turn: int
    current: bool


def ledger_lines(facts: Iterable[NotableFact]) -> str:
    """`f1 [Logistics] My budget is $900. (2026-01-04, turn 3)`, a line each."""
    return "\n".join(f"{f.id} {_fact_text(f)}" for f in facts)


def read_ledger_lines(text: str) -> tuple[FactLine, ...]:
    """The facts of `ledger_lines`."""
    return tuple(FactLine(id, kind, said, date, int(turn), not over) for id, kind, over, said, date, turn in _LEDGER_LINE.findall(text))


def shown_line(fact: NotableFact, label: str) -> str:
    """`- [Logistics] My budget is $900. (2026-01-04, turn 3) [2]`."""
    return f"- {_fact_text(fact)} [{label}]"


def read_shown_lines(text: str) -> tuple[FactLine, ...]:
    """The facts of `shown_line`s; the heading lines say of whom they are."""
    return tuple(
        FactLine(label, kind, said, date, int(turn), not over) for kind, over, said, date, turn, label in _SHOWN_LINE.findall(text)
    )


def facts_block(heading: str, lines: Sequence[str]) -> str:
    """One block of the compact context; "" where it has no line."""
    return "\n".join((heading, *lines)) if lines else ""


def _fact_text(fact: NotableFact) -> str:
    over = "" if fact.current else f", {_NOT_CURRENT}"
    return f"[{fact.category}{over}] {' '.join(fact.fact.split())} ({fact.stated_at[:10]}, turn {fact.turn})"
