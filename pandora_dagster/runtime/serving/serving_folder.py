"""`<root>/serving`: the files through which `pandora serve` and the processes that make calls communicate.

serving.json      the serving process and the status of each server; rewritten at each change
<name>.log        the output of the server since its start; `<name>.log.1` the output before
<name>.process    the server's process, for the next start
<name>.wanted     touched by a call that needs the server
.lock             held while `pandora serve` runs
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from pandora_dagster.errors import StoreError
from pandora_dagster.runtime.serving.process_guard import end_group, is_group_alive, process_identity

_MAX_FILE_CHARACTERS = 1_000_000
_LOG_TAIL_BYTES = 32_768


class ServerStatus(BaseModel):
    """The status of one server: `state` is a value of `ServerState`, `says` the details for the user."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    state: str
    says: str = ""


class _ProcessRecord(BaseModel):
    """A process on disk; `identity` distinguishes it from a later process with the same number."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    pid: int
    identity: str


class _ServingRecord(_ProcessRecord):
    """The content of `serving.json`."""

    servers: dict[str, ServerStatus]


class ServingFolder:
    """The folder of one store."""

    def __init__(self, root: Path) -> None:
        self.path = root / "serving"

    def log(self, name: str) -> Path:
        return self.path / f"{name}.log"

    def process(self, name: str) -> Path:
        return self.path / f"{name}.process"

    def last_log_lines(self, name: str, lines: int = 12) -> tuple[str, ...]:
        """The last lines of a server's log."""
        try:
            with self.log(name).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
                text = file.read().decode(errors="replace")
        except OSError:
            return ()
        return tuple(line.rstrip() for line in text.splitlines() if line.strip())[-lines:]

    def lock(self) -> FileLock:
        """The lock of serving, held until it is released or the process ends. Raises StoreError where another process holds it."""
        lock = FileLock(self.path / ".lock", timeout=0)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            serving = self._serving_record()
            holder = f" (process {serving.pid})" if serving else ""
            raise StoreError(f"{self.path}: pandora serve runs over this store already{holder}", hint="End it first, or use it.") from None
        except OSError as fault:
            raise StoreError(f"{self.path}: cannot lock: {fault.strerror or fault}") from fault
        return lock

    def write_statuses(self, statuses: Mapping[str, ServerStatus]) -> None:
        """Write this process and the statuses of all servers."""
        record = _ServingRecord(pid=os.getpid(), identity=process_identity(os.getpid()), servers=dict(statuses))
        path = self.path / "serving.json"
        temporary = path.with_name("serving.json.part")
        try:
            temporary.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
            temporary.replace(path)
        except OSError as fault:
            raise StoreError(f"{path}: cannot write: {fault.strerror or fault}") from fault

    def clear(self) -> None:
        """Remove the statuses. To be called with the lock held, when serving ends."""
        (self.path / "serving.json").unlink(missing_ok=True)

    def statuses(self) -> dict[str, ServerStatus] | None:
        """The statuses of the servers, None where no `pandora serve` runs over this store."""
        serving = self._serving_record()
        return serving.servers if serving and _is_same_process(serving.pid, serving.identity) else None

    def _serving_record(self) -> _ServingRecord | None:
        """The content of `serving.json`; None where there is none, or it is damaged."""
        text = _read(self.path / "serving.json")
        try:
            return _ServingRecord.model_validate_json(text) if text else None
        except ValidationError:
            return None

    def request_start(self, name: str) -> None:
        """Record that a call needs this server now; raises StoreError."""
        path = self.path / f"{name}.wanted"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError as fault:
            raise StoreError(f"{path}: cannot touch: {fault.strerror or fault}") from fault

    def start_requested_at(self, name: str) -> float:
        """When a call last needed this server, in seconds since 1970; 0 for never."""
        try:
            return (self.path / f"{name}.wanted").stat().st_mtime
        except OSError:
            return 0.0

    def end_orphans(self, grace_s: float, *, on_orphan: Callable[[str], None] = lambda name: None) -> None:
        """End servers that outlived their `pandora serve`. To be called with the lock held."""
        for path in sorted(self.path.glob("*.process")):
            if _running_group(path) is not None:
                on_orphan(path.stem)
            self.end_leftover(path.stem, grace_s)

    def end_leftover(self, name: str, grace_s: float) -> None:
        """End the processes that remain of the server of this name."""
        group = _running_group(self.process(name))
        if group is not None:
            end_group(group, grace_s)
        self.process(name).unlink(missing_ok=True)


def _running_group(record_path: Path) -> int | None:
    """The process group of a recorded server, None where none of its processes runs."""
    try:
        process = _ProcessRecord.model_validate_json(_read(record_path))
    except ValidationError:
        return None
    is_running = process.pid > 1 and (_is_same_process(process.pid, process.identity) or _has_leftovers(process))
    return process.pid if is_running else None


def _is_same_process(pid: int, identity: str) -> bool:
    """Whether the recorded process still runs; a later one with its number does not count."""
    return bool(identity) and process_identity(pid) == identity


def _has_leftovers(process: _ProcessRecord) -> bool:
    """Whether the process has exited and others of its group run; while they do, the kernel gives its number to no other process."""
    this_boot = process_identity(os.getpid()).partition("/")[0]
    has_exited = not Path(f"/proc/{process.pid}").exists()
    return has_exited and process.identity.partition("/")[0] == this_boot and is_group_alive(process.pid)


def _read(path: Path) -> str:
    """A file's text, cut to `_MAX_FILE_CHARACTERS`; "" where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:_MAX_FILE_CHARACTERS]
    except OSError:
        return ""
