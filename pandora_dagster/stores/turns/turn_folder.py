"""Reads one revision of a turn from its folder and verifies it against its manifest. Changes nothing.

Sections and files that the manifest does not name are ignored: an interrupted commit left them. What it names must exist, byte for byte;
where an interrupted commit has replaced it, the bytes kept in `.kept` are read instead.
"""

import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.documents.sections import ContextDocument, parse_context
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.files import document_path_inside, read_text, sha
from pandora_dagster.stores.disk.layout import CONTEXT, KEPT, MANIFEST, document_name
from pandora_dagster.stores.turns.manifests import read_manifest

T = TypeVar("T")
Stamp = tuple[int, int, int, int]
_MIN_FILE_AGE_NS = 100_000_000
"""A file that changed more recently is not cached: its next change could leave the same times, which advance in some milliseconds."""


def stamp_of(path: Path) -> Stamp | None:
    """Inode, size and times of a file; None where it cannot be read."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class DocumentCache(Generic[T]):
    """Values that were read from files, by path, valid while the stamp of the file is the same. Thread-safe.

    `max_characters` bounds the sum of the sizes; the least recently used values are dropped first.
    """

    def __init__(self, max_characters: int = 8_000_000) -> None:
        self._max_characters = max_characters
        self._characters = 0
        self._entries: OrderedDict[Path, tuple[Stamp, T, int]] = OrderedDict()
        self._lock = Lock()

    def find(self, path: Path) -> T | None:
        """The value of a file that has not changed since it was read, else None."""
        with self._lock:
            entry = self._entries.get(path)
            if entry is None:
                return None
            if entry[0] != stamp_of(path):
                self._remove(path)
                return None
            self._entries.move_to_end(path)
            return entry[1]

    def store(self, path: Path, stamp: Stamp | None, value: T, size: int) -> None:
        """Cache a value of `size` characters. `stamp`: that of the file before it was read."""
        if stamp is None or size > self._max_characters or time.time_ns() - max(stamp[2:]) < _MIN_FILE_AGE_NS:
            return
        with self._lock:
            if path in self._entries:
                self._remove(path)
            self._entries[path] = (stamp, value, size)
            self._characters += size
            while self._characters > self._max_characters:
                self._remove(next(iter(self._entries)))

    def _remove(self, path: Path) -> None:
        self._characters -= self._entries.pop(path)[2]


_MAX_READ_SECONDS = 10.0
"""For how long a turn is read again while another process commits faster than it can be read."""
_SHA256_DIGITS = 64


@dataclass(frozen=True, slots=True)
class TurnFolder:
    """The folder of one revision. `texts` and `manifests`: the caches of the store."""

    root: Path
    path: Path
    key: TurnKey
    revision: int
    texts: DocumentCache[str] = field(default_factory=DocumentCache[str])
    manifests: DocumentCache[Manifest] = field(default_factory=DocumentCache[Manifest])

    def manifest(self) -> Manifest:
        """The manifest of the revision; raises DocumentError."""
        path = document_path_inside(self.root, self.path / MANIFEST)
        if (cached := self.manifests.find(path)) is not None:
            return cached
        stamp = stamp_of(path)
        manifest = read_manifest(path, self.key, self.revision)
        self.manifests.store(path, stamp, manifest, stamp[1] if stamp else 0)
        return manifest

    def turn(self, only: Collection[str] | None = None) -> Turn:
        """The revision as of its last commit; raises DocumentError with the file, what it is, what was expected.

        `only`: the documents to read beside context.md; None for all.
        """
        manifest, deadline = self.manifest(), time.monotonic() + _MAX_READ_SECONDS
        while True:
            try:
                return self._read(manifest, only)
            except DocumentError:
                # A commit by another process meanwhile looks like damage; it is damage where the manifest is still the same.
                newer = self.manifest()
                if newer == manifest or time.monotonic() > deadline:
                    raise
                manifest = newer

    def _read(self, manifest: Manifest, only: Collection[str] | None) -> Turn:
        context = self._read_context(manifest)
        hashes = {name: expected for name, expected in named_files(manifest).items() if only is None or name in only}
        files = {name: self._read_document(document_name(name), expected) for name, expected in hashes.items()}
        return Turn(self.key, manifest, context, files)

    def _read_text(self, path: Path, *, may_be_empty: bool) -> str:
        if (cached := self.texts.find(path)) is not None:
            return cached
        stamp = stamp_of(path)
        text = read_text(path, may_be_empty=may_be_empty)
        self.texts.store(path, stamp, text, len(text))
        return text

    def _read_document(self, name: str, expected: str) -> str:
        """A document with the sha256 `expected`, from the folder or from `.kept`; raises DocumentError."""
        try:
            text = self._read_text(document_path_inside(self.root, self.path / name), may_be_empty=True)
        except DocumentError:
            if (kept := self._read_kept(expected)) is not None:
                return kept
            raise
        if sha(text) == expected:
            return text
        if (kept := self._read_kept(expected)) is not None:
            return kept
        raise DocumentError(f"{self.path / name}: {_damage(text, expected)}: expected sha256 {expected[:12]} as in {MANIFEST}")

    def _read_context(self, manifest: Manifest) -> str:
        path = document_path_inside(self.root, self.path / CONTEXT)
        try:
            return _as_committed(self._read_text(path, may_be_empty=False), manifest, str(path))
        except DocumentError:
            if (kept := self._read_kept(manifest.context_sha)) is not None:
                return kept
            raise

    def _read_kept(self, expected: str) -> str | None:
        """The kept document with the sha256 `expected`, None where there is none."""
        path = self.path / KEPT / expected
        if len(expected) != _SHA256_DIGITS or not expected.isalnum() or not path.is_file():
            return None
        text = read_text(document_path_inside(self.root, path), may_be_empty=True)
        return text if sha(text) == expected else None


def named_files(manifest: Manifest) -> dict[str, str]:
    """Document name -> sha256 over all phases of the manifest."""
    return {name: expected for phase in manifest.phases for name, expected in phase.files.items()}


def turn_documents(turn: Turn) -> dict[str, str]:
    """Document name -> text, context.md first."""
    return {CONTEXT: turn.context, **turn.files}


def section_hashes(context: ContextDocument) -> dict[str, str]:
    """Section number -> sha256 of its text, as `Manifest.sections` keeps them."""
    return {str(s.number): sha(s.text) for s in context.sections}


def _as_committed(text: str, manifest: Manifest, where: str) -> str:
    """context.md without the sections that the manifest does not name; raises DocumentError where it contradicts the manifest."""
    if sha(text) == manifest.context_sha:
        parse_context(text, where=where)
        return text
    document = parse_context(text, where=where)
    hashes = section_hashes(document)
    if missing := sorted(set(manifest.sections) - set(hashes)):
        raise DocumentError(f"{where}: section {', '.join(missing)} is missing: expected it as in {MANIFEST}")
    for number, expected in manifest.sections.items():
        if hashes[number] != expected:
            damage = _damage(_section_text(document, number), expected)
            raise DocumentError(f"{where}: section {number}: {damage}: expected sha256 {expected[:12]} as in {MANIFEST}")
    committed_sections = tuple(s for s in document.sections if str(s.number) in manifest.sections)
    committed = ContextDocument(document.preamble, committed_sections).render()
    if sha(committed) != manifest.context_sha:
        raise DocumentError(f"{where}: text outside its sections was changed: expected sha256 {manifest.context_sha[:12]} as in {MANIFEST}")
    return committed


def _section_text(document: ContextDocument, number: str) -> str:
    section = document.section(int(number))
    return section.text if section else ""


def _damage(text: str, expected: str) -> str:
    """How a text differs from the one with the sha256 `expected`, for messages."""
    if not text:
        return "empty"
    if sha(text.replace("\r\n", "\n")) == expected:
        return "its line ends were changed to CRLF"
    return f"changed since it was committed, sha256 {sha(text)[:12]}"
