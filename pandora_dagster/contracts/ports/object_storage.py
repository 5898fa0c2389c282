"""Ports of plain storage: whole objects by key, locks by name. A directory, an object store or a database can implement them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from pandora_dagster.errors import StoreError


@dataclass(frozen=True, slots=True)
class Blob:
    """The bytes of an object, and the version that `put` compares with `if_match`."""

    data: bytes
    version: str


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """What a listing reports of an object; `size` in bytes, `modified_at` in UTC."""

    key: str
    size: int
    modified_at: datetime


class Blobs(Protocol):
    """Objects by key. A key is a relative POSIX path; no part of it is empty or starts with a dot, else InputError.

    A reader sees the old bytes of an object or the new ones, never a part. Storage that fails raises StoreError.
    """

    def put(self, key: str, data: bytes, *, create_only: bool = False, if_match: str | None = None, durable: bool = True) -> str | None:
        """Write an object and return its version; None, and nothing is written, where the condition does not hold.

        `create_only`: there is no object yet. `if_match`: the object has this version; such writers of one key exclude each other.
        `durable=False`: return before the bytes survive a power failure.
        """
        ...

    def get(self, key: str) -> Blob:
        """The object; raises DocumentError (`missing` where there is none)."""
        ...

    def exists(self, key: str) -> bool: ...
    def list(self, prefix: str) -> Iterator[BlobInfo]:
        """Every object whose key starts with `prefix`, by key; nothing where there is none."""
        ...

    def delete(self, key: str) -> bool:
        """Remove an object; False where there is none."""
        ...

    def locate(self, key: str) -> str:
        """The place of an object for messages: a path or a URL."""
        ...


class Lease(Protocol):
    """A lock that is held."""

    def number(self) -> int:
        """The fencing number: greater than every number that an earlier lease of this lock gave. The same for each call on one lease."""
        ...


class Locks(Protocol):
    """Locks by name, between threads, processes and, where the adapter reaches so far, machines. A holder that dies loses its lease."""

    def lease(self, name: str, *, what: str, wait_s: float) -> AbstractContextManager[Lease]:
        """Hold the lock `name`; raises StoreError where another holds it longer than `wait_s`. `what` names the work in messages."""
        ...


@dataclass(frozen=True, slots=True)
class Storage:
    """The objects and the locks of one store."""

    blobs: Blobs
    locks: Locks


class IndexFile(Protocol):
    """The file of an index that can be rebuilt."""

    @property
    def path(self) -> Path: ...
    def exists(self) -> bool: ...
    def fault(self) -> StoreError | None:
        """Why a file that exists cannot be used; None where it can."""
        ...
