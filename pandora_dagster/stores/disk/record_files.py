"""`RecordFiles`: the records of one type, each as a JSON file whose path is made from the record's key."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.ports.object_storage import BlobInfo, Lease, Storage
from pandora_dagster.errors import BadIdError, DocumentError
from pandora_dagster.stores.disk.file_blobs import disk_storage
from pandora_dagster.stores.disk.files import decode_text, encode_text

M = TypeVar("M", bound=BaseModel)
StorageRoot = Path | Storage
"""The root of a store on disk, or other storage."""
_PATTERN_FIELD = re.compile(r"\{(\w+)\}")
_PATH_PART = re.compile(r"[^/.\x00][^/\x00]*")


class RecordFiles(Generic[M]):
    """Records of one type, one JSON file each, written whole or not at all.

    `pattern`: the path of a record below the root, such as `users/{user}/notes/{id}.json`; the values of its fields, in their order, are
    the key of a record. `{user}` is a user id. `names`: field -> regular expression of the names that a listing finds. `lock`: the pattern
    of the lock file, by default `.<name>.lock` beside the record. A damaged record raises DocumentError with `expected` and `hint`.
    """

    def __init__(
        self,
        storage: StorageRoot,
        pattern: str,
        record_type: type[M],
        *,
        expected: str,
        hint: str = "",
        names: Mapping[str, str] | None = None,
        exclude_defaults: bool = False,
        lock: str = "",
        lock_seconds: float = 10.0,
    ) -> None:
        opened = storage_of(storage)
        self._blobs, self._locks = opened.blobs, opened.locks
        self._pattern, self._record_type, self._expected, self._hint = pattern, record_type, expected, hint
        self._exclude_defaults, self._lock_seconds = exclude_defaults, lock_seconds
        folder, slash, name = pattern.rpartition("/")
        self._lock = lock or f"{folder}{slash}.{name}.lock"
        self._fields = _PATTERN_FIELD.findall(pattern)
        name_expressions = names or {}
        self._path_expression = re.compile(
            _PATTERN_FIELD.sub(lambda field: f"({name_expressions.get(field[1], '[^/]+')})", pattern.replace(".", r"\."))
        )

    def find(self, *key: str) -> M | None:
        """The record, None where there is none; raises DocumentError for a damaged one."""
        try:
            data = self._blobs.get(path := self._fill(self._pattern, key)).data
        except DocumentError as error:
            if error.missing:
                return None
            raise
        where = self._blobs.locate(path)
        try:
            return self._record_type.model_validate_json(decode_text(data, where))
        except ValidationError as error:
            fault = error.errors()[0]
            field = ".".join(map(str, fault["loc"]))
            raise DocumentError(f"{where}: {field}: {fault['msg']}: expected {self._expected}", hint=self._hint) from error

    def put(self, record: M, *key: str, durable: bool = True) -> M:
        """Write a record over an older one and return it; raises StoreError."""
        path = self._fill(self._pattern, key)
        self._blobs.put(path, self.encode(record), durable=durable)
        return record

    def exists(self, *key: str) -> bool:
        """Whether there is a record, also a damaged one."""
        return self._blobs.exists(self._fill(self._pattern, key))

    def delete(self, *key: str) -> bool:
        """Delete a record, also a damaged one; False where there is none. Raises StoreError."""
        return self._blobs.delete(self._fill(self._pattern, key))

    def list_keys(self, *start: str) -> Iterator[tuple[str, ...]]:
        """The keys that begin with `start`, in the order of the paths; no record is read."""
        for blob in self._list(start):
            if match := self._path_expression.fullmatch(blob.key):
                yield match.groups()

    def all(self, *start: str, on_fault: Callable[[DocumentError], None] | None = None) -> Iterator[M]:
        """The records whose keys begin with `start`, in the order of the paths.

        A damaged one goes to `on_fault` as a DocumentError, which is raised where there is none.
        """
        for key in self.list_keys(*start):
            try:
                record = self.find(*key)
            except DocumentError as error:
                if on_fault is None:
                    raise
                on_fault(error)
                continue
            if record:
                yield record

    def delete_older(self, before: datetime, *start: str) -> int:
        """Delete the records whose keys begin with `start` and that were last written before this time; returns their number."""
        return sum(self._blobs.delete(blob.key) for blob in list(self._list(start)) if blob.modified_at < before)

    def erase(self, user: str) -> int:
        """Delete every record of a user, also damaged ones; returns their number. For patterns whose first field is `{user}`."""
        return sum(self.delete(*key) for key in list(self.list_keys(user)))

    def lock(self, *key: str, what: str, wait_s: float | None = None) -> AbstractContextManager[Lease]:
        """Hold the lock of a record; raises StoreError where another process works on `what` too long."""
        name = self._fill(self._lock, key)
        return self._locks.lease(name, what=what, wait_s=self._lock_seconds if wait_s is None else wait_s)

    def encode(self, record: M) -> bytes:
        """The bytes of a record as `put` writes them; raises DocumentError where they could not be read back."""
        text = record.model_dump_json(indent=1, exclude_defaults=self._exclude_defaults) + "\n"
        return encode_text(self._pattern.rpartition("/")[2], text)

    def damaged(self, fault: str, *key: str) -> DocumentError:
        """The error for a record whose content contradicts its key or itself."""
        return DocumentError(f"{self.locate(*key)}: {fault}", hint=self._hint)

    def locate(self, *key: str) -> str:
        """The path of a record, for messages."""
        return self._blobs.locate(self._fill(self._pattern, key))

    def _list(self, start: tuple[str, ...]) -> Iterator[BlobInfo]:
        blobs = self._blobs.list(self._fill(self._pattern, start, as_prefix=True))
        return (blob for blob in blobs if self._path_expression.fullmatch(blob.key))

    def _fill(self, pattern: str, key: tuple[str, ...], *, as_prefix: bool = False) -> str:
        """`pattern` with the values of `key`; `as_prefix`: the key may be shorter; the result ends before the first field without value.

        Raises BadIdError for a value that cannot be part of a path.
        """
        values = dict(zip(self._fields, key, strict=not as_prefix))
        for field, value in values.items():
            if field == "user":
                user_id(value)
            elif f"{{{field}}}" in pattern and not _PATH_PART.fullmatch(value):
                raise BadIdError(f"{field} {value[:100]!r}: expected a name without a slash that starts with no dot")
        if as_prefix and len(key) < len(self._fields):
            pattern = pattern.partition(f"{{{self._fields[len(key)]}}}")[0]
        return pattern.format_map(values)


def storage_of(storage: StorageRoot) -> Storage:
    """The storage itself, or that of a root on disk."""
    return disk_storage(storage) if isinstance(storage, Path) else storage
