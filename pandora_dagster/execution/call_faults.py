"""Why an attempt or a whole call failed, and whether it can be retried."""

from dataclasses import dataclass

from pandora_dagster.contracts.enums import InterventionType


@dataclass(frozen=True, slots=True)
class CallFault:
    """Why one attempt failed. `feedback`: the message to the model on the next attempt, "" where the model is not the cause."""

    type: InterventionType
    message: str
    retryable: bool = False
    feedback: str = ""
    needs_pause: bool = False
    """Pause before the next attempt: the endpoint, not the answer, was at fault."""
    requested_pause_s: float = 0.0
    """The pause that the server requested, in seconds."""
    is_unreachable: bool = False
    """The endpoint was unreachable: such retries do not count among the recipe's own."""
    hint: str = ""
    suits_larger_layer: bool = False
    """A layer with a larger budget may take the call (decision 3: docs/decisions/03-a-query-over-its-limits.md)."""
    deferred: bool = False
    """The rate limit of the session deferred the call; it was not made."""


class CallFaultError(Exception):
    """Ends the steps of a call with its fault; never leaves `execution`."""

    def __init__(self, fault: CallFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def unrecoverable_fault(type: InterventionType, message: str, *, hint: str = "", suits_larger_layer: bool = False) -> CallFaultError:
    """The exception for a fault that no further attempt on this layer can repair."""
    return CallFaultError(CallFault(type, message, hint=hint, suits_larger_layer=suits_larger_layer))
