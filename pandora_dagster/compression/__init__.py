"""Shortens texts and verifies what survived: units, salience, selection, facts and verdicts. Pure: no model, no file."""

from pandora_dagster.compression.compressor import CompressedText, compress
from pandora_dagster.compression.content_detection import detect_content_type
from pandora_dagster.compression.verification.facts import Fact, FactKind, Outcome, Rank, Verdict, count_verdicts
from pandora_dagster.compression.verification.summary_check import check_summary
from pandora_dagster.compression.verification.text_facts import TextFacts, find_facts
from pandora_dagster.compression.verification.verifier import Verification, verify

__all__ = [
    "CompressedText",
    "Fact",
    "FactKind",
    "Outcome",
    "Rank",
    "TextFacts",
    "Verdict",
    "Verification",
    "check_summary",
    "compress",
    "count_verdicts",
    "detect_content_type",
    "find_facts",
    "verify",
]
