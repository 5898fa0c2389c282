"""Error responses: OpenAI's error bodies with their HTTP status."""

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
    InterventionType.MISSING_EVIDENCE: 502,
    InterventionType.BUDGET_EXCEEDED: 413,
    InterventionType.FACT_LOSS: 413,
    InterventionType.NEEDS_APPROVAL: 409,
    InterventionType.NEEDS_PERSON: 409,
}
"""502: the model's answers failed a check; 413: the request does not fit the budget; 409: the user decides first. Any other halt has its
cause on this machine: 500."""

_DECISIONS = {InterventionType.NEEDS_APPROVAL: "--approve", InterventionType.NEEDS_PERSON: "--answer FILE"}
"""The option of `pandora interventions resolve` for a halt that waits for a decision."""


class ApiError(Exception):
    """An error response with its status, headers and body; `fields` are further fields of the body's `error`."""

    def __init__(
        self, status: int, message: str, *, type: str = "invalid_request_error", param: str | None = None, code: str | None = None,
        headers: Mapping[str, str] | None = None, **fields: str,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status = status
        self.headers = {**_NO_RETRY, **(headers or {})} if status >= 500 else dict(headers or {})
        self.body: dict[str, Any] = {"error": {"message": message, "type": type, "param": param, "code": code, **fields}}


_NO_RETRY = {"x-should-retry": "false"}
"""A client that retries automatically would start another turn."""


@dataclass(frozen=True, slots=True)
class TurnHalt:
    """A turn that halted before its answer."""

    key: TurnKey
    intervention: Intervention

    def api_error(self) -> ApiError:
        halt = self.intervention
        way = _DECISIONS.get(halt.type)
        command = f"pandora interventions resolve {halt.id} {way}" if way else f"pandora resume {self.key}"
        return ApiError(
            _STATUS_OF_HALT.get(halt.type, 500),
            f"HALT at {halt.phase}: {halt.message} (intervention {halt.id}; continue with: {command})",
            type="halted",
            code=halt.type.value,
            headers={"X-Pandora-Turn": str(self.key), "X-Pandora-Intervention": halt.id},
            intervention_id=halt.id,
            turn=str(self.key),
        )


@dataclass(frozen=True, slots=True)
class TurnFailure:
    """A turn that could not start, or that an error ended; `key` if it had started."""

    error: Exception
    key: TurnKey | None = field(default=None)

    def api_error(self) -> ApiError:
        if isinstance(self.error, ApiError):
            return self.error
        headers = {"X-Pandora-Turn": str(self.key)} if self.key else {}
        if isinstance(self.error, InputError):
            return ApiError(400, self.error.with_hint, headers=headers)
        if isinstance(self.error, PandoraError):
            message = self.error.with_hint
            code = "config_error" if isinstance(self.error, ConfigurationError) else "failed"
        else:
            message, code = "internal error: see the log of the server", "internal_error"
        return ApiError(500, f"{self.key}: {message}" if self.key else message, type="server_error", code=code, headers=headers)
