"""The NoteStore port over a folder of Markdown notes, which it only reads.

A note's name is looked up among those that were listed: it never becomes a path.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, cast

import yaml

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.user.sources import Note, NoteHeader, NoteListing, NoteMatch
from pandora_dagster.errors import DocumentError, PandoraError
from pandora_dagster.stores.disk.files import disk_errors, path_inside, read_text
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.user.note_index import DuckNoteIndex, IndexedNote, NotePassage, NoteRow

# The text of a Markdown note as Obsidian writes it: front matter, tags, wiki links (004 section 13); faults are errors.

_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE | re.DOTALL)
_OPENS = re.compile(r"\A\ufeff?---[ \t]*\r?\n")
_TITLE = re.compile(r"^# +(.+?)[ \t#]*$", re.MULTILINE)
_TAG = re.compile(r"(?<![\w/#&])#([A-Za-z_][\w/-]{0,79})")
_LINK = re.compile(r"\[\[([^\[\]|#^\n]{1,200})(?:[#^|][^\[\]\n]*)?\]\]")
_CODE = re.compile(r"^(```|~~~).*?^\1[ \t]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATES = ("updated", "modified", "date", "created")
"""Front matter fields that date a note, the preferred one first."""
MAX_FRONT_CHARS = 64 * 1024


def read_note(text: str, *, name: str, where: str) -> Note:
    """The note `text` under its name; raises DocumentError with the line where its front matter is broken."""
    front, body = _split(text, where)
    prose = _CODE.sub(" ", body)
    heading = _TITLE.search(prose)
    stem = name.rpartition("/")[2].removesuffix(".md")
    title = _plain_text(front.get("title")) or (heading.group(1) if heading else "") or stem.replace("_", " ")
    header = NoteHeader(
        name=name,
        title=" ".join(title.split())[:200],
        tags=tuple(dict.fromkeys((*_tags(front), *_TAG.findall(prose))))[:40],
        links=tuple(dict.fromkeys(link.strip() for link in _LINK.findall(prose)))[:100],
    )
    return Note(header, body.strip("\r\n"), _day(front))


def _split(text: str, where: str) -> tuple[Mapping[str, Any], str]:
    found = _FRONT.match(text)
    if not found:
        if _OPENS.match(text):
            raise DocumentError(f"{where}:1: front matter without its end: expected a line --- after it")
        return {}, text.removeprefix("\ufeff")
    if len(found.group(1)) > MAX_FRONT_CHARS:
        raise DocumentError(f"{where}:1: front matter of {len(found.group(1)):,} characters: expected at most {MAX_FRONT_CHARS:,}")
    try:
        value: object = yaml.safe_load(found.group(1))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)  # YAML's errors carry a mark where they know the place
        line = int(getattr(mark, "line", 0)) + 2
        raise DocumentError(f"{where}:{line}: front matter: {getattr(error, 'problem', None) or error}: expected YAML") from error
    if value is None:
        return {}, text[found.end() :]
    if not isinstance(value, dict):
        raise DocumentError(f"{where}:2: front matter: {type(value).__name__}: expected a mapping such as `tags: [a, b]`")
    return cast("Mapping[str, Any]", value), text[found.end() :]


def _tags(front: Mapping[str, Any]) -> list[str]:
    """`tags: [a, b]`, `tags: a, b` and `tags: "#a #b"` are equivalent."""
    given = front.get("tags", front.get("tag"))
    words = cast("list[object]", given) if isinstance(given, list) else re.split(r"[,\s]+", _plain_text(given))
    return [tag for word in words if (tag := _plain_text(word).lstrip("#").strip()[:80])]


def _day(front: Mapping[str, Any]) -> str:
    """The day of the note by its front matter: of its last change, else of its creation. Any other value gives none."""
    for name in _DATES:
        if found := _DAY.match(_plain_text(front.get(name)) or str(front.get(name) or "")):
            with suppress(ValueError):
                return date.fromisoformat(found.group()).isoformat()
    return ""


def _plain_text(value: object) -> str:
    return " ".join(str(value).split()) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


MAX_NOTE_BYTES = 1024 * 1024
"""The longest notes take some hundred kilobytes; a larger file is a paste or not text."""
MOST_NOTES = 20_000
_AT_ONCE = 500
"""Notes that are indexed in one transaction: an interrupted command keeps the notes that it indexed."""
_UNREADABLE = "unreadable: "
_PASSAGES_READ = 20
"""Notes whose passage is searched: the most that retrieval offers."""


class NoteFiles:
    """The notes of each user. `folders`: user -> folder of notes, by default below the store. `index`: the index over their content."""

    def __init__(self, root: Path, folders: Mapping[UserId, Path], index: DuckNoteIndex) -> None:
        self._layout = Layout(root)
        self._folders = dict(folders)
        self._index = index

    def listing(self, user: UserId, query: str = "") -> NoteListing:
        """Headers by name, a sentence for each note that cannot be offered, and what `query` leads to, best first.

        A note is read where time or size of its file differ from those in the index. Raises StoreError for folder and index.
        """
        notices: list[str] = []
        paths = dict(self._paths(user, notices))
        known = self._refreshed(user, paths)
        headers = [found.header for name in paths if (found := known[name]).header]
        notices += [known[name].fault for name in paths if known[name].fault]
        matches = self._matches(user, query, paths) if headers and query else ()
        return NoteListing(tuple(headers), tuple(notices), matches)

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

    def _refreshed(self, user: UserId, paths: Mapping[str, Path]) -> dict[str, IndexedNote]:
        """The index rows of these notes, after changed notes were read again and deleted ones removed."""
        known = self._index.indexed_notes(user)
        marks = {name: self._mark(user, path) for name, path in paths.items()}
        changed = [name for name, mark in marks.items() if name not in known or known[name].mark != mark]
        gone = [name for name in known if name not in paths]
        for start in range(0, max(len(changed), bool(gone)), _AT_ONCE):
            rows = [self._row(user, name, paths[name], marks[name]) for name in changed[start : start + _AT_ONCE]]
            self._index.put(user, rows, gone if start == 0 else ())
            known |= {row.name: IndexedNote(row.mark, row.note.header if row.note else None, row.fault) for row in rows}
        return known

    def _mark(self, user: UserId, path: Path) -> str:
        try:
            status = path.stat()
        except OSError as error:
            return f"{_UNREADABLE}{error.strerror}"
        return f"{status.st_mtime_ns} {status.st_size} {status.st_mode} {self._folder(user)}"

    def _row(self, user: UserId, name: str, path: Path, mark: str) -> NoteRow:
        if mark.startswith(_UNREADABLE):
            return NoteRow(name, mark, fault=f"note {name}: left out: {mark.removeprefix(_UNREADABLE)}")
        try:
            return NoteRow(name, mark, self._note(user, name, path))
        except PandoraError as error:
            return NoteRow(name, mark, fault=f"note left out: {error}")

    def _matches(self, user: UserId, query: str, paths: Mapping[str, Path]) -> tuple[NoteMatch, ...]:
        """What the index finds; the passages of the best are read from their files."""
        found = [match for match in self._index.matching_notes(user, query) if match.name in paths]
        shown = [NoteMatch(match.name, match.score, self._passage(user, match, paths[match.name])) for match in found[:_PASSAGES_READ]]
        return (*shown, *(NoteMatch(match.name, match.score) for match in found[_PASSAGES_READ:]))

    def _passage(self, user: UserId, match: NotePassage, path: Path) -> str:
        if match.span is None:
            return ""
        with suppress(DocumentError):  # changed or deleted since it was indexed: loading reports it
            return self._note(user, match.name, path).text[slice(*match.span)]
        return ""

    def _note(self, user: UserId, name: str, path: Path) -> Note:
        try:
            path_inside(self._folder(user), path)
        except PandoraError as error:
            raise DocumentError(f"note {name}: a link leads out of {self._folder(user)}: expected a file inside it") from error
        if path.exists() and not path.is_file():
            raise DocumentError(f"note {name}: {path}: expected a file")
        return read_note(read_text(path, limit=MAX_NOTE_BYTES, may_be_empty=True), name=name, where=str(path))

    def _folder(self, user: UserId) -> Path:
        own = self._folders.get(user)
        return own if own is not None else path_inside(self._layout.root, self._layout.notes(user))

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
                    if _is_second_name(folder, Path(place, file)):
                        continue
                    name = _name(folder, Path(place, file))
                    if not name.isprintable() or "`" in name:
                        notices.append(f"note {name!r}: left out: expected a name of printable characters without `")
                        continue
                    count += 1
                    if count > MOST_NOTES:
                        notices.append(f"{folder}: over {MOST_NOTES:,} notes: the others are left out")
                        return
                    yield name, Path(place, file)


def _is_second_name(folder: Path, path: Path) -> bool:
    """Whether a file is a link to a note of the same folder, which is listed under its own name."""
    if not path.is_symlink():
        return False
    real_folder, real = Path(os.path.realpath(folder)), Path(os.path.realpath(path))
    if not real.is_relative_to(real_folder) or not real.is_file() or not real.name.lower().endswith(".md"):
        return False
    return not any(part.startswith(".") for part in real.relative_to(real_folder).parts)


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()
