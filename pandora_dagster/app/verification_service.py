"""Verification of a shortened text against its original, for the command line and for Python programs; `compression` does the work.

from pandora_dagster.app.verification_service import verify_texts
verify_texts(open("long.md").read(), open("short.md").read())["missing"]
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pandora_dagster.archive.lineage_view import Mark, Pane
from pandora_dagster.compression.verification.facts import Outcome, Rank, Verdict
from pandora_dagster.compression.verification.report import describe_change, report_of
from pandora_dagster.compression.verification.text_facts import find_facts
from pandora_dagster.compression.verification.verifier import Verification, verify
from pandora_dagster.documents.redaction.credentials import redact

_MAX_TITLE_CHARACTERS = 400
LEGEND = {
    "kept": "kept",
    "equal": "equal: kept in another spelling",
    "missing": "missing: only in the original",
    "mutated": "changed",
    "invented": "not in the original",
    "span": "not verbatim: its meaning has to be read",
}


@dataclass(frozen=True, slots=True)
class TextComparison:
    """Both texts with the places of their facts, for a page that shows them side by side."""

    original: Pane
    shortened: Pane
    counts: str
    changes: tuple[str, ...]
    left_out: tuple[str, ...]


def verify_texts(original: str, shortened: str) -> dict[str, Any]:
    """What became of the facts of `original` in `shortened`, whoever shortened it.

    The answer has `facts` (`total` and a number for each outcome) and the lists `kept`, `missing`, `changed`, `left_out`, `invented` and
    `for_review`; each entry with its place in both texts. Credentials are removed first: places are those of the redacted texts."""
    text_facts = find_facts(original)
    return report_of(text_facts, verify(text_facts, shortened))


def compare_texts(original: str, shortened: str, *, names: tuple[str, str]) -> TextComparison:
    """Compare both texts for a page. `names`: the headings of the original and of the shortened text."""
    text_facts = find_facts(original)
    verification = verify(text_facts, shortened)
    before = Pane(names[0], text_facts.text, tuple(_marks_of_original(verification)))
    after = Pane(names[1], redact(shortened), tuple(_marks_of_shortened(verification)))
    counts = ", ".join(f"{verification.counts[o.value]} {o.value.replace('_', ' ')}" for o in Outcome if verification.counts[o.value])
    changes = tuple(describe_change(v) for v in (*verification.changed, *verification.invented))
    left_out = tuple(f"line {unit.original.line}: {unit.text}" for unit in verification.left_out)
    return TextComparison(before, after, f"{verification.counts['total']} facts: {counts}", changes, left_out)


def _marks_of_original(verification: Verification) -> Iterator[Mark]:
    for unit in verification.left_out:
        yield Mark(unit.original.start, unit.original.end, "missing", "left out")
    for verdict in verification.verdicts:
        if (fact := verdict.fact) is not None:
            kind = verdict.outcome.value + (" critical" if fact.rank is Rank.CRITICAL else "")
            yield Mark(fact.start, fact.end, kind, _title(verdict))


def _marks_of_shortened(verification: Verification) -> Iterator[Mark]:
    for statement in verification.for_review:
        yield Mark(statement.shortened.start, statement.shortened.end, "span", "; ".join(statement.differences)[:_MAX_TITLE_CHARACTERS])
    for verdict in verification.verdicts:
        if verdict.here and verdict.outcome is not Outcome.MISSING:
            yield Mark(verdict.here.start, verdict.here.end, verdict.outcome.value, _title(verdict))


def _title(verdict: Verdict) -> str:
    head = f"{verdict.fact.kind.value}, " if verdict.fact else ""
    return "; ".join(part for part in (head + verdict.outcome.value, verdict.reason, verdict.evidence) if part)[:_MAX_TITLE_CHARACTERS]
