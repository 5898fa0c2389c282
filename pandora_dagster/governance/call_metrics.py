"""Sums call records into metrics by version or layer (specification 000, sections 5.4 and 27); memory does not grow with the calls."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.recipe_governance import CALIBRATION_BINS, ConfidenceBin, confidence_bin
from pandora_dagster.execution.fit.compression_log import EMBEDDED
from pandora_dagster.language.word_forms import counted

SHARES = ("passed", "first_time", "schema_valid", "citations_valid", "answered", "downstream")
"""Shares that may get worse: the call passed; at its first attempt; its answer fits the schema; its citations resolve; it answers from the
given sources; its turn had a good outcome."""
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """The outcome of a turn: whether it was saved, whether the validator sent its answer back, whether its user corrected it later."""

    saved: bool
    sent_back: bool = False
    corrected: bool = False

    @property
    def is_good(self) -> bool:
        return self.saved and not self.sent_back and not self.corrected


@dataclass(slots=True)
class Share:
    """The number of good calls and of all calls."""

    good: int = 0
    total: int = 0

    def add(self, good: bool) -> None:
        self.good += good
        self.total += 1

    @property
    def value(self) -> float | None:
        """The share of good calls, None without calls."""
        return self.good / self.total if self.total else None


@dataclass(slots=True)
class _CalibrationBin:
    calls: int = 0
    confidence_sum: float = 0.0
    good: int = 0


@dataclass(slots=True)
class CallMetrics:
    """Metrics of the calls of one version, or of one layer."""

    calls: int = 0
    newest: str = ""
    """Timestamp of the newest call."""
    shares: dict[str, Share] = field(default_factory=lambda: {name: Share() for name in SHARES})
    runtimes: Counter[str] = field(default_factory=Counter[str])
    """Runtime that answered -> number of calls."""
    gate_failures: Counter[str] = field(default_factory=Counter[str])
    """Gate -> calls whose last answer failed it."""
    retries: int = 0
    tokens: int = 0
    cost: float = 0.0
    latency_ms: float = 0.0
    longest_ms: float = 0.0
    budget_used: float = 0.0
    most_of_budget: float = 0.0
    _bins: list[_CalibrationBin] = field(default_factory=lambda: [_CalibrationBin() for _ in range(CALIBRATION_BINS)])

    def add(self, record: CallRecord, outcome: TurnOutcome | None) -> None:
        """Add one call; `outcome` is its turn's, None where the turn is open or the call has none."""
        self.calls += 1
        self.newest = max(self.newest, record.timestamp)
        self.runtimes[record.runtime] += 1
        self.shares["passed"].add(record.success)
        self.shares["first_time"].add(record.success and not record.retries and not record.escalated)
        if record.schema_valid is not None:
            self.shares["schema_valid"].add(record.schema_valid)
        if (passed := record.gates.get("evidence_required")) is not None:
            self.shares["citations_valid"].add(passed)
        if record.answered is not None:
            self.shares["answered"].add(record.answered)
        if outcome is not None:
            self.shares["downstream"].add(record.success and outcome.is_good)
            self._add_confidence(record, outcome)
        self.gate_failures.update(gate for gate, passed in record.gates.items() if not passed)
        self.retries += record.retries
        self.tokens += record.used_tokens
        self.cost += record.cost
        self.latency_ms += record.latency_ms
        self.longest_ms = max(self.longest_ms, record.latency_ms)
        budget_share = record.tokens.total / record.tokens.budget if record.tokens.budget else 0.0
        self.budget_used += budget_share
        self.most_of_budget = max(self.most_of_budget, budget_share)

    def _add_confidence(self, record: CallRecord, outcome: TurnOutcome) -> None:
        if record.confidence is not None:
            calibration_bin = self._bins[confidence_bin(record.confidence)]
            calibration_bin.calls += 1
            calibration_bin.confidence_sum += record.confidence
            calibration_bin.good += outcome.is_good

    @property
    def confidence_bins(self) -> tuple[ConfidenceBin, ...]:
        """Calls and good outcomes by stated confidence."""
        return tuple(ConfidenceBin(calls=b.calls, good=b.good) for b in self._bins)

    @property
    def calibration_error(self) -> float | None:
        """Mean distance between stated confidence and outcome over calls (expected calibration error, ten bins), 0 to 1."""
        calls = sum(b.calls for b in self._bins)
        return sum(abs(b.confidence_sum - b.good) for b in self._bins) / calls if calls else None

    def row(self) -> dict[str, float | int | None]:
        """The metrics by name; None where nothing was measured."""
        return {
            "calls": self.calls,
            **{name: share.value for name, share in self.shares.items()},
            "calibration_error": self.calibration_error,
            "gate_failures": self.gate_failures.total(),
            "retries": self.retries,
            "tokens_a_call": self._mean(self.tokens),
            "budget_used": self._mean(self.budget_used),
            "most_of_budget": self.most_of_budget,
            "latency_ms": self._mean(self.latency_ms),
            "longest_ms": self.longest_ms,
            "cost": self.cost,
        }

    @property
    def answered_by(self) -> str:
        """Calls by runtime: `sglang 12, extractive 3`."""
        return counted_names(self.runtimes)

    @property
    def failed_gates(self) -> str:
        """Gate failures by kind, the most frequent first: `evidence_required 3, schema_validation 1`."""
        return counted_names(self.gate_failures)

    def _mean(self, total: float) -> float | None:
        return total / self.calls if self.calls else None


def counted_names(counts: Counter[str]) -> str:
    """Names with their counts, the most frequent first: `sglang 12, extractive 3`."""
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def reads_prompts(runtime: str) -> bool:
    """Whether a runtime reads the texts of prompts; the embedded one answers by the recipe's role."""
    return runtime != EMBEDDED


def unread_prompts_note(runtimes: Mapping[str, int]) -> str:
    """A note where answers say nothing about a prompt, since no model read it; "" where there are none. `runtimes`: runtime -> answers."""
    unread = sum(count for runtime, count in runtimes.items() if not reads_prompts(runtime))
    if not unread:
        return ""
    answers = counted(sum(runtimes.values()), "answer is", "answers are")
    return f"{unread} of {answers} of the embedded runtime, which reads no prompt: no prompt was tested by them"


def measure_calls(
    records: Iterable[CallRecord], key: Callable[[CallRecord], Key], outcome: Callable[[CallRecord], TurnOutcome | None]
) -> dict[Key, CallMetrics]:
    """Metrics by key (recipe and version, or layer), from one pass over the records."""
    metrics_by_key: dict[Key, CallMetrics] = {}
    for record in records:
        metrics_by_key.setdefault(key(record), CallMetrics()).add(record, outcome(record))
    return metrics_by_key
