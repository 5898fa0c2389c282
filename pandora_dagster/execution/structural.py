"""A text shortened to what its verdicts let stand: by its structure, or as judged. Pure: what it is asked it can be asked anywhere."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property

from pandora_dagster.compression.verification import Verification
from pandora_dagster.contracts.calls import GateVerdict
from pandora_dagster.execution.compression_log import EMBEDDED
from pandora_dagster.execution.ladder import Contract, Judged, compression_gates


@dataclass(frozen=True)
class Outcomes:
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


Structure = Callable[[Contract, int], Awaitable[Outcomes]]
"""Shortens what a contract holds, of so many tokens, without a model."""


async def here(contract: Contract, tokens: int) -> Outcomes:
    """In this process, at once."""
    return by_structure(contract, tokens)


def by_structure(contract: Contract, tokens: int) -> Outcomes:
    """Verbatim spans of a text of so many tokens, or a HALT with its reason. Raises InputError for a target under 1."""
    made = contract.spans()
    if made.text is None or made.check is None:
        return Outcomes(made.text, made.tokens, tokens, halted=made.halted or "", runtime=EMBEDDED)
    return proven(Judged(made.text, made.verification, made.check, ()), contract, tokens, runtime=EMBEDDED)


def proven(judged: Judged, contract: Contract, tokens: int, *, runtime: str, deferred: str = "") -> Outcomes:
    """A shortened text with its verdicts and its three checks."""
    after = contract.counter.count(judged.text)
    gates = compression_gates(judged.verification, judged.check, after, contract.target)
    return Outcomes(judged.text, after, tokens, judged.verification, runtime=runtime, deferred=deferred, gates=gates)
