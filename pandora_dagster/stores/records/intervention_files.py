"""Interventions: one JSON file each (DECISIONS 14)."""

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
        stem = f"int_{now.strftime('%Y%m%d_%H%M%S')}"
        with self._files.lock(stem, what="interventions"):
            while self._files.exists(number := f"{stem}_{self._random_hex(2)}"):
                pass
            new = Intervention.model_validate(
                {**fields, "id": number, "type": type, "message": redact(message), "created_at": iso(now)},
            )
            return self._files.put(new, number)

    def show(self, intervention_id: str) -> Intervention:
        """One intervention; raises InputError where there is none, DocumentError where its file is damaged."""
        if not _ID.fullmatch(intervention_id):
            raise InputError(f"intervention {intervention_id[:60]!r}: expected an id like int_20260104_143000_1a2b")
        found = self._find(intervention_id)
        if found is None:
            path = self._files.locate(intervention_id)
            raise InputError(f"intervention {intervention_id}: there is no {path}: expected one that exists")
        return found

    def list(self, *, state: str | None = None, user: str | None = None) -> tuple[Intervention, ...]:
        """Oldest first; raises DocumentError naming a damaged file, since a halt must not be overlooked."""
        found = [one for (number,) in self._files.list_keys() if (one := self._find(number))]
        return tuple(i for i in found if state in (None, i.state) and user in (None, i.user_id))

    def resolve(self, intervention_id: str, resolution: str, *, how: ResolutionKind = "noted") -> Intervention:
        """Close an intervention with the user's resolution, appended to what was noted before; raises InputError where it is resolved
        already. A resolution replaces the note that the turn went on."""
        with self._files.lock(intervention_id, what="interventions"):
            known = self.show(intervention_id)
            if known.resolution_notice and known.how != "went_on":
                raise InputError(f"{known.resolution_notice}: expected an open one", hint="pandora interventions list names those that are")
            text = "; ".join(part for part in (known.resolution, redact(resolution)) if part)
            fields = {"state": "resolved", "resolution": text, "how": how, "resolved_at": iso(self._clock())}
            return self._files.put(known.model_copy(update=fields), intervention_id)

    def _find(self, intervention_id: str) -> Intervention | None:
        found = self._files.find(intervention_id)
        if found and found.id != intervention_id:
            raise self._files.damaged(f"it holds intervention {found.id}: expected {intervention_id}", intervention_id)
        return found
