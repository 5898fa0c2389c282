"""Erases a user's own files. No link is followed, and nothing of another user is touched."""

import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.ports.user_storage import TraceScrubber
from pandora_dagster.contracts.retention import SearchedObject
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, make_folder, sync
from pandora_dagster.stores.disk.layout import LOCK, Layout
from pandora_dagster.stores.disk.turn_directory import turn_numbers
from pandora_dagster.stores.erasure.content_search import search_files
from pandora_dagster.stores.user.level_files import level_locks

RETIRED_FOLDER = ".erasing"
"""Folder in the user's folder to which turns are moved, one rename each, under the turn's lock."""


def own_folders(layout: Layout, user: UserId) -> tuple[Path, Path]:
    """The folders of a user's documents and originals."""
    return layout.user(user), layout.cold / user


@dataclass(frozen=True, slots=True)
class DocumentEraser:
    """The Eraser of documents and cold storage. The user's folder is first moved to `trash`, where it is emptied."""

    layout: Layout
    intents: ErasureIntents
    wait_s: float
    step: str = "documents"

    def count(self, user: UserId) -> Mapping[str, int]:
        documents, cold = own_folders(self.layout, user)
        originals = [path.name for path in files_below(cold)]
        return {
            "turns": 0 if documents.is_symlink() else sum(1 for _ in turn_numbers(self.layout.turns(user))),
            "files": sum(1 for _ in files_below(documents)),
            "cold_objects": sum(name.endswith(".tar.zst") for name in originals),
            "tombstones": sum(name.endswith(".tombstone.json") for name in originals),
        }

    def erase(self, user: UserId, traces: TraceScrubber) -> Sequence[str]:
        documents, cold = own_folders(self.layout, user)
        remove(cold)
        if self.layout.users.is_dir():
            replace_with_file(documents, self.intents.trash_folder(user))
        remove(self.intents.trash_folder(user))
        return ()

    def search(self, traces: TraceScrubber) -> Iterator[SearchedObject]:
        """Every document of all users, except the intent of this erasure and the empty file that replaced the user's folder."""
        intent, replacement = self.intents.folder / f"{traces.user}.json", own_folders(self.layout, UserId(traces.user))[0]

        def is_own(path: Path) -> bool:
            return path in (intent, replacement) and path.is_file() and (path == intent or not path.stat().st_size)

        paths = files_below(self.layout.users, self.layout.cold, self.intents.folder)
        yield from search_files((path for path in paths if not is_own(path)), traces, wait_s=self.wait_s)


def retire_turns(layout: Layout, user: UserId, *, wait_s: float) -> int:
    """Move every turn of the user to `RETIRED_FOLDER` under its lock, so that no commit can follow; returns their number.

    Raises StoreError where another process holds a turn longer than `wait_s`.
    """
    base, turns = layout.user(user), layout.turns(user)
    if _is_link(base) or _is_link(turns):
        return 0
    retired = 0
    with disk_errors(base, "cannot erase"):
        for number in sorted(turn_numbers(turns)):
            folder = layout.turn(TurnKey(user, number))
            if _is_link(folder):
                continue
            make_folder(base / RETIRED_FOLDER)
            with file_lock(folder / LOCK, what=f"turn {user}:{folder.name}", seconds=wait_s):
                folder.rename(_unused_path(base / RETIRED_FOLDER / folder.name))
            retired += 1
        if retired:
            sync(base / RETIRED_FOLDER)
            sync(turns)
    return retired


def await_tools(layout: Layout, user: UserId, *, wait_s: float) -> None:
    """Wait until no tool of the user's turns runs: the process that waits for one cancels it once its turn is retired.

    Raises StoreError where a tool takes longer than `wait_s`.
    """
    folder = layout.tool_runs(user)
    if _is_link(layout.user(user)) or _is_link(folder) or not folder.is_dir():
        return
    with disk_errors(folder, "cannot list"):
        paths = sorted(path for path in folder.iterdir() if path.is_file() and not path.is_symlink())
    for path in paths:
        with file_lock(path, what=f"a tool of turn {user}:{path.name.partition('.')[0]}", seconds=wait_s):
            pass


def await_levels(layout: Layout, user: UserId, *, wait_s: float) -> None:
    """Wait until no process writes a narrative or the digest of a user; none starts while the user is being erased.

    Raises StoreError where another process takes longer than `wait_s`.
    """
    base = layout.user(user)
    if _is_link(base) or _is_link(base / "sessions"):
        return
    for path in level_locks(layout, user):
        if path.is_file() and not _is_link(path) and not _is_link(path.parent):
            with file_lock(path, what=f"{path.parent.name}/{path.name}", seconds=wait_s):
                pass


def replace_with_file(folder: Path, trash: Path) -> None:
    """Move a folder into `trash` and put an empty file in its place, so that a process that still writes there fails.

    A file or a link is deleted. Raises StoreError.
    """
    with disk_errors(folder, "cannot erase"):
        while True:
            if folder.is_dir() and not folder.is_symlink():
                make_folder(trash.parent)
                make_folder(trash)
                folder.rename(_unused_path(trash / folder.name))
            elif os.path.lexists(folder):
                folder.unlink()
            try:
                os.close(os.open(folder, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            except FileExistsError:
                continue  # another process created it meanwhile
            sync(folder.parent)
            sync(trash.parent)
            return


def remove(path: Path) -> None:
    """Delete a folder with its content, a file, or a link but not its target. Raises StoreError."""
    with disk_errors(path, "cannot erase"):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return
        if stat.S_ISDIR(mode):
            _make_writable(path)
            shutil.rmtree(path)
        else:
            path.unlink()
        sync(path.parent)


def files_below(*folders: Path) -> Iterator[Path]:
    """Every file and link in the folders, by name; links are not followed. An unreadable folder is yielded itself."""
    for folder in folders:
        if _is_link(folder) or folder.is_file():
            yield folder
        elif folder.exists():
            yield from _files_in(folder)


def _files_in(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            sorted_entries = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError:
        yield folder
        return
    for entry in sorted_entries:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _files_in(path)
        else:
            yield path


def _make_writable(folder: Path) -> None:
    """Give the owner all rights to the folders in a folder: without write permission they could not be emptied."""
    for base, _, _ in os.walk(folder):
        mode = os.lstat(base).st_mode
        if mode & 0o700 != 0o700:
            os.chmod(base, mode | 0o700)  # noqa: PTH101 - a folder that os.walk gave, no link


def _unused_path(path: Path) -> Path:
    """The path, or with a number after it: an interrupted erasure may have moved a folder of this name."""
    number = 0
    while os.path.lexists(candidate := path.with_name(f"{path.name}.{number}") if number else path):
        number += 1
    return candidate


def _is_link(path: Path) -> bool:
    """Whether a path is a link; raises StoreError where it cannot be read."""
    try:
        return path.is_symlink()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
