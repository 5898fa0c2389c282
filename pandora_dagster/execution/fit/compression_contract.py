"""The CompressionContract: the conditions that a shortened text, or a piece of one, must meet before it replaces its original.

A candidate is compared with the facts of its original, checked for its form, and counted. No model is called.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property

from pandora_dagster.compression.content_detection import content_type_of
from pandora_dagster.compression.original_reference import reference_line
from pandora_dagster.compression.verification.facts import Verdict
from pandora_dagster.compression.verification.report import describe_change
from pandora_dagster.compression.verification.summary_check import check_summary
from pandora_dagster.compression.verification.text_facts import TextFacts, find_facts
from pandora_dagster.compression.verification.verifier import Verification, verify
from pandora_dagster.contracts.compression_results import CompressionRequest, GateVerdict
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.execution.fit.compression_log import EMBEDDED, CompressionOutcome

_MAX_REASONS = 5
_MAX_REASON_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class CompressionJudgement:
    """A candidate with its verdicts and every reason against it."""

    text: str
    verification: Verification
    form_faults: tuple[str, ...]
    """Faults of form: why the candidate is not a condensed text."""
    reasons: tuple[str, ...]
    """Faults of form, and the facts that were changed or invented."""
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
    def original_facts(self) -> TextFacts:
        return find_facts(self.request.source)

    def judge(self, candidate: str) -> CompressionJudgement:
        """The verdicts on a candidate: a fact that it leaves out is no reason against it, one that it changes or invents is."""
        reference = reference_line(self.request.name, self.content_type)
        verification = verify(self.original_facts, candidate, reference=reference)
        form_faults = check_summary(candidate, self.original_facts, self.request.target, self.counter, reference=reference)
        fits = self.counter.count(candidate) <= self.request.target
        return CompressionJudgement(candidate, verification, form_faults, (*form_faults, *_fact_faults(verification)), fits)


def compression_gates(verification: Verification, form_faults: tuple[str, ...], tokens: int, target: int) -> tuple[GateVerdict, ...]:
    """The three checks of a compressed text."""
    fact_faults = "; ".join(_fact_faults(verification)[:_MAX_REASONS])
    over_target = "" if tokens <= target else f"{tokens} tokens: expected at most {target}"
    return (
        GateVerdict("no_fact_changed", verification.no_fact_changed, fact_faults, float(verification.counts["total"])),
        GateVerdict("within_budget", not over_target, over_target, float(tokens)),
        GateVerdict("is_a_summary", not form_faults, "; ".join(form_faults)),
    )


def _fact_faults(verification: Verification) -> list[str]:
    """The facts that a text changes and invents, each in a few words."""
    return [_describe_verdict(verdict) for verdict in (*verification.changed, *verification.invented)]


def _describe_verdict(verdict: Verdict) -> str:
    return f"{verdict.outcome.value}: {describe_change(verdict)[:_MAX_REASON_CHARACTERS]}"


def with_original_margins(text: str, original: str) -> str:
    """A shortened piece with the blank lines that its original has around it."""
    before = original[: len(original) - len(original.lstrip("\n"))]
    return before + text.strip("\n") + original[len(original.rstrip()) :]


StructuralCompressor = Callable[[CompressionContract, int], Awaitable[CompressionOutcome]]
"""Shortens the text of a contract without a model; the number is the tokens of the text."""


async def compress_in_process(contract: CompressionContract, tokens: int) -> CompressionOutcome:
    """`compress_structurally` in this process."""
    return compress_structurally(contract, tokens)


def compress_structurally(contract: CompressionContract, tokens: int) -> CompressionOutcome:
    """The whole units of a text of `tokens` tokens that fit its target, or a HALT. Raises InputError for a target under 1."""
    from pandora_dagster.compression.compressor import compress

    condensed = compress(contract.request, contract.counter)
    if condensed.text is None or condensed.check is None:
        return CompressionOutcome(condensed.text, condensed.tokens, tokens, halted=condensed.halted or "", runtime=EMBEDDED)
    judgement = CompressionJudgement(condensed.text, condensed.verification, condensed.check, ())
    return verified_outcome(judgement, contract, tokens, runtime=EMBEDDED)


def verified_outcome(
    judgement: CompressionJudgement, contract: CompressionContract, tokens: int, *, runtime: str, deferred: str = ""
) -> CompressionOutcome:
    """The outcome of a shortened text, with its verdicts and its three checks; `tokens`: those of the original."""
    tokens_after = contract.counter.count(judgement.text)
    gates = compression_gates(judgement.verification, judgement.form_faults, tokens_after, contract.request.target)
    return CompressionOutcome(judgement.text, tokens_after, tokens, judgement.verification, runtime=runtime, deferred=deferred, gates=gates)
