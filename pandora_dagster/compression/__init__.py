"""What to shrink, and whether it survived: facts, ledgers, verdicts, condensing. Pure: no model, no file."""

from pandora_dagster.compression.compressor import Compressed, compress
from pandora_dagster.compression.detection import detect_content_type
from pandora_dagster.compression.facts import Fact, FactKind, Ledger, Outcome, Rank, Verdict, counted
from pandora_dagster.compression.ledger import take_ledger
from pandora_dagster.compression.summary_check import SummaryCheck, is_a_summary
from pandora_dagster.compression.verification import Verification, verify

__all__ = [
    "Compressed",
    "Fact",
    "FactKind",
    "Ledger",
    "Outcome",
    "Rank",
    "SummaryCheck",
    "Verdict",
    "Verification",
    "compress",
    "counted",
    "detect_content_type",
    "is_a_summary",
    "take_ledger",
    "verify",
]
