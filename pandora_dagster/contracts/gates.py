"""The verdict of a quality gate, or of a check of a compression."""

from dataclasses import dataclass
from typing import Literal

Gate = Literal[
    "schema_validation",
    "confidence_threshold",
    "evidence_required",
    "timeout_ms",
    "facts_preserved",
    "within_budget",
    "is_a_summary",
    "sources_linked",
    "caches_fresh",
    "relevant_source",
]


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """One quality gate of one call (000 section 14), or one check of a compression."""

    gate: Gate
    passed: bool
    reason: str = ""
    value: float | None = None
