"""One attempt at a model."""

import pytest

from pandora_dagster.errors import BadAnswerError, ModelError, ModelRejectedError, ModelTimeoutError, RuntimeUnreachableError
from pandora_dagster.execution.call.attempts import fault_of


@pytest.mark.parametrize(
    ("error", "type", "retryable", "wait"),
    [
        (ModelTimeoutError("late"), "timeout", True, False),
        (ModelRejectedError("400"), "config_error", False, False),
        (RuntimeUnreachableError("refused", hint="start it"), "runtime_unreachable", True, True),
        (BadAnswerError("cut"), "schema_violation", True, False),
        (ModelError("odd"), "runtime_unreachable", False, True),
    ],
)
def test_the_error_itself_says_whether_to_try_again(error: ModelError, type: str, retryable: bool, wait: bool) -> None:
    """The model is informed of its own answer's fault, and nothing about failures it did not see."""
    fault, report = fault_of(error), "cut" if isinstance(error, BadAnswerError) else ""
    assert (fault.type, fault.retryable, fault.needs_pause, fault.feedback, fault.hint) == (type, retryable, wait, report, error.hint)
