"""Why an attempt or a whole call failed. Knows what can be retried; writes nothing."""

from dataclasses import dataclass

from pandora_dagster.contracts.enums import InterventionType


@dataclass(frozen=True, slots=True)
class CallFault:
    """One failed attempt. `feedback` is what the model is told on the next one, "" where it could not do anything about it."""

    type: InterventionType
    message: str
    retryable: bool = False
    feedback: str = ""
    wait: bool = False
    """Pause before the next attempt: the endpoint, not the answer, was at fault."""
    wait_s: float = 0.0
    """How long the server asked to be left alone."""
    away: bool = False
    """It was not there at all: waited for beside the recipe's own retries."""
    hint: str = ""
    wider: bool = False
    """A layer with more room may take the call (DECISIONS 3)."""
    deferred: bool = False
    """The limits of the session put the call off; it was not made."""


class CallFaultError(Exception):
    """Leaves the steps of a call with the fault that ends it; never leaves the room."""

    def __init__(self, fault: CallFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def unrecoverable_fault(type: InterventionType, message: str, *, hint: str = "", wider: bool = False) -> CallFaultError:
    """The exception for a fault that no further attempt on this layer can help."""
    return CallFaultError(CallFault(type, message, hint=hint, wider=wider))
