"""Users that are being erased: their intents under `<root>/erasing/`, and the locks that keep new turns from starting meanwhile.

A turn starts under a shared lock, and an intent is written under the exclusive one. So a turn that starts later sees the intent, and a turn
that started earlier is on the disk when the erasure begins.
"""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pandora_dagster.contracts.ids import UserId, user_id
from pandora_dagster.contracts.retention import ErasureIntent
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, is_stray, make_folder, path_inside
from pandora_dagster.stores.disk.record_files import RecordFiles

FOLDER = "erasing"
_POLL_S = 0.01
_START_LOCK, _ERASURE_LOCK = ".begin.lock", ".lock"


class ErasureIntents:
    """The intents of one store. `wait_s`: how long to wait for another erasure, or for turns that are being written."""

    def __init__(self, root: Path, *, wait_s: float = 10.0) -> None:
        self._root, self.folder, self._wait_s = root, root / FOLDER, wait_s
        self._files = RecordFiles(root, f"{FOLDER}/{{user}}.json", ErasureIntent, expected="an erasure's intent")

    @contextmanager
    def keeping_erasure_out(self, user: UserId) -> Generator[None]:
        """Hold the shared lock while a new turn or record of a user is written; raises StoreError while the user is being erased."""
        user_id(user)  # a bad id is refused before anything is written
        with self._hold_start_lock(fcntl.LOCK_SH):
            self.refuse_erased_user(user)
            yield

    def refuse_erased_user(self, user: UserId) -> None:
        """Raises StoreError while the user is being erased."""
        if self.has_intent(user):
            raise StoreError(f"user {user}: is being erased: expected a user who is not", hint=f"finish it with: pandora forget {user}")

    @contextmanager
    def one_at_a_time(self) -> Generator[None]:
        """Hold the lock of erasures; raises StoreError where another erasure runs."""
        with file_lock(self.folder / _ERASURE_LOCK, what="the erasure of a user", seconds=self._wait_s):
            yield

    def write_intent(self, intent: ErasureIntent) -> None:
        """Write the intent, also over that of an interrupted erasure; no turn of the user starts afterwards. Raises StoreError."""
        with self._hold_start_lock(fcntl.LOCK_EX):
            with disk_errors(self.folder, "cannot clean up"):
                for path in self.folder.iterdir():
                    if is_stray(path.name):  # of an interrupted write; it holds facts of the user
                        path.unlink()
            self._files.put(intent, intent.user_id)

    def facts(self, user: UserId) -> tuple[str, ...]:
        """The facts to search for in an erasure that was interrupted, or whose proof found something. Raises StoreError."""
        try:
            intent = self._files.find(user)
        except DocumentError as error:
            raise StoreError(
                f"{self._files.locate(user)}: cannot be read: expected an erasure's intent",
                hint="delete it: then the proof uses the remaining documents alone",
            ) from error
        return intent.facts if intent else ()

    def has_intent(self, user: UserId) -> bool:
        return self._files.exists(user)

    def trash_folder(self, user: UserId) -> Path:
        """Where the user's folder is moved before it is emptied."""
        return path_inside(self._root, self.folder / f"{user_id(user)}.folder")

    def remove_intent(self, user: UserId) -> None:
        """Delete the intent; raises StoreError."""
        self._files.delete(user)

    @contextmanager
    def _hold_start_lock(self, mode: int) -> Generator[None]:
        with disk_errors(self.folder, "cannot lock"):
            make_folder(self.folder)
            descriptor = os.open(self.folder / _START_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._acquire(descriptor, mode)
            yield
        finally:
            os.close(descriptor)

    def _acquire(self, descriptor: int, mode: int) -> None:
        """Lock the open file, LOCK_SH or LOCK_EX; raises StoreError after `wait_s` seconds."""
        deadline = time.monotonic() + self._wait_s
        while True:
            try:
                fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StoreError(
                        f"{self.folder / _START_LOCK}: held for more than {self._wait_s:g} s: expected it to be free", hint="try again"
                    ) from None
                time.sleep(_POLL_S)
