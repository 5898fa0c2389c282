"""What to shrink, and whether it survived: facts, ledgers, verdicts, condensing. Pure: no model, no file."""

from pandora_dagster.compression.compressor import CompressedText, compress
from pandora_dagster.compression.content_detection import detect_content_type
from pandora_dagster.compression.verification.facts import Fact, FactKind, Outcome, Rank, Verdict, count_verdicts
from pandora_dagster.compression.verification.ledger import Ledger, build_ledger
from pandora_dagster.compression.verification.summary_check import check_summary
from pandora_dagster.compression.verification.verifier import Verification, verify

__all__ = [
    "CompressedText",
    "Fact",
    "FactKind",
    "Ledger",
    "Outcome",
    "Rank",
    "Verdict",
    "Verification",
    "build_ledger",
    "check_summary",
    "compress",
    "count_verdicts",
    "detect_content_type",
    "verify",
]
