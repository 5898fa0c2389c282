"""A verification as plain lists: what is kept, missing, changed, left out, invented and to be reviewed, each entry with its places."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pandora_dagster.compression.verification.facts import Fact, Verdict
from pandora_dagster.compression.verification.ledger import Ledger
from pandora_dagster.compression.verification.verifier import Verification

Entry = Mapping[str, Any]


def report_of(ledger: Ledger, found: Verification) -> dict[str, Any]:
    """`facts` (`total` and a number for each outcome) and a list for each of `kept`, `missing`, `changed`, `left_out`, `invented` and
    `for_review`. An entry has its place in the original and in the shortened text: `line` from 1, characters `start` to `end`."""
    return {
        "facts": found.counts,
        "kept": [_entry(v, ledger) for v in found.kept],
        "missing": [_entry(v, ledger) for v in found.missing],
        "changed": [_entry(v, ledger) for v in found.changed],
        "left_out": [asdict(one) for one in found.left_out],
        "invented": [_entry(v, ledger) for v in found.invented],
        "for_review": [asdict(one) for one in found.for_review],
    }


def missing_statements(ledger: Ledger, facts: tuple[Fact, ...]) -> list[str]:
    """The units that hold `facts`, each once, whole and behind its speaker: what a reader has to look up."""
    return list(dict.fromkeys(ledger.statement(fact) for fact in facts))


def describe_change(verdict: Verdict) -> str:
    """The fact, what replaced it, and the reason: `$149.00 -> $194.00: another value in its place`."""
    before = f"{verdict.fact.text} -> " if verdict.fact and verdict.evidence not in ("", verdict.fact.text) else ""
    return f"{before}{verdict.evidence or verdict.text}: {verdict.reason or verdict.outcome.value}"


def _entry(verdict: Verdict, ledger: Ledger) -> Entry:
    fact = verdict.fact
    about = {"kind": fact.kind.value, "rank": fact.rank.value, "fact": fact.text, "of": ledger.statement(fact)} if fact else {}
    there = {"instead": verdict.evidence} if verdict.evidence and (fact is None or verdict.evidence != fact.text) else {}
    reason = {"reason": verdict.reason} if verdict.reason else {}
    place, here = (asdict(one) if one else None for one in (verdict.place, verdict.here))
    return {**about, **there, **reason, "original": place, "shortened": here}
