"""One revision of a turn read from its folder and verified against its manifest. Changes nothing.

What the manifest does not name has not happened: sections and files that a cut-off commit left are dropped. What it names
must be there, byte for byte; where a cut-off commit had already replaced it, the bytes kept beside it take its place.
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
_SETTLED_NS = 100_000_000
"""A file that changed less than this ago is not remembered: the next change could leave the same times (a tick is some milliseconds)."""


def stamp_of(path: Path) -> Stamp | None:
    """Inode, size and times of a file; None where it cannot be read."""
    try:
        about = path.stat()
    except OSError:
        return None
    return (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


class DocumentCache(Generic[T]):
    """Values read from files, by path: read again once the stat of the file has changed. Bounded by the characters that it holds. For
    several threads."""

    def __init__(self, most_characters: int = 8_000_000) -> None:
        self._most = most_characters
        self._held = 0
        self._entries: OrderedDict[Path, tuple[Stamp, T, int]] = OrderedDict()
        self._lock = Lock()

    def find(self, path: Path) -> T | None:
        """The value, where the file is as it was when it was read."""
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
        """Remember a value of `size` characters. `stamp`: of the file before it was read."""
        if stamp is None or size > self._most or time.time_ns() - max(stamp[2:]) < _SETTLED_NS:
            return
        with self._lock:
            if path in self._entries:
                self._remove(path)
            self._entries[path] = (stamp, value, size)
            self._held += size
            while self._held > self._most:
                self._remove(next(iter(self._entries)))

    def _remove(self, path: Path) -> None:
        self._held -= self._entries.pop(path)[2]


_TRIES = 5


@dataclass(frozen=True, slots=True)
class TurnFolder:
    """The folder of one revision. `texts` and `manifests`: what the store has read already."""

    root: Path
    path: Path
    key: TurnKey
    revision: int
    texts: DocumentCache[str] = field(default_factory=DocumentCache[str])
    manifests: DocumentCache[Manifest] = field(default_factory=DocumentCache[Manifest])

    def manifest(self) -> Manifest:
        path = document_path_inside(self.root, self.path / MANIFEST)
        if (known := self.manifests.find(path)) is not None:
            return known
        stamp = stamp_of(path)
        found = read_manifest(path, self.key, self.revision)
        self.manifests.store(path, stamp, found, stamp[1] if stamp else 0)
        return found

    def turn(self, only: Collection[str] | None = None) -> Turn:
        """The revision as of its last commit; raises DocumentError with the file, what it is, what was expected.

        `only`: the documents to read beside context.md; None for all.
        """
        manifest = self.manifest()
        for _ in range(_TRIES):
            try:
                return self._read(manifest, only)
            except DocumentError:
                # A commit by another process while we read looks like damage, unless the manifest is still the same.
                newer = self.manifest()
                if newer == manifest:
                    raise
                manifest = newer
        return self._read(manifest, only)

    def _read(self, manifest: Manifest, only: Collection[str] | None) -> Turn:
        context = self._context(manifest)
        named = {name: expected for name, expected in named_files(manifest).items() if only is None or name in only}
        files = {name: self._file(document_name(name), expected) for name, expected in named.items()}
        return Turn(self.key, manifest, context, files)

    def _text(self, path: Path, *, may_be_empty: bool) -> str:
        if (known := self.texts.find(path)) is not None:
            return known
        stamp = stamp_of(path)
        text = read_text(path, may_be_empty=may_be_empty)
        self.texts.store(path, stamp, text, len(text))
        return text

    def _file(self, name: str, expected: str) -> str:
        try:
            text = self._text(document_path_inside(self.root, self.path / name), may_be_empty=True)
        except DocumentError:
            if (kept := self._kept(expected)) is not None:
                return kept
            raise
        if sha(text) == expected:
            return text
        if (kept := self._kept(expected)) is not None:
            return kept
        raise DocumentError(f"{self.path / name}: {_damage(text, expected)}: expected sha256 {expected[:12]} as in {MANIFEST}")

    def _context(self, manifest: Manifest) -> str:
        path = document_path_inside(self.root, self.path / CONTEXT)
        try:
            return _as_committed(self._text(path, may_be_empty=False), manifest, str(path))
        except DocumentError:
            if (kept := self._kept(manifest.context_sha)) is not None:
                return kept
            raise

    def _kept(self, expected: str) -> str | None:
        path = self.path / KEPT / expected
        if len(expected) != 64 or not expected.isalnum() or not path.is_file():
            return None
        text = read_text(document_path_inside(self.root, path), may_be_empty=True)
        return text if sha(text) == expected else None


def named_files(manifest: Manifest) -> dict[str, str]:
    """Document name -> sha256 over all phases of the manifest."""
    return {name: expected for phase in manifest.phases for name, expected in phase.files.items()}


def section_hashes(context: ContextDocument) -> dict[str, str]:
    """Section number -> sha256 of its text, as `Manifest.sections` keeps them."""
    return {str(s.number): sha(s.text) for s in context.sections}


def _as_committed(text: str, manifest: Manifest, where: str) -> str:
    if sha(text) == manifest.context_sha:
        parse_context(text, where=where)
        return text
    document = parse_context(text, where=where)
    found = section_hashes(document)
    if missing := sorted(set(manifest.sections) - set(found)):
        raise DocumentError(f"{where}: section {', '.join(missing)} is missing: expected it as in {MANIFEST}")
    for number, expected in manifest.sections.items():
        if found[number] != expected:
            damage = _damage(_text(document, number), expected)
            raise DocumentError(f"{where}: section {number}: {damage}: expected sha256 {expected[:12]} as in {MANIFEST}")
    named = tuple(s for s in document.sections if str(s.number) in manifest.sections)
    left = ContextDocument(document.preamble, named).render()
    if sha(left) != manifest.context_sha:
        raise DocumentError(f"{where}: text outside its sections was changed: expected sha256 {manifest.context_sha[:12]} as in {MANIFEST}")
    return left


def _text(document: ContextDocument, number: str) -> str:
    found = document.section(int(number))
    return found.text if found else ""


def _damage(text: str, expected: str) -> str:
    if not text:
        return "empty"
    if sha(text.replace("\r\n", "\n")) == expected:
        return "its line ends were changed to CRLF"
    return f"changed since it was committed, sha256 {sha(text)[:12]}"
