"""Holds: `hold.json` beside a turn's first manifest. Knows the file; what a hold keeps off is decided elsewhere."""

from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.contracts.archive_records import Hold
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.stores.disk.files import disk_errors, path_inside, sync, write_atomic
from pandora_dagster.stores.disk.json_files import find_json_record
from pandora_dagster.stores.disk.layout import HOLD, Layout


@dataclass(frozen=True, slots=True)
class HoldFiles:
    """The Holds port below one store root; the turn must be there."""

    root: Path

    def find(self, key: TurnKey) -> Hold | None:
        """Raises DocumentError for a damaged one: it may be a pin."""
        return find_json_record(self._path(key), Hold, expected="a hold", hint="remove the file to let the turn be archived")

    def put(self, key: TurnKey, hold: Hold) -> None:
        """In the place of an older one, on the disk when this returns; raises StoreError."""
        write_atomic(self._path(key), (hold.model_dump_json(indent=1) + "\n").encode())

    def remove(self, key: TurnKey) -> bool:
        """True where there was one; raises StoreError."""
        path = self._path(key)
        with disk_errors(path, "cannot remove"):
            if not path.exists():
                return False
            path.unlink()
            sync(path.parent)
        return True

    def _path(self, key: TurnKey) -> Path:
        return path_inside(self.root, Layout(self.root).turn(key) / HOLD)
