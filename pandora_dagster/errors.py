"""Every error the project raises, in one tree.

    PandoraError
    ├── InputError                 what a person gave us is wrong: command line, file, id (exit code 2)
    │   ├── BadIdError             a user, turn or session id that must not become a path
    │   ├── UnknownTurnError       a turn that does not exist, or a short form that fits several
    │   └── ConversationError      a line of an imported file
    ├── ConfigurationError         recipes, settings, runtime.yaml (exit code 2)
    │   ├── RecipeNotFoundError
    │   └── RecipeValidationError  all faults of a file at once, each as `file:line: what: expected`
    ├── DocumentError              a stored document that is missing, damaged or contradicts its manifest
    │   └── OriginalsDeletedError  the originals of an archived turn were deleted by rule: no fault
    ├── BudgetError                the parts of a call that must fit do not fit
    │   └── FactLossError          they would fit only without a critical fact
    ├── StoreError                 the disk or the index refused (read-only, full, locked)
    │   └── DamagedIndexError          an index that is damaged or of another design: it can be made again
    ├── ModelError                 a call of a model failed
    │   ├── RuntimeUnreachableError    refused, reset, 5xx                      (retryable)
    │   │   ├── RateLimitedError       429: too many calls                      (retryable)
    │   │   ├── EndpointFullError      503: no free place, however long it was waited for (not retried: it was)
    │   │   └── EndpointDownError      unreachable many times in a row, left alone for a while (not retried: it is known)
    │   ├── ModelTimeoutError          over the recipe's `timeout_ms`           (retryable)
    │   ├── ModelRejectedError         400: prompt too long, bad schema, auth   (never retried)
    │   └── BadAnswerError             cut, empty, refused, not parseable, over the schema (retryable)
    ├── DeferredError              a summarisation call over its session's limits: later (retryable)
    └── HaltError                  the turn stops; an intervention has been written (exit code 1)

An error knows whether trying again can help (`retryable`) and what a person can do (`hint`).
"""

from collections.abc import Sequence


class PandoraError(Exception):
    """A failure with one clear sentence: where, what, what was expected."""

    retryable = False
    hint = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        if hint:
            self.hint = hint

    @property
    def with_hint(self) -> str:
        """The sentence and what to do, for where nothing else tells the hint."""
        return f"{self}; {self.hint}" if self.hint else str(self)


class InputError(PandoraError):
    """What a person gave on the command line or in a file is wrong."""


class BadIdError(InputError):
    """An id that does not match the strict pattern ids must have before they become paths."""


class UnknownTurnError(InputError):
    """A turn that does not exist, or a short form that fits several turns."""


class ConversationError(InputError):
    """A conversation that can not be imported."""


class ConfigurationError(PandoraError):
    """Settings, recipes or `runtime.yaml` are wrong."""


class RecipeNotFoundError(ConfigurationError):
    """A recipe that no file holds (000 section 18.1)."""


class RecipeValidationError(ConfigurationError):
    """All faults of one recipe file (000 section 18.2)."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class DocumentError(PandoraError):
    """A stored document is missing (`missing`) or damaged."""

    def __init__(self, message: str, *, missing: bool = False, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.missing = missing


class OriginalsDeletedError(DocumentError):
    """The originals of an archived turn were deleted by rule, which a tombstone says; its compressed documents stand."""


class BudgetError(PandoraError):
    """What must be sent exceeds a token budget; `over` says by how many tokens."""

    def __init__(self, message: str, *, over: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.over = over


class FactLossError(BudgetError):
    """A text fits its budget only without a fact that must be kept, so it is not shortened at all."""


class StoreError(PandoraError):
    """The disk or the index refused."""


class DamagedIndexError(StoreError):
    """An index that is damaged or of another design; the documents stand, so it can be made again."""


class ModelError(PandoraError):
    """A call of a model failed. What it took all the same stands in `queued_ms` and `tokens`."""

    queued_ms: float = 0.0
    """How long it waited for its place at the server."""
    retry_after_s: float = 0.0
    """How long the server asked to be left alone; 0 where it did not say."""
    tokens: tuple[int, int, int] = (0, 0, 0)
    """Prompt, output and cached tokens, where the server counted them in spite of the failure."""


class RuntimeUnreachableError(ModelError):
    """No usable answer from the endpoint: refused, reset, 5xx."""

    retryable = True


class RateLimitedError(RuntimeUnreachableError):
    """The endpoint answers that there are too many calls (429)."""


class EndpointFullError(RuntimeUnreachableError):
    """The endpoint has no free place (503). Who waits for one raises this when its patience is over."""

    retryable = False


class EndpointDownError(RuntimeUnreachableError):
    """The endpoint was unreachable so often that it is left alone for a while; nothing was sent."""

    retryable = False


class ModelTimeoutError(ModelError):
    """The call took longer than its recipe allows."""

    retryable = True


class ModelRejectedError(ModelError):
    """The endpoint refused the request itself; the same request fails again."""


class BadAnswerError(ModelError):
    """The model answered, but not with what its recipe asks for."""

    retryable = True


class DeferredError(PandoraError):
    """A summarisation call that its session's limits put off (DECISIONS 7). Nothing failed and nothing is lost: it can be made later."""

    retryable = True


class HaltError(PandoraError):
    """The work stops here; `intervention_id` names the record that says why."""

    def __init__(self, message: str, *, intervention_id: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.intervention_id = intervention_id
