"""A verification as plain lists: what is kept, missing, changed, left out, invented and to be reviewed, each entry with its places."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pandora_dagster.compression.verification.facts import Fact, Verdict
from pandora_dagster.compression.verification.text_facts import TextFacts
from pandora_dagster.compression.verification.verifier import Verification

Entry = Mapping[str, Any]


def report_of(text_facts: TextFacts, verification: Verification) -> dict[str, Any]:
    """`facts` (`total` and a number for each outcome) and a list for each of `kept`, `missing`, `changed`, `left_out`, `invented` and
    `for_review`. An entry has its place in the original and in the shortened text: `line` from 1, characters `start` to `end`."""
    return {
        "facts": verification.counts,
        "kept": [_entry(v, text_facts) for v in verification.kept],
        "missing": [_entry(v, text_facts) for v in verification.missing],
        "changed": [_entry(v, text_facts) for v in verification.changed],
        "left_out": [asdict(omission) for omission in verification.left_out],
        "invented": [_entry(v, text_facts) for v in verification.invented],
        "for_review": [asdict(statement) for statement in verification.for_review],
    }


def missing_statements(text_facts: TextFacts, facts: tuple[Fact, ...]) -> list[str]:
    """The units that hold `facts`, each once, whole and with its speaker before it: what a reader has to look up."""
    return list(dict.fromkeys(text_facts.statement(fact) for fact in facts))


def describe_change(verdict: Verdict) -> str:
    """The fact, what replaced it, and the reason: `$149.00 -> $194.00: another value in its place`."""
    before = f"{verdict.fact.text} -> " if verdict.fact and verdict.evidence not in ("", verdict.fact.text) else ""
    return f"{before}{verdict.evidence or verdict.text}: {verdict.reason or verdict.outcome.value}"


def _entry(verdict: Verdict, text_facts: TextFacts) -> Entry:
    fact = verdict.fact
    about = {"kind": fact.kind.value, "rank": fact.rank.value, "fact": fact.text, "of": text_facts.statement(fact)} if fact else {}
    instead = {"instead": verdict.evidence} if verdict.evidence and (fact is None or verdict.evidence != fact.text) else {}
    reason = {"reason": verdict.reason} if verdict.reason else {}
    places = {name: asdict(place) if place else None for name, place in (("original", verdict.place), ("shortened", verdict.here))}
    return {**about, **instead, **reason, **places}
