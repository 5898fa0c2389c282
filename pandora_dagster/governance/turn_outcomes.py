"""Outcomes of the turns that calls belong to, from manifests and corrections, with a cache of the latest turns."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId, turn_number, user_id
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.ports.record_storage import Corrections
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.governance.call_metrics import TurnOutcome

_CACHED_TURNS = 10_000
"""Turns whose outcome is cached: calls of a turn come close together."""
_VALIDATION = "validation"
"""The phase that may send an answer back."""


@dataclass(slots=True)
class TurnOutcomes:
    """Outcomes of turns, each read once."""

    manifest: Callable[[TurnKey], Manifest]
    corrections: Corrections
    _turns: OrderedDict[tuple[str, str, int], TurnOutcome | None] = field(
        default_factory=OrderedDict[tuple[str, str, int], TurnOutcome | None]
    )
    _corrected: dict[str, frozenset[tuple[str, int]]] = field(default_factory=dict[str, frozenset[tuple[str, int]]])

    def outcome_of(self, record: CallRecord) -> TurnOutcome | None:
        """The outcome of a call's turn; None without a turn, and for a turn that is open, missing, damaged, or has a newer revision."""
        if not record.turn_id:
            return None
        key = (record.user_id, record.turn_id, record.revision)
        if key not in self._turns:
            self._turns[key] = self._read(record)
            if len(self._turns) > _CACHED_TURNS:
                self._turns.popitem(last=False)
        return self._turns[key]

    def _read(self, record: CallRecord) -> TurnOutcome | None:
        try:
            user = user_id(record.user_id)
            manifest = self.manifest(TurnKey(user, turn_number(record.turn_id)))
        except (DocumentError, InputError):
            return None
        if manifest.revision != record.revision or manifest.state is TurnState.OPEN:
            return None
        corrected = (record.turn_id, record.revision) in self._corrections_of(user)
        return TurnOutcome(manifest.state is not TurnState.HALTED, _sent_back(manifest), corrected)

    def _corrections_of(self, user: UserId) -> frozenset[tuple[str, int]]:
        if user not in self._corrected:
            self._corrected[user] = frozenset((c.turn_id, c.revision) for c in self.corrections.of_user(user))
        return self._corrected[user]


def _sent_back(manifest: Manifest) -> bool:
    reports = [phase.report for phase in manifest.phases if phase.phase == _VALIDATION]
    return any(cast("Mapping[str, object]", report.get("facts", {})).get("revisions") for report in reports)
