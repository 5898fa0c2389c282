"""The HostRecords port: one small file and one lock for each host, named by a digest of the host."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pandora_dagster.contracts.web.fetched import HostRecord
from pandora_dagster.errors import DocumentError, FetchFailedError, StoreError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import read_bytes, sha, write_atomic

_MAX_RECORD_BYTES = 4 * 1024 * 1024


class _HostHold:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._record = _read(path)

    @property
    def record(self) -> HostRecord:
        return self._record

    @record.setter
    def record(self, record: HostRecord) -> None:
        if record != self._record:
            write_atomic(self._path, record.model_dump_json().encode(), durable=False)
        self._record = record


@dataclass(frozen=True, slots=True)
class HostFiles:
    """The hosts that the processes of one store send requests to, in `<root>/web/hosts`."""

    root: Path

    @contextmanager
    def hold(self, host: str, *, wait_s: float) -> Generator[_HostHold]:
        path = self.root / "web" / "hosts" / f"{sha(host)[:24]}.json"
        with ExitStack() as stack:
            try:
                stack.enter_context(file_lock(path.with_suffix(".lock"), what=f"requests to {host}", seconds=wait_s))
            except StoreError as error:
                raise FetchFailedError(f"{host}: {error}", retryable=True) from error
            yield _HostHold(path)

    def sweep(self, *, before: float) -> None:
        """Delete the records of hosts that were last asked before the Unix time `before`, and their locks; one that is held stays."""
        with suppress(OSError):
            for lock in (self.root / "web" / "hosts").glob("*.lock"):
                record = lock.with_suffix(".json")
                if max(_changed_at(record), _changed_at(lock)) >= before:
                    continue
                with suppress(StoreError), file_lock(lock, what="an old record", seconds=0):
                    record.unlink(missing_ok=True)
                    lock.unlink(missing_ok=True)


def _changed_at(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0


def _read(path: Path) -> HostRecord:
    """The stored record; an empty one where there is none or a damaged one."""
    try:
        return HostRecord.model_validate_json(read_bytes(path, limit=_MAX_RECORD_BYTES))
    except (DocumentError, ValidationError):
        return HostRecord()
