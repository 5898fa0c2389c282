"""One revision of a turn read from its folder and held against its manifest. Knows hashes; changes nothing.

What the manifest does not name has not happened: sections and files that a cut-off commit left are dropped. What it names
must be there, byte for byte; where a cut-off commit had already replaced it, the bytes kept beside it take its place.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.documents.sections import ContextDocument, parse_context
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.files import document_path_inside, read_text, sha
from pandora_dagster.stores.disk.layout import CONTEXT, KEPT, MANIFEST, document_name
from pandora_dagster.stores.turns.document_cache import DocumentCache, stamp_of
from pandora_dagster.stores.turns.manifests import read_manifest

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
