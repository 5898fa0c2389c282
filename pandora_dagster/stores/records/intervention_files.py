"""Interventions: one JSON file each (DECISIONS 14). Knows how they are named, written and found; not why a turn halts."""

import re
from collections.abc import Callable
from pathlib import Path

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.interventions import Intervention, ResolutionKind
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import encode_text, path_inside, write_atomic
from pandora_dagster.stores.disk.json_files import read_json_record
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.turns.commits import iso

_ID = re.compile(r"int_[0-9]{8}_[0-9]{6}_[0-9a-f]{4,12}")


class InterventionFiles:
    """The Interventions port over `<root>/interventions/`. `random_hex(n)` gives n bytes as hex (`secrets.token_hex`)."""

    def __init__(self, root: Path, *, clock: Clock, random_hex: Callable[[int], str]) -> None:
        self._layout = Layout(root)
        self._clock = clock
        self._random_hex = random_hex

    def open(self, type: InterventionType, message: str, **fields: str) -> Intervention:
        """Write a new intervention, on the disk when this returns; its message is kept without credentials."""
        now = self._clock()
        with file_lock(self._layout.interventions / ".lock", what="interventions", seconds=10.0):
            number = self._free(f"int_{now.strftime('%Y%m%d_%H%M%S')}")
            new = Intervention.model_validate(
                {**fields, "id": number, "type": type, "message": redact(message), "created_at": iso(now)},
            )
            self._write(new)
        return new

    def show(self, intervention_id: str) -> Intervention:
        """One intervention; raises InputError where there is none, DocumentError where its file is damaged."""
        path = self._path(intervention_id)
        try:
            return self._read(path)
        except DocumentError as error:
            if error.missing:
                raise InputError(f"intervention {intervention_id}: there is no {path}: expected one that exists") from error
            raise

    def list(self, *, state: str | None = None, user: str | None = None) -> tuple[Intervention, ...]:
        """Oldest first; raises DocumentError naming a damaged file, since a halt must not be overlooked."""
        folder = path_inside(self._layout.root, self._layout.interventions)
        paths = sorted(folder.glob("int_*.json")) if folder.is_dir() else []
        found = tuple(self._read(path) for path in paths)
        return tuple(i for i in found if state in (None, i.state) and user in (None, i.user_id))

    def resolve(self, intervention_id: str, resolution: str, *, how: ResolutionKind = "noted") -> Intervention:
        """Close an intervention with what a person decided, beside what was noted of it before; raises InputError where anything was
        done about it already: that stands. What a person decided takes the place of that the turn went on."""
        with file_lock(self._layout.interventions / ".lock", what="interventions", seconds=10.0):
            known = self.show(intervention_id)
            if known.resolution_notice and known.how != "went_on":
                raise InputError(f"{known.resolution_notice}: expected an open one", hint="pandora interventions list names those that are")
            told = "; ".join(text for text in (known.resolution, redact(resolution)) if text)
            fields = {"state": "resolved", "resolution": told, "how": how, "resolved_at": iso(self._clock())}
            changed = known.model_copy(update=fields)
            self._write(changed)
        return changed

    def _free(self, stem: str) -> str:
        while True:
            number = f"{stem}_{self._random_hex(2)}"
            if not self._path(number).exists():
                return number

    def _path(self, intervention_id: str) -> Path:
        if not _ID.fullmatch(intervention_id):
            raise InputError(f"intervention {intervention_id[:60]!r}: expected an id like int_20260104_143000_1a2b")
        return path_inside(self._layout.root, self._layout.interventions / f"{intervention_id}.json")

    def _read(self, path: Path) -> Intervention:
        found = read_json_record(path_inside(self._layout.root, path), Intervention, expected="an intervention")
        if found.id != path.stem:
            raise DocumentError(f"{path}: it holds intervention {found.id}: expected {path.stem}")
        return found

    def _write(self, intervention: Intervention) -> None:
        path = self._path(intervention.id)
        write_atomic(path, encode_text(path.name, intervention.model_dump_json(indent=1) + "\n"))
