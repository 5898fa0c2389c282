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

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.user.sources import Note, NoteHeader, NoteListing, NoteMatch
from pandora_dagster.documents.delimited_blocks import delimited_blocks, without_code_blocks
from pandora_dagster.documents.plain_yaml import parse_yaml
from pandora_dagster.errors import DocumentError, PandoraError
from pandora_dagster.stores.disk.files import disk_errors, path_inside, read_text
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.user.note_index import DuckNoteIndex, IndexedNote, NotePassage, NoteRow

# The text of a Markdown note as Obsidian writes it: front matter, tags, wiki links (specification 004, section 13).

_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n")
_FRONT_MATTER_END = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_TITLE = re.compile(r"^# +(.+)$", re.MULTILINE)
_TAG = re.compile(r"(?<![\w/#&])#([A-Za-z_][\w/-]{0,79})")
_LINK = re.compile(r"\[\[([^\[\]|#^\n]{1,200})(?:[#^|][^\[\]\n]*)?\]\]")
_CODE_SPAN = re.compile(r"`[^`\n]*`")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATE_FIELDS = ("updated", "modified", "date", "created")
"""Front matter fields with the date of a note, the preferred one first."""
MAX_FRONT_MATTER_CHARACTERS = 64 * 1024
_MAX_TITLE_CHARACTERS, _MAX_TAGS, _MAX_LINKS, _MAX_TAG_CHARACTERS = 200, 40, 100, 80
"""What a header offers of a long title, and of many tags and links."""


def read_note(text: str, *, name: str, where: str) -> Note:
    """The note `text` under its name; raises DocumentError with the line where its front matter is broken."""
    front_matter, body = _split_front_matter(text, where)
    prose = _CODE_SPAN.sub(" ", without_code_blocks(body))
    heading = _TITLE.search(prose)
    file_name = name.rpartition("/")[2].removesuffix(".md")
    title = _plain_text(front_matter.get("title")) or (heading.group(1).rstrip(" \t\r#") if heading else "") or file_name.replace("_", " ")
    header = NoteHeader(
        name=name,
        title=" ".join(title.split())[:_MAX_TITLE_CHARACTERS],
        tags=tuple(dict.fromkeys((*_tags(front_matter), *_TAG.findall(prose))))[:_MAX_TAGS],
        links=tuple(dict.fromkeys(link.strip() for link in _LINK.findall(prose)))[:_MAX_LINKS],
    )
    return Note(header, body.strip("\r\n"), _day(front_matter))


def _split_front_matter(text: str, where: str) -> tuple[Mapping[str, Any], str]:
    """The front matter of a note, {} where it has none, and its body; raises DocumentError."""
    block = next(delimited_blocks(text, _FRONT_MATTER, _FRONT_MATTER_END), None)
    if block is None:
        if _FRONT_MATTER.match(text):
            raise DocumentError(f"{where}:1: front matter without its end: expected a line --- after it")
        return {}, text.removeprefix("\ufeff")
    if len(block.body) > MAX_FRONT_MATTER_CHARACTERS:
        raise DocumentError(f"{where}:1: front matter of {len(block.body):,} characters: expected at most {MAX_FRONT_MATTER_CHARACTERS:,}")
    parsed: object = parse_yaml(block.body, where=where, lines_before=1)
    if parsed is None:
        return {}, text[block.end :]
    if not isinstance(parsed, dict):
        raise DocumentError(f"{where}:2: front matter: {type(parsed).__name__}: expected a mapping such as `tags: [a, b]`")
    return cast("Mapping[str, Any]", parsed), text[block.end :]


def _tags(front_matter: Mapping[str, Any]) -> list[str]:
    """`tags: [a, b]`, `tags: a, b` and `tags: "#a #b"` are equivalent."""
    value = front_matter.get("tags", front_matter.get("tag"))
    words = cast("list[object]", value) if isinstance(value, list) else re.split(r"[,\s]+", _plain_text(value))
    return [tag for word in words if (tag := _plain_text(word).lstrip("#").strip()[:_MAX_TAG_CHARACTERS])]


def _day(front_matter: Mapping[str, Any]) -> str:
    """The ISO date of the note's last change or creation by its front matter; "" where it has none."""
    for name in _DATE_FIELDS:
        if match := _DAY.match(_plain_text(front_matter.get(name))):
            with suppress(ValueError):
                return date.fromisoformat(match.group()).isoformat()
    return ""


def _plain_text(value: object) -> str:
    """A string or number of the front matter as text on one line; "" for any other value."""
    return " ".join(str(value).split()) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


MAX_NOTE_BYTES = 1024 * 1024
"""Long notes have some hundred kilobytes; a larger file is no note."""
MAX_NOTES = 20_000
_BATCH_NOTES = 500
"""Notes that are indexed in one transaction: an interrupted command loses at most one batch."""
_UNREADABLE = "unreadable: "
"""Begins the mark of a file whose status cannot be read."""
_MAX_PASSAGES = 20
"""Matching notes whose passage is read: as many as retrieval offers at most."""


class NoteFiles:
    """The notes of each user. `folders`: user -> folder of notes, by default below the store. `index`: the index over their content."""

    def __init__(self, root: Path, folders: Mapping[UserId, Path], index: DuckNoteIndex) -> None:
        self._layout = Layout(root)
        self._folders = dict(folders)
        self._index = index

    def listing(self, user: UserId, query: str = "") -> NoteListing:
        """Headers by name, a sentence for each note that is left out, and the notes that match `query`, best first.

        A note is read again where the time or the size of its file differs from the index. Raises StoreError for the folder or the index.
        """
        notices: list[str] = []
        paths = dict(self._paths(user, notices))
        indexed = self._update_index(user, paths)
        headers = [note.header for name in paths if (note := indexed[name]).header]
        notices += [indexed[name].fault for name in paths if indexed[name].fault]
        matches = self._matches(user, query, paths) if headers and query else ()
        return NoteListing(tuple(headers), tuple(notices), matches)

    def load(self, user: UserId, name: str) -> Note:
        """A note, read now; raises DocumentError: missing, too large, broken front matter, a link out of the folder."""
        path = self._find(user, name)
        if path is None:
            raise DocumentError(f"note {name[:160]!r}: not in {self._folder(user)}: expected a note that was offered", missing=True)
        return self._note(user, name, path)

    def path(self, user: UserId, logical_id: str) -> str | None:
        """The file of `notes/<name>`; None where no such note is listed."""
        path = self._find(user, logical_id.removeprefix("notes/")) if logical_id.startswith("notes/") else None
        return str(path) if path else None

    def _find(self, user: UserId, name: str) -> Path | None:
        """The file of a listed note; a name never becomes a path."""
        return next((path for listed, path in self._paths(user, []) if listed == name), None)

    def _update_index(self, user: UserId, paths: Mapping[str, Path]) -> dict[str, IndexedNote]:
        """Index changed notes, remove deleted ones, and return the index's rows of these notes."""
        indexed = self._index.indexed_notes(user)
        marks = {name: self._mark(user, path) for name, path in paths.items()}
        changed = [name for name, mark in marks.items() if name not in indexed or indexed[name].mark != mark]
        deleted = [name for name in indexed if name not in paths]
        for start in range(0, max(len(changed), bool(deleted)), _BATCH_NOTES):
            rows = [self._row(user, name, paths[name], marks[name]) for name in changed[start : start + _BATCH_NOTES]]
            self._index.put(user, rows, deleted if start == 0 else ())
            indexed |= {row.name: IndexedNote(row.mark, row.note.header if row.note else None, row.fault) for row in rows}
        return indexed

    def _mark(self, user: UserId, path: Path) -> str:
        """Time, size and mode of a note's file and its folder, as text: while the mark is the same, the note is not read again."""
        try:
            status = path.stat()
        except OSError as error:
            return f"{_UNREADABLE}{error.strerror}"
        return f"{status.st_mtime_ns} {status.st_size} {status.st_mode} {self._folder(user)}"

    def _row(self, user: UserId, name: str, path: Path, mark: str) -> NoteRow:
        """The index row of a note that is read now, or of its fault."""
        if mark.startswith(_UNREADABLE):
            return NoteRow(name, mark, fault=f"note {name}: left out: {mark.removeprefix(_UNREADABLE)}")
        try:
            return NoteRow(name, mark, self._note(user, name, path))
        except PandoraError as error:
            return NoteRow(name, mark, fault=f"note left out: {error}")

    def _matches(self, user: UserId, query: str, paths: Mapping[str, Path]) -> tuple[NoteMatch, ...]:
        """The notes that match; the passages of the best ones are read from their files."""
        matches = [match for match in self._index.matching_notes(user, query) if match.name in paths]
        with_passage = [
            NoteMatch(match.name, match.score, self._passage(user, match, paths[match.name])) for match in matches[:_MAX_PASSAGES]
        ]
        return (*with_passage, *(NoteMatch(match.name, match.score) for match in matches[_MAX_PASSAGES:]))

    def _passage(self, user: UserId, match: NotePassage, path: Path) -> str:
        if match.span is None:
            return ""
        with suppress(DocumentError):  # changed or deleted since it was indexed: `load` reports it
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
        configured_folder = self._folders.get(user)
        return configured_folder if configured_folder is not None else path_inside(self._layout.root, self._layout.notes(user))

    def _paths(self, user: UserId, notices: list[str]) -> Iterator[tuple[str, Path]]:
        """Names and paths of notes, by path. Names that begin with a dot are skipped; `notices` receives what else is left out."""
        folder = self._folder(user)
        if not folder.is_dir():
            return
        count = 0
        with disk_errors(folder, "cannot list"):
            for parent, folders, files in os.walk(folder):
                linked = [f for f in folders if Path(parent, f).is_symlink()]
                notices += [f"{_note_name(folder, Path(parent, f))}/: left out: a linked folder: expected a real one" for f in linked]
                folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in linked)
                for file in sorted(f for f in files if f.lower().endswith(".md") and not f.startswith(".")):
                    if _is_second_name(folder, Path(parent, file)):
                        continue
                    name = _note_name(folder, Path(parent, file))
                    if not name.isprintable() or "`" in name:
                        notices.append(f"note {name!r}: left out: expected a name of printable characters without `")
                        continue
                    count += 1
                    if count > MAX_NOTES:
                        notices.append(f"{folder}: over {MAX_NOTES:,} notes: the others are left out")
                        return
                    yield name, Path(parent, file)


def _is_second_name(folder: Path, path: Path) -> bool:
    """Whether a file is a link to a note in the same folder, which is listed under its own name."""
    if not path.is_symlink():
        return False
    real_folder, real = Path(os.path.realpath(folder)), Path(os.path.realpath(path))
    if not real.is_relative_to(real_folder) or not real.is_file() or not real.name.lower().endswith(".md"):
        return False
    return not any(part.startswith(".") for part in real.relative_to(real_folder).parts)


def _note_name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()
