"""A user's own files taken away. Knows folders and locks; follows no link, and touches nothing of anybody else's."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, make_folder, sync
from pandora_dagster.stores.disk.layout import LOCK, Layout
from pandora_dagster.stores.disk.turn_directory import turn_numbers
from pandora_dagster.stores.user.level_files import level_locks

RETIRED_SUFFIX = ".erasing"
"""Folder below the user's for turns that are no longer any: one rename each, under the turn's lock."""


def own_folders(layout: Layout, user: UserId) -> tuple[Path, Path]:
    """Where a user's documents and originals lie."""
    return layout.user(user), layout.cold / user


def retire_turns(layout: Layout, user: UserId, *, wait_s: float) -> int:
    """Take every turn from whoever works on it: each is waited for, then renamed away, so that no commit can follow.

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
            make_folder(base / RETIRED_SUFFIX)
            with file_lock(folder / LOCK, what=f"turn {user}:{folder.name}", seconds=wait_s):
                folder.rename(_free(base / RETIRED_SUFFIX / folder.name))
            retired += 1
        if retired:
            sync(base / RETIRED_SUFFIX)
            sync(turns)
    return retired


def await_levels(layout: Layout, user: UserId, *, wait_s: float) -> None:
    """Wait for whoever makes a narrative or the digest of a user; once the user is being erased nobody begins to.

    Raises StoreError where another process is longer than `wait_s` about one.
    """
    base = layout.user(user)
    if _is_link(base) or _is_link(base / "sessions"):
        return
    for path in level_locks(layout, user):
        if path.is_file() and not _is_link(path) and not _is_link(path.parent):
            with file_lock(path, what=f"{path.parent.name}/{path.name}", seconds=wait_s):
                pass


def replace_with_file(folder: Path, aside: Path) -> None:
    """Bring a folder aside and put an empty file in its place: who still means to write there is refused by the disk, and makes none anew.

    What is no folder goes. Raises StoreError.
    """
    with disk_errors(folder, "cannot erase"):
        while True:
            if folder.is_dir() and not folder.is_symlink():
                make_folder(aside.parent)
                make_folder(aside)
                folder.rename(_free(aside / folder.name))
            elif os.path.lexists(folder):
                folder.unlink()
            try:
                os.close(os.open(folder, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            except FileExistsError:
                continue  # somebody made it anew in between
            sync(folder.parent)
            sync(aside.parent)
            return


def remove(path: Path) -> None:
    """A folder with all that is in it, a file, or a link itself; what a link leads to stays. Raises StoreError."""
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
    """Every entry that is no folder, by name; a link is one, and is not followed. A folder that can not be read is told as itself."""
    for folder in folders:
        if _is_link(folder) or folder.is_file():
            yield folder
        elif folder.exists():
            yield from _below(folder)


def _below(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError:
        yield folder
        return
    for entry in found:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _below(path)
        else:
            yield path


def _make_writable(folder: Path) -> None:
    """Folders that their owner may not write could not be emptied."""
    for base, _, _ in os.walk(folder):
        mode = os.lstat(base).st_mode
        if mode & 0o700 != 0o700:
            os.chmod(base, mode | 0o700)  # noqa: PTH101 - a folder that os.walk gave, no link


def _free(path: Path) -> Path:
    """A name that nothing stands under: a run that was cut off may have retired a turn of this number."""
    number = 0
    while os.path.lexists(free := path.with_name(f"{path.name}.{number}") if number else path):
        number += 1
    return free


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError as error:
        raise StoreError(f"{path}: cannot be looked at: {error.strerror}") from error
