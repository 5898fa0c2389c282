"""The Interventions port: one JSON file for each intervention (decision 14)."""

import re
from collections.abc import Callable

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.interventions import Intervention, ResolutionKind
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import InputError
from pandora_dagster.stores.disk.record_files import RecordFiles, StorageRoot
from pandora_dagster.stores.turns.commits import iso

_ID = re.compile(r"int_[0-9]{8}_[0-9]{6}_[0-9a-f]{4,12}")


class InterventionFiles:
    """The Interventions port over `<root>/interventions/`. `random_hex(n)` gives n bytes as hex (`secrets.token_hex`)."""

    def __init__(self, storage: StorageRoot, *, clock: Clock, random_hex: Callable[[int], str]) -> None:
        pattern, names = "interventions/{id}.json", {"id": "int_[^/]*"}
        self._files = RecordFiles(storage, pattern, Intervention, expected="an intervention", names=names, lock="interventions/.lock")
        self._clock, self._random_hex = clock, random_hex

    def open(self, type: InterventionType, message: str, **fields: str) -> Intervention:
        """Write a new intervention; credentials are removed from its message. Raises StoreError."""
        now = self._clock()
        id_prefix = f"int_{now.strftime('%Y%m%d_%H%M%S')}"
        with self._files.lock(id_prefix, what="interventions"):
            while self._files.exists(intervention_id := f"{id_prefix}_{self._random_hex(2)}"):
                pass
            intervention = Intervention.model_validate(
                {**fields, "id": intervention_id, "type": type, "message": redact(message), "created_at": iso(now)},
            )
            return self._files.put(intervention, intervention_id)

    def show(self, intervention_id: str) -> Intervention:
        """One intervention; raises InputError where there is none, DocumentError where its file is damaged."""
        if not _ID.fullmatch(intervention_id):
            raise InputError(f"intervention {intervention_id[:60]!r}: expected an id like int_20260104_143000_1a2b")
        intervention = self._find(intervention_id)
        if intervention is None:
            path = self._files.locate(intervention_id)
            raise InputError(f"intervention {intervention_id}: there is no {path}: expected one that exists")
        return intervention

    def list(self, *, state: str | None = None, user: str | None = None) -> tuple[Intervention, ...]:
        """The interventions, oldest first; raises DocumentError naming a damaged file, since a halt must not be overlooked."""
        stored = [intervention for (name,) in self._files.list_keys() if (intervention := self._find(name))]
        return tuple(i for i in stored if state in (None, i.state) and user in (None, i.user_id))

    def resolve(self, intervention_id: str, resolution: str, *, how: ResolutionKind = "noted") -> Intervention:
        """Close an intervention with the user's resolution, which is appended to an earlier note.

        Raises InputError where it is resolved already; the note that the turn went on is no resolution.
        """
        with self._files.lock(intervention_id, what="interventions"):
            intervention = self.show(intervention_id)
            if intervention.resolution_notice and intervention.how != "went_on":
                raise InputError(
                    f"{intervention.resolution_notice}: expected an open one", hint="pandora interventions list names those that are"
                )
            text = "; ".join(part for part in (intervention.resolution, redact(resolution)) if part)
            fields = {"state": "resolved", "resolution": text, "how": how, "resolved_at": iso(self._clock())}
            return self._files.put(intervention.model_copy(update=fields), intervention_id)

    def _find(self, intervention_id: str) -> Intervention | None:
        intervention = self._files.find(intervention_id)
        if intervention and intervention.id != intervention_id:
            raise self._files.damaged(f"it holds intervention {intervention.id}: expected {intervention_id}", intervention_id)
        return intervention
