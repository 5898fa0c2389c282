"""The CompressionContract: what a shortened text, or a piece of one, must meet before it replaces its original.

Knows ledger, source, target and a candidate; makes no calls.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property

from pandora_dagster.compression.compressor import compress, reference_line
from pandora_dagster.compression.content_detection import content_type_of
from pandora_dagster.compression.verification.facts import Verdict
from pandora_dagster.compression.verification.ledger import Ledger, build_ledger
from pandora_dagster.compression.verification.report import describe_change
from pandora_dagster.compression.verification.summary_check import check_summary
from pandora_dagster.compression.verification.verifier import Verification, verify
from pandora_dagster.contracts.compression_results import CompressionRequest, GateVerdict
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.execution.fit.compression_log import EMBEDDED, CompressionOutcome

_MAX_REASONS = 5


@dataclass(frozen=True, slots=True)
class CompressionJudgement:
    """A candidate with its verdicts and every reason against it."""

    text: str
    verification: Verification
    check: tuple[str, ...]
    """Why it is no condensed text."""
    reasons: tuple[str, ...]
    fits: bool = True
    """Whether it is within its target."""

    @property
    def ok(self) -> bool:
        return not self.reasons


@dataclass(frozen=True)
class CompressionContract:
    """The conditions that a compressed text must meet: the facts of its original, and its target."""

    request: CompressionRequest
    counter: TokenMeasure

    @cached_property
    def content_type(self) -> ContentType:
        return content_type_of(self.request)

    @cached_property
    def ledger(self) -> Ledger:
        return build_ledger(self.request.source)

    def judge(self, candidate: str) -> CompressionJudgement:
        """Every verdict on a candidate. What it leaves out does not refuse it, what it changes or invents does."""
        reference = reference_line(self.request.name, self.content_type)
        found = verify(self.ledger, candidate, reference=reference)
        check = check_summary(candidate, self.ledger, self.request.target, self.counter, reference=reference)
        fits = self.counter.count(candidate) <= self.request.target
        return CompressionJudgement(candidate, found, check, (*check, *_untrue(found)), fits)


def compression_gates(found: Verification, check: tuple[str, ...], tokens: int, target: int) -> tuple[GateVerdict, ...]:
    """The three checks of a text that a compression made, from what was found about it."""
    over = "" if tokens <= target else f"{tokens} tokens: expected at most {target}"
    return (
        GateVerdict("no_fact_changed", found.no_fact_changed, "; ".join(_untrue(found)[:_MAX_REASONS]), float(found.counts["total"])),
        GateVerdict("within_budget", not over, over, float(tokens)),
        GateVerdict("is_a_summary", not check, "; ".join(check)),
    )


def _untrue(found: Verification) -> list[str]:
    """What a text changes and invents, each in a few words."""
    return [_described(verdict) for verdict in (*found.changed, *found.invented)]


def _described(verdict: Verdict) -> str:
    return f"{verdict.outcome.value}: {describe_change(verdict)[:160]}"


def with_original_margins(text: str, original: str) -> str:
    """A shortened piece with the blank lines around it, so that its neighbours keep their distance."""
    before = original[: len(original) - len(original.lstrip("\n"))]
    return before + text.strip("\n") + original[len(original.rstrip()) :]


StructuralCompressor = Callable[[CompressionContract, int], Awaitable[CompressionOutcome]]
"""Shortens what a contract holds, of so many tokens, without a model."""


async def compress_in_process(contract: CompressionContract, tokens: int) -> CompressionOutcome:
    """In this process, at once."""
    return compress_structurally(contract, tokens)


def compress_structurally(contract: CompressionContract, tokens: int) -> CompressionOutcome:
    """Whole units of a text of so many tokens, or a HALT with its reason. Raises InputError for a target under 1."""
    made = compress(contract.request, contract.counter)
    if made.text is None or made.check is None:
        return CompressionOutcome(made.text, made.tokens, tokens, halted=made.halted or "", runtime=EMBEDDED)
    return verified_outcome(CompressionJudgement(made.text, made.verification, made.check, ()), contract, tokens, runtime=EMBEDDED)


def verified_outcome(
    judged: CompressionJudgement, contract: CompressionContract, tokens: int, *, runtime: str, deferred: str = ""
) -> CompressionOutcome:
    """A shortened text with its verdicts and its three checks."""
    after = contract.counter.count(judged.text)
    gates = compression_gates(judged.verification, judged.check, after, contract.request.target)
    return CompressionOutcome(judged.text, after, tokens, judged.verification, runtime=runtime, deferred=deferred, gates=gates)
