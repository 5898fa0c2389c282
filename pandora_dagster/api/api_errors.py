"""What is answered in place of an answer: OpenAI's error bodies with their status. Knows no request and no turn."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.errors import ConfigurationError, InputError, PandoraError

_STATUS_OF_HALT = {
    InterventionType.RUNTIME_UNREACHABLE: 503,
    InterventionType.TIMEOUT: 504,
    InterventionType.SCHEMA_VIOLATION: 502,
    InterventionType.LOW_CONFIDENCE: 502,
    InterventionType.MISSING_EVIDENCE: 502,
    InterventionType.BUDGET_EXCEEDED: 413,
    InterventionType.FACT_LOSS: 413,
}
"""502: the model's answers did not pass; 413: what was asked does not fit. Whatever else halts a turn lies on this machine: 500."""


class ApiError(Exception):
    """A request that gets no answer. `headers` go out with it."""

    def __init__(
        self, status: int, message: str, *, type: str = "invalid_request_error", param: str | None = None, code: str | None = None,
        headers: Mapping[str, str] | None = None, **more: str,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status = status
        self.headers = {**_NO_RETRY, **(headers or {})} if status >= 500 else dict(headers or {})
        self.body: dict[str, Any] = {"error": {"message": message, "type": type, "param": param, "code": code, **more}}


_NO_RETRY = {"x-should-retry": "false"}
"""A client that tries again by itself would begin another turn."""


@dataclass(frozen=True, slots=True)
class TurnHalt:
    """A turn that stopped before its answer."""

    key: TurnKey
    intervention: Intervention

    def api_error(self) -> ApiError:
        halt = self.intervention
        return ApiError(
            _STATUS_OF_HALT.get(halt.type, 500),
            f"HALT at {halt.phase}: {halt.message} (intervention {halt.id}; pandora resume {self.key} goes on)",
            type="halted",
            code=halt.type.value,
            headers={"X-Pandora-Turn": str(self.key), "X-Pandora-Intervention": halt.id},
            intervention_id=halt.id,
            turn=str(self.key),
        )


@dataclass(frozen=True, slots=True)
class TurnFailure:
    """A turn that could not begin, or that an error cut off; `key` once it had begun."""

    error: Exception
    key: TurnKey | None = field(default=None)

    def api_error(self) -> ApiError:
        if isinstance(self.error, ApiError):
            return self.error
        headers = {"X-Pandora-Turn": str(self.key)} if self.key else {}
        if isinstance(self.error, InputError):
            return ApiError(400, self.error.with_hint, headers=headers)
        known = isinstance(self.error, PandoraError)
        told = self.error.with_hint if isinstance(self.error, PandoraError) else "an error inside; it stands in the server's log"
        code = "config_error" if isinstance(self.error, ConfigurationError) else "failed" if known else "internal_error"
        return ApiError(500, f"{self.key}: {told}" if self.key else told, type="server_error", code=code, headers=headers)
