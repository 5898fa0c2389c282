"""Every error that the project raises, in one tree.

    PandoraError
    ├── InputError                 invalid input of a user: command line, file, id (exit code 2)
    │   ├── BadIdError             a user, turn or session id that must not become a path
    │   ├── UnknownTurnError       a turn that does not exist, or a short form that fits several
    │   └── ConversationError      a line of an imported file
    ├── ConfigurationError         recipes, settings, runtime.yaml (exit code 2)
    │   ├── RecipeNotFoundError
    │   └── RecipeValidationError  all faults of a file at once, each as `file:line: what: expected`
    ├── DocumentError              a stored document that is missing, damaged or contradicts its manifest
    │   └── OriginalsDeletedError  the originals of an archived turn were deleted by rule, which is not a fault
    ├── BudgetError                the parts of a call that must fit do not fit
    │   └── FactLossError          they would fit only without a critical fact
    ├── StoreError                 the disk or the index refused (read-only, full, locked)
    │   ├── TurnChangedError           a turn changed while a tool of it ran: the result is dropped
    │   └── DamagedIndexError          an index that is damaged or has another schema: it can be rebuilt
    │       └── OldIndexError          an index of an older schema: it is rebuilt where the documents are at hand
    ├── ModelError                 a call of a model failed
    │   ├── RuntimeUnreachableError    refused, reset, 5xx                      (retryable)
    │   │   ├── RateLimitedError       429: too many calls                      (retryable)
    │   │   ├── EndpointFullError      503: no capacity within the longest wait (not retried)
    │   │   └── EndpointDownError      circuit open: unreachable many times in a row (not retried)
    │   ├── ModelTimeoutError          over the recipe's `timeout_ms`           (retryable)
    │   ├── ModelRejectedError         400: prompt too long, bad schema, auth   (never retried)
    │   └── BadAnswerError             truncated, empty, refused, not parseable, against the schema (retryable)
    ├── FetchError                 a page of the web was not read
    │   ├── FetchRefusedError          a rule forbids it: address, robots.txt, content, budget (never retried)
    │   └── FetchFailedError           the server or the network failed         (retryable where `retryable`)
    ├── BrowserError               a page was not rendered: Chromium is missing, crashed or took too long
    ├── ToolLimitError             a tool asked for more than it declares
    ├── DeferredError              a summarization call over its session's limits: later (retryable)
    └── HaltError                  the turn stops; an intervention has been written (exit code 1)

An error says whether a retry can help (`retryable`) and what a user can do (`hint`).
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
        """The message and the hint, for output that has no place for the hint."""
        return f"{self}; {self.hint}" if self.hint else str(self)


class ToolLimitError(PandoraError):
    """A tool asked for more than its `ToolSpec` declares."""


class InputError(PandoraError):
    """Invalid input of a user, on the command line or in a file."""


class BadIdError(InputError):
    """An id that does not match the strict pattern that ids must match before they become paths."""


class UnknownTurnError(InputError):
    """A turn that does not exist, or a short form that fits several turns."""


class ConversationError(InputError):
    """A conversation that cannot be imported."""


class ConfigurationError(PandoraError):
    """Settings, recipes or `runtime.yaml` are wrong."""


class RecipeNotFoundError(ConfigurationError):
    """No file contains the recipe (specification 000, section 18.1)."""


class RecipeValidationError(ConfigurationError):
    """All faults of one recipe file (specification 000, section 18.2)."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class DocumentError(PandoraError):
    """A stored document is missing (`missing`) or damaged."""

    def __init__(self, message: str, *, missing: bool = False, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.missing = missing


class OriginalsDeletedError(DocumentError):
    """The originals of an archived turn were deleted by rule, as a tombstone records; its compressed documents exist."""


class BudgetError(PandoraError):
    """The required parts of a call exceed a token budget by `over` tokens."""

    def __init__(self, message: str, *, over: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.over = over


class FactLossError(BudgetError):
    """A text fits its budget only without a fact that must be kept, so it is not compressed."""


class StoreError(PandoraError):
    """The disk or the index refused."""


class TurnChangedError(StoreError):
    """A turn changed, or was erased, while a tool of it ran without its lock: what the tool found is dropped."""


class DamagedIndexError(StoreError):
    """An index that is damaged or has another schema; it can be rebuilt from the documents."""


class OldIndexError(DamagedIndexError):
    """An index of an older schema."""


class ModelError(PandoraError):
    """A call of a model failed; `queued_ms` and `tokens` are what it cost."""

    queued_ms: float = 0.0
    """Milliseconds in the admission queue of the server."""
    retry_after_s: float = 0.0
    """Seconds after which the server asks for a retry; 0 where it does not say."""
    tokens: tuple[int, int, int] = (0, 0, 0)
    """Prompt, output and cached tokens, where the server counted them in spite of the failure."""


class RuntimeUnreachableError(ModelError):
    """No usable answer from the endpoint: refused, reset, 5xx."""

    retryable = True


class RateLimitedError(RuntimeUnreachableError):
    """The endpoint answers that there are too many calls (429)."""


class EndpointFullError(RuntimeUnreachableError):
    """The endpoint has no capacity (503), also after the longest wait for it."""

    retryable = False


class EndpointDownError(RuntimeUnreachableError):
    """The circuit is open: the endpoint was unreachable many times in a row; nothing was sent."""

    retryable = False


class ModelTimeoutError(ModelError):
    """The call took longer than its recipe allows."""

    retryable = True


class ModelRejectedError(ModelError):
    """The endpoint refused the request itself; the same request fails again."""

    refused_body: str = ""
    """What the server answered to a request that it does not take as it is, in lower case; never shown: it may quote the prompt."""


class BadAnswerError(ModelError):
    """The model answered, but not in the format that its recipe requires."""

    retryable = True


class FetchError(PandoraError):
    """A page of the web was not read; the message names the address."""


class FetchRefusedError(FetchError):
    """A rule of this program forbids the request, or what the server sends; `rule` names it in one or two words."""

    def __init__(self, message: str, *, rule: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.rule = rule


class FetchFailedError(FetchError):
    """The server or the network did not deliver a page."""

    def __init__(self, message: str, *, retryable: bool = False, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retryable = retryable


class BrowserError(PandoraError):
    """A page was not rendered: Chromium is missing, crashed, or did not end in time."""


class DeferredError(PandoraError):
    """A summarization call over the limits of its session, to be made later: decision 7 (docs/decisions/07-levels-link-every-fact.md)."""

    retryable = True


class HaltError(PandoraError):
    """The work stops; `intervention_id` names the record with the reason."""

    def __init__(self, message: str, *, intervention_id: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.intervention_id = intervention_id
