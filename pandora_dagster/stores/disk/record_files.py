"""`RecordFiles`: the store of one kind of files that hold one JSON object of a known shape."""

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.ports.object_storage import Lease, Storage
from pandora_dagster.errors import BadIdError, DocumentError
from pandora_dagster.stores.disk.file_blobs import disk_storage
from pandora_dagster.stores.disk.files import decode_text, encode_text

M = TypeVar("M", bound=BaseModel)
StorageRoot = Path | Storage
"""The root of a store on disk, or other storage."""
_FIELD = re.compile(r"\{(\w+)\}")
_PART = re.compile(r"[^/.\x00][^/\x00]*")


class RecordFiles(Generic[M]):
    """Records of one kind, one JSON file each, written whole or not at all.

    `pattern`: the path of a record below the root. Its fields, such as `users/{user}/digest.json`, are in their order the key of a
    record; `{user}` is a user id. `names`: field -> regular expression of the names that a listing finds. `lock`: the pattern of the lock
    file, `.<name>.lock` beside the record unless given. A damaged record raises DocumentError with `expected` and `hint`.
    """

    def __init__(
        self,
        storage: StorageRoot,
        pattern: str,
        shape: type[M],
        *,
        expected: str,
        hint: str = "",
        names: Mapping[str, str] | None = None,
        exclude_defaults: bool = False,
        lock: str = "",
        lock_seconds: float = 10.0,
    ) -> None:
        store = storage_of(storage)
        self._blobs, self._locks = store.blobs, store.locks
        self._pattern, self._shape, self._expected, self._hint = pattern, shape, expected, hint
        self._exclude_defaults, self._lock_seconds = exclude_defaults, lock_seconds
        folder, slash, name = pattern.rpartition("/")
        self._lock = lock or f"{folder}{slash}.{name}.lock"
        self._fields = _FIELD.findall(pattern)
        named = names or {}
        self._path = re.compile(_FIELD.sub(lambda found: f"({named.get(found[1], '[^/]+')})", pattern.replace(".", r"\.")))

    def find(self, *key: str) -> M | None:
        """The record, None where there is none; raises DocumentError for a damaged one."""
        try:
            data = self._blobs.get(path := self._filled(self._pattern, key)).data
        except DocumentError as error:
            if error.missing:
                return None
            raise
        where = self._blobs.locate(path)
        try:
            return self._shape.model_validate_json(decode_text(data, where))
        except ValidationError as error:
            fault = error.errors()[0]
            field = ".".join(map(str, fault["loc"]))
            raise DocumentError(f"{where}: {field}: {fault['msg']}: expected {self._expected}", hint=self._hint) from error

    def put(self, record: M, *key: str, durable: bool = True) -> M:
        """Write a record in the place of an older one and return it; raises StoreError."""
        path = self._filled(self._pattern, key)
        self._blobs.put(path, self.encoded(record), durable=durable)
        return record

    def exists(self, *key: str) -> bool:
        """Whether there is a record, also a damaged one."""
        return self._blobs.exists(self._filled(self._pattern, key))

    def delete(self, *key: str) -> bool:
        """Delete a record, also a damaged one; False where there is none. Raises StoreError."""
        return self._blobs.delete(self._filled(self._pattern, key))

    def list_keys(self, *start: str) -> Iterator[tuple[str, ...]]:
        """The keys that begin with `start`, in the order of the paths; no record is read."""
        prefix = self._filled(self._pattern, start, up_to=True)
        for blob in self._blobs.list(prefix):
            if found := self._path.fullmatch(blob.key):
                yield found.groups()

    def all(self, *start: str) -> Iterator[M]:
        """The records whose keys begin with `start`, in the order of the paths; raises DocumentError for a damaged one."""
        for key in self.list_keys(*start):
            if record := self.find(*key):
                yield record

    def erase(self, user: str) -> int:
        """Delete every record of a user, also damaged ones; returns how many. For patterns whose first field is `{user}`."""
        return sum(self.delete(*key) for key in list(self.list_keys(user)))

    def lock(self, *key: str, what: str, wait_s: float | None = None) -> AbstractContextManager[Lease]:
        """Hold the lock of a record; raises StoreError where another process works on `what` too long."""
        name = self._filled(self._lock, key)
        return self._locks.lease(name, what=what, wait_s=self._lock_seconds if wait_s is None else wait_s)

    def encoded(self, record: M) -> bytes:
        """The bytes of a record as `put` writes them; raises DocumentError where they could not be read back."""
        text = record.model_dump_json(indent=1, exclude_defaults=self._exclude_defaults) + "\n"
        return encode_text(self._pattern.rpartition("/")[2], text)

    def damaged(self, fault: str, *key: str) -> DocumentError:
        """The error for a record whose content contradicts its key or itself."""
        return DocumentError(f"{self.locate(*key)}: {fault}", hint=self._hint)

    def locate(self, *key: str) -> str:
        """The place of a record for messages."""
        return self._blobs.locate(self._filled(self._pattern, key))

    def _filled(self, pattern: str, key: tuple[str, ...], *, up_to: bool = False) -> str:
        values = dict(zip(self._fields, key, strict=not up_to))
        for field, part in values.items():
            if field == "user":
                user_id(part)
            elif f"{{{field}}}" in pattern and not _PART.fullmatch(part):
                raise BadIdError(f"{field} {part[:100]!r}: expected a name without a slash that starts with no dot")
        if up_to and len(key) < len(self._fields):
            pattern = pattern.partition(f"{{{self._fields[len(key)]}}}")[0]
        return pattern.format_map(values)


def storage_of(storage: StorageRoot) -> Storage:
    """The storage itself, or that of a root on disk."""
    return disk_storage(storage) if isinstance(storage, Path) else storage
