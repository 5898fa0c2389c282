"""The NoteStore port over a folder of Markdown notes. Only reads; knows the folder, its links and sizes.

A note's name is looked up among those that were listed: it never becomes a path.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.sources import Note, NoteHeader, NoteListing
from pandora_dagster.errors import DocumentError, PandoraError
from pandora_dagster.stores.files import disk_errors, inside, read_text
from pandora_dagster.stores.layout import Layout
from pandora_dagster.stores.note_page import read_note

MAX_NOTE_BYTES = 1024 * 1024
"""A person's longest notes take some hundred kilobytes; what is larger is a paste or no text."""
MOST_NOTES = 20_000


class NoteFiles:
    """Each user's notes: `folders` names where those of a user lie; others keep theirs under the store."""

    def __init__(self, root: Path, folders: Mapping[UserId, Path]) -> None:
        self._layout = Layout(root)
        self._folders = dict(folders)
        self._read: dict[str, tuple[tuple[int, int], NoteHeader | str]] = {}
        """Path -> its time and size when it was read, and its header or what is wrong with it: a folder is read once."""

    def listing(self, user: UserId) -> NoteListing:
        """Headers by name, and a sentence for each note that can not be offered. Raises StoreError for the folder itself."""
        headers: list[NoteHeader] = []
        notices: list[str] = []
        for name, path in self._paths(user, notices):
            found = self._header(user, name, path)
            (headers if isinstance(found, NoteHeader) else notices).append(found)  # pyright: ignore[reportArgumentType] - one list each
        return NoteListing(tuple(headers), tuple(notices))

    def load(self, user: UserId, name: str) -> Note:
        """A note, read now; raises DocumentError: missing, too large, broken front matter, a link out of the folder."""
        path = self._known(user, name)
        if path is None:
            raise DocumentError(f"note {name[:160]!r}: not in {self._folder(user)}: expected a note that was offered", missing=True)
        return self._note(user, name, path)

    def path(self, user: UserId, logical_id: str) -> str | None:
        """The file of `notes/<name>`; None where no such note is listed."""
        found = self._known(user, logical_id.removeprefix("notes/")) if logical_id.startswith("notes/") else None
        return str(found) if found else None

    def _known(self, user: UserId, name: str) -> Path | None:
        return next((path for known, path in self._paths(user, []) if known == name), None)

    def _header(self, user: UserId, name: str, path: Path) -> NoteHeader | str:
        try:
            status = path.stat()
        except OSError as error:
            return f"note {name}: left out: {error.strerror}"
        if not stat.S_ISREG(status.st_mode):
            return f"note {name}: left out: not a file"
        mark = (status.st_mtime_ns, status.st_size)
        known = self._read.get(str(path))
        if known is None or known[0] != mark:
            try:
                found: NoteHeader | str = self._note(user, name, path).header
            except PandoraError as error:
                found = f"note left out: {error}"
            known = self._read[str(path)] = (mark, found)
        return known[1]

    def _note(self, user: UserId, name: str, path: Path) -> Note:
        try:
            inside(self._folder(user), path)
        except PandoraError as error:
            raise DocumentError(f"note {name}: a link leads out of {self._folder(user)}: expected a file inside it") from error
        if path.exists() and not path.is_file():
            raise DocumentError(f"note {name}: {path}: expected a file")
        return read_note(read_text(path, limit=MAX_NOTE_BYTES, may_be_empty=True), name=name, where=str(path))

    def _folder(self, user: UserId) -> Path:
        own = self._folders.get(user)
        return own if own is not None else inside(self._layout.root, self._layout.notes(user))

    def _paths(self, user: UserId, notices: list[str]) -> Iterator[tuple[str, Path]]:
        """Notes by name. Folders that begin with a dot are the editor's own; linked folders are not walked into."""
        folder = self._folder(user)
        if not folder.is_dir():
            return
        count = 0
        with disk_errors(folder, "cannot list"):
            for place, folders, files in os.walk(folder):
                linked = [f for f in folders if Path(place, f).is_symlink()]
                notices += [f"{_name(folder, Path(place, f))}/: left out: a linked folder: expected a real one" for f in linked]
                folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in linked)
                for file in sorted(f for f in files if f.lower().endswith(".md") and not f.startswith(".")):
                    name = _name(folder, Path(place, file))
                    if not name.isprintable() or "`" in name:
                        notices.append(f"note {name!r}: left out: expected a name of printable characters without `")
                        continue
                    count += 1
                    if count > MOST_NOTES:
                        notices.append(f"{folder}: over {MOST_NOTES:,} notes: the others are left out")
                        return
                    yield name, Path(place, file)


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()
