"""Dry runs: calls on a chosen version that store no record, copy or intervention."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count

from pandora_dagster.contracts.enums import ContentType, InterventionType, ModelLayer
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.interventions import Intervention, ResolutionKind
from pandora_dagster.contracts.model_calls import CallRecord, CallResult, TurnUsage
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.recipe_schema import CallInput, LoadedRecipe
from pandora_dagster.errors import DocumentError, HaltError, InputError
from pandora_dagster.execution.call.executor import Executor
from pandora_dagster.execution.call.recorded_inputs import replay_request
from pandora_dagster.execution.call_faults import CallFault

NO_USER = "nobody"
"""The user of calls that are made for no user."""
_MAX_ANSWERS = 256
"""Raw answers in memory: far more than calls that run at the same time, whose answers are read."""


@dataclass(slots=True)
class PinnedRecipeLoader:
    """A recipe catalog with one recipe in a chosen version, all others from `others`."""

    others: RecipeCatalog
    chosen: LoadedRecipe | None = None

    def load(self, name: str) -> LoadedRecipe:
        if self.chosen is not None and name == self.chosen.path:
            return self.chosen
        return self.others.load(name)

    def get(self, phase: str, mode: str) -> LoadedRecipe:
        if self.chosen is not None and phase == self.chosen.path:
            return self.chosen
        return self.others.get(phase, mode)

    def names(self) -> tuple[str, ...]:
        return self.others.names()

    def compressor(self, content_type: ContentType) -> LoadedRecipe:
        return self.others.compressor(content_type)


def _refuse_image(ref: str) -> bytes:
    raise DocumentError(f"image {ref[:120]}: missing: expected a vault to read it from", missing=True)


@dataclass(slots=True)
class CallCapture:
    """Implements the ports CallLog, Vault and Interventions in memory, for the calls that are running."""

    records: dict[str, CallRecord] = field(default_factory=dict[str, CallRecord])
    """Session -> record; each dry run has its own session. A call's own record comes after those of its compressions."""
    answers: dict[str, str] = field(default_factory=dict[str, str])
    """Hash -> answer, the newest ones."""
    read_image: Callable[[str], bytes] = _refuse_image
    """Reads the images of recorded calls."""

    def begin(self, record: CallRecord) -> None:
        """Stores nothing: a dry run leaves no record."""

    def append(self, record: CallRecord) -> None:
        self.records[record.session_id] = record

    def usage(self, key: TurnKey, revision: int, *, phase: str) -> TurnUsage:
        return TurnUsage()

    def index_turns(self, turns: Sequence[tuple[TurnKey, int]]) -> bool:
        return True

    def keep(self, user: str, kind: str, text: str) -> str:
        if kind != "answer":
            return ""
        ref = sha256(text.encode(errors="replace")).hexdigest()
        self.answers[ref] = text
        if len(self.answers) > _MAX_ANSWERS:
            del self.answers[next(iter(self.answers))]
        return ref

    def read(self, ref: str) -> str:
        return self.answers.get(ref, "")

    def keep_image(self, user: str, data: bytes) -> str:
        return ""

    def open(self, type: InterventionType, message: str, **fields: str) -> Intervention:
        known_fields = {name: value for name, value in fields.items() if name in Intervention.model_fields}
        return Intervention.model_validate(
            {**known_fields, "id": f"aside_{secrets.token_hex(4)}", "type": type, "message": message, "created_at": ""}
        )

    def show(self, intervention_id: str) -> Intervention:
        raise InputError(f"intervention {intervention_id}: not stored: expected one of a turn, not of a dry run")

    def list(self, *, state: str | None = None, user: str | None = None) -> tuple[Intervention, ...]:
        return ()

    def resolve(self, intervention_id: str, resolution: str, *, how: ResolutionKind = "noted") -> Intervention:
        return self.show(intervention_id)


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The result of one call: its record, its raw answer, the parsed answer where it passed, else the failure."""

    record: CallRecord | None
    raw: str
    result: CallResult | None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class DryRunExecutor:
    """Runs calls on one version at a time, which `select_version` chooses."""

    execution: Executor
    recipes: PinnedRecipeLoader
    capture: CallCapture
    session_numbers: Iterator[int] = field(default_factory=count)

    def select_version(self, version: LoadedRecipe) -> None:
        """Choose the version of the next calls."""
        self.recipes.chosen = version
        self.capture.records.clear()
        self.capture.answers.clear()

    async def run_case(self, case: CallInput, *, user: str = NO_USER, layer: ModelLayer | None = None) -> DryRunResult:
        """Run one call of the chosen version; a failure is returned, not raised. `layer`: used instead of the version's."""
        if self.recipes.chosen is None:
            raise ValueError("no version is chosen: expected `select_version` before")
        session = f"try_{next(self.session_numbers)}"
        try:
            result = await self.execution.attempt(replay_request(case, self.recipes.chosen.path, user=user, session=session, layer=layer))
        except HaltError as halt:
            result = CallFault(InterventionType.BUDGET_EXCEEDED, str(halt))
        record = self.capture.records.pop(session, None)
        raw = self.capture.read(record.answer_ref) if record else ""
        if isinstance(result, CallResult):
            return DryRunResult(record, raw, result)
        return DryRunResult(record, raw, None, f"{result.type}: {result.message}")
