"""The steps from a model's shortened text to one that may stand, for one piece or the whole.

Knows ledger, source, target and a candidate; asks nobody. A candidate that can not be mended is refused.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pandora_dagster.compression.compressor import CompressedText, compress, reference_line
from pandora_dagster.compression.condense.fact_restoration import restore_facts
from pandora_dagster.compression.content_detection import content_type_of
from pandora_dagster.compression.facts.fact_types import Fact, Ledger, Outcome, Rank
from pandora_dagster.compression.judge.grounding import SourceIndex
from pandora_dagster.compression.judge.ledger import build_ledger
from pandora_dagster.compression.judge.summary_check import SummaryCheck, check_summary
from pandora_dagster.compression.judge.verification import Verification, verify
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
    check: SummaryCheck
    reasons: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.reasons

    @property
    def lost(self) -> tuple[Fact, ...]:
        """Facts worth asking for again: critical ones first, details left out."""
        facts = [f for f in self.verification.lost if f.rank is not Rank.DETAIL]
        return tuple(sorted(facts, key=lambda f: f.rank is not Rank.CRITICAL))


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
        return build_ledger(self.request.source, self.content_type)

    @cached_property
    def source(self) -> SourceIndex:
        return SourceIndex(self.request.source)

    def judge(self, candidate: str) -> CompressionJudgement:
        """Every verdict on a candidate. Missing details and important facts alone do not refuse it."""
        found = verify(self.ledger, self.source, candidate, reference=reference_line(self.request.name, self.content_type))
        check = check_summary(candidate, self.request.source, self.request.target, self.counter)
        lost = [f"critical fact missing: {f.text[:80]}" for f in found.lost_critical]
        wrong = [f"{v.outcome.value}: {v.text[:80]}" for v in found.of(Outcome.MUTATED, Outcome.INVENTED)]
        return CompressionJudgement(candidate, found, check, (*check.reasons, *lost, *wrong))

    def repair(self, judged: CompressionJudgement) -> CompressionJudgement:
        """Missing facts put back, each with its subject, within the target. What was invented can not be mended."""
        if not judged.lost:
            return judged
        again = self.judge(restore_facts(judged.text, judged.lost, self.request.source, self.request.target, self.counter))
        return again if len(again.reasons) <= len(judged.reasons) else judged

    def compress_to_spans(self) -> CompressedText:
        """Whole units, chosen and verified; HALTs where not one of them fits."""
        return compress(self.request, self.counter)


def compression_gates(found: Verification, check: SummaryCheck, tokens: int, target: int) -> tuple[GateVerdict, ...]:
    """The three checks of a text that a compression made, from what was found about it."""
    lost = [f"lost: {f.text[:80]}" for f in found.lost_critical]
    wrong = [f"{v.outcome.value}: {v.text[:80]}" for v in found.of(Outcome.MUTATED, Outcome.INVENTED)]
    over = "" if tokens <= target else f"{tokens} tokens: expected at most {target}"
    return (
        GateVerdict("facts_preserved", found.facts_preserved, "; ".join([*lost, *wrong][:_MAX_REASONS]), float(found.counts["total"])),
        GateVerdict("within_budget", not over, over, float(tokens)),
        GateVerdict("is_a_summary", check.ok, "; ".join(check.reasons)),
    )


def keep_hints(judged: CompressionJudgement, hints: Sequence[str], *, room: int, counter: TokenMeasure) -> tuple[str, ...]:
    """What a model is asked to keep next time: the hints, then exactly what is missing, as much as `room` tokens hold."""
    kept: list[str] = []
    left = room
    for text in dict.fromkeys((*hints, *(" ".join(f.text.split()) for f in judged.lost))):
        cost = counter.count(text) + 2
        if cost <= left:
            kept.append(text)
            left -= cost
    return tuple(kept)


def with_original_margins(text: str, original: str) -> str:
    """A shortened piece with the blank lines that stood around it, so that its neighbours keep their distance."""
    before = original[: len(original) - len(original.lstrip("\n"))]
    return before + text.strip("\n") + original[len(original.rstrip()) :]


StructuralCompressor = Callable[[CompressionContract, int], Awaitable[CompressionOutcome]]
"""Shortens what a contract holds, of so many tokens, without a model."""


async def compress_in_process(contract: CompressionContract, tokens: int) -> CompressionOutcome:
    """In this process, at once."""
    return compress_structurally(contract, tokens)


def compress_structurally(contract: CompressionContract, tokens: int) -> CompressionOutcome:
    """Verbatim spans of a text of so many tokens, or a HALT with its reason. Raises InputError for a target under 1."""
    made = contract.compress_to_spans()
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
