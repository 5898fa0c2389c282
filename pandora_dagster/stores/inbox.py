"""The folder where files of queries are put: `<root>/inbox/`. Knows which are whole, and where finished ones go; not what they say.

A file is whole when two looks at it, a while apart, find the same size and time. What begins with a dot is somebody's temporary file.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pandora_dagster.contracts.batches import RejectedLine
from pandora_dagster.errors import InputError
from pandora_dagster.stores.files import disk_errors, path_inside, make_folder, sync, write_atomic

LARGEST = 256 * 1024 * 1024
"""Bytes of a file of queries."""
_SUFFIX, _REJECTED = ".jsonl", ".rejected.jsonl"


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A file in the inbox as one look finds it."""

    name: str
    size: int
    modified_ns: int

    @property
    def fingerprint(self) -> str:
        """What stays the same while nobody writes."""
        return f"{self.size}:{self.modified_ns}"


class Inbox:
    """The inbox of one store."""

    def __init__(self, root: Path) -> None:
        self._root, self.folder = root, root / "inbox"

    def files(self) -> tuple[WaitingFile, ...]:
        """What waits there, by name; links are left alone."""
        if not self.folder.is_dir():
            return ()
        with disk_errors(self.folder, "cannot list"):
            paths = sorted(path for path in self.folder.iterdir() if _is_queries(path))
            looks = [(path.name, path.stat()) for path in paths if path.is_file() and not path.is_symlink()]
        return tuple(WaitingFile(name, look.st_size, look.st_mtime_ns) for name, look in looks)

    def path(self, name: str) -> Path:
        """A file that waits there; raises InputError for any other name."""
        if name not in {waiting.name for waiting in self.files()}:
            raise InputError(f"{self.folder}: {name[:100]!r}: expected the name of a .jsonl file that waits there")
        return path_inside(self._root, self.folder / name)

    def finish(self, name: str, day: str, digest: str, rejected: Sequence[RejectedLine] = ()) -> Path | None:
        """Move a file to `done/<day>/`, where its rejected lines lie before it does: cut off in between, the file still waits, and its
        batch writes them again. One of that name that lies there already keeps its own. Returns where the rejected lines are."""
        source, folder = self.path(name), self.folder / "done" / day
        with disk_errors(folder):
            make_folder(path_inside(self._root, folder))
            target = folder / name
            if target.exists():
                target = folder / f"{name.removesuffix(_SUFFIX)}.{digest[:12]}{_SUFFIX}"
            beside = keep_rejected(target, rejected)
            source.replace(target)
            sync(folder)
            sync(self.folder)
        return beside


def queries_of(path: Path) -> bytes:
    """The bytes of a file of queries; raises InputError for one that can not be read or is larger than any such file."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}: expected queries as JSON lines") from error
    if len(data) > LARGEST:
        raise InputError(f"{path}: over {LARGEST:,} bytes: expected at most that; several files are as good")
    return data


def digest_of(data: bytes) -> str:
    """What two files of the same queries share."""
    return sha256(data).hexdigest()


def keep_rejected(path: Path, rejected: Sequence[RejectedLine]) -> Path | None:
    """Write the rejected lines of the file `path` beside it, each with its reason; None where there are none."""
    if not rejected:
        return None
    beside = path.with_name(path.name.removesuffix(_SUFFIX) + _REJECTED)
    rows: list[Mapping[str, object]] = [line.model_dump() for line in rejected]
    write_atomic(beside, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(errors="replace"))
    return beside


def _is_queries(path: Path) -> bool:
    return path.name.endswith(_SUFFIX) and not path.name.endswith(_REJECTED) and not path.name.startswith(".")
