"""Facts as lines of a prompt: lines of the ledger, and the compact context of specification 002, section 6, with readers for both."""

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
    """A fact read from a line. `name`: its id in a line of the ledger, its citation label in a shown line."""

    name: str
    category: str
    text: str
    date: str
    turn: int
    is_current: bool


def ledger_lines(facts: Iterable[NotableFact]) -> str:
    """Render facts, a line each: `f1 [Logistics] My budget is $900. (2026-01-04, turn 3)`."""
    return "\n".join(f"{f.id} {_fact_text(f)}" for f in facts)


def read_ledger_lines(text: str) -> tuple[FactLine, ...]:
    """The facts of `ledger_lines`."""
    return tuple(
        FactLine(id, category, fact, date, int(turn), not ended) for id, category, ended, fact, date, turn in _LEDGER_LINE.findall(text)
    )


def shown_line(fact: NotableFact, label: str) -> str:
    """Render a fact with its citation: `- [Logistics] My budget is $900. (2026-01-04, turn 3) [2]`."""
    return f"- {_fact_text(fact)} [{label}]"


def read_shown_lines(text: str) -> tuple[FactLine, ...]:
    """The facts of `shown_line`s; heading lines are not read."""
    return tuple(
        FactLine(label, category, fact, date, int(turn), not ended)
        for category, ended, fact, date, turn, label in _SHOWN_LINE.findall(text)
    )


def facts_block(heading: str, lines: Sequence[str]) -> str:
    """The lines under their heading, as the compact context shows them; "" without lines."""
    return "\n".join((heading, *lines)) if lines else ""


def _fact_text(fact: NotableFact) -> str:
    mark = "" if fact.is_current else f", {_NOT_CURRENT}"
    return f"[{fact.category}{mark}] {' '.join(fact.fact.split())} ({fact.stated_at[:10]}, turn {fact.turn})"
