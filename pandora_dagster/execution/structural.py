"""A text shortened to what its verdicts let stand: by its structure, or as judged. Pure: what it is asked it can be asked anywhere."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property

from pandora_dagster.compression.verification import Verification
from pandora_dagster.contracts.calls import GateVerdict
from pandora_dagster.execution.compression_log import EMBEDDED
from pandora_dagster.execution.ladder import CompressionContract, CompressionJudgement, compression_gates


@dataclass(frozen=True)
class CompressionOutcome:
    """What became of a text. `text` is None where it HALTed; `verification` is None where it fitted and is unchanged."""

    text: str | None
    tokens: int
    original_tokens: int
    verification: Verification | None = None
    halted: str = ""
    runtime: str = ""
    """Who shortened it; both names with a `+` where some pieces are a model's and others verbatim spans."""
    deferred: str = ""
    """Why a model was not asked for all that it would have shortened (DECISIONS 7)."""
    gates: tuple[GateVerdict, ...] = ()
    """The three checks of a text that was shortened."""
    call_id: str = ""
    """The record of the whole."""

    @cached_property
    def counts(self) -> dict[str, int]:
        return self.verification.counts if self.verification else {}


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


def verified_outcome(judged: CompressionJudgement, contract: CompressionContract, tokens: int, *, runtime: str, deferred: str = "") -> CompressionOutcome:
    """A shortened text with its verdicts and its three checks."""
    after = contract.counter.count(judged.text)
    gates = compression_gates(judged.verification, judged.check, after, contract.target)
    return CompressionOutcome(judged.text, after, tokens, judged.verification, runtime=runtime, deferred=deferred, gates=gates)
