"""The TurnArchive port: archives and restores the folder of a turn; and the Holds port.

The manifest is the commit point: until `turn.json` is replaced the turn is active and reads as before, because replaced documents are in
`.kept`; from then on it is archived. Many turns are committed together, so that they are flushed to the disk together.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pandora_dagster.contracts.archive_records import ArchiveRecord, Hold
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports.archive_storage import ColdStorage
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.stores.disk.files import (
    disk_errors,
    encode_text,
    is_stray,
    path_inside,
    read_bytes,
    sha,
    write_files,
)
from pandora_dagster.stores.disk.layout import CALLS, CONTEXT, HOLD, KEPT, LOCK, MANIFEST, Layout
from pandora_dagster.stores.disk.record_files import RecordFiles, StorageRoot
from pandora_dagster.stores.disk.turn_directory import newest_revision
from pandora_dagster.stores.turns.cold_files import revision_prefix
from pandora_dagster.stores.turns.commits import check_query, context_fields, keep_replaced, release_replaced
from pandora_dagster.stores.turns.manifests import read_manifest, render_manifest, updated_manifest
from pandora_dagster.stores.turns.turn_folder import TurnFolder, named_files, turn_documents

_NOT_ARCHIVED = frozenset({CALLS, LOCK, HOLD})
"""Files that stay in the folder, because they are no documents: the log of calls, the lock, the hold."""


@dataclass(frozen=True, slots=True)
class TurnArchiveFolders:
    """The `TurnArchive` port below one store root. The caller holds the turns' locks."""

    root: Path
    cold: ColdStorage
    counter: TokenMeasure

    def size(self, key: TurnKey) -> int:
        """The sum of the file sizes in the turn's folder; 0 for a turn that does not exist. Never raises."""
        size = 0
        for folder, _, names in os.walk(Layout(self.root).turn(key)):
            for name in names:
                with suppress(OSError):
                    size += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 - ten thousand times in an archival run
        return size

    def originals(self, key: TurnKey) -> tuple[Turn, Mapping[str, bytes]]:
        """The newest revision, and name -> bytes of every file that goes to cold storage.

        Documents that a manifest names are verified and as of the last commit; all other files are copied byte for byte. Raises
        UnknownTurnError; DocumentError for a document that contradicts its manifest, and for anything that is no regular file.
        """
        base = self._base(key)
        newest: Turn | None = None
        files: dict[str, bytes] = {}
        for number in range(newest_revision(base) + 1):
            folder = Layout(self.root).turn(key, number)
            if not folder.is_dir():
                continue
            newest = TurnFolder(self.root, folder, key, number).turn()
            for name, text in turn_documents(newest).items():
                files[revision_prefix(number) + name] = encode_text(f"{folder / name}", text)
        files |= {name: read_bytes(path) for name, path in _document_files(base) if name not in files}
        if newest is None:
            raise DocumentError(f"{base}: empty: expected a turn")
        return newest, files

    def archived_turn(self, turn: Turn, texts: Mapping[str, str], record: ArchiveRecord) -> Turn:
        """The turn as it will be archived: `texts` are its documents, context.md included. Raises DocumentError where section 0 differs."""
        where = f"turn {turn.key}: {CONTEXT} as archived"
        context = texts[CONTEXT]
        files = {name: text for name, text in texts.items() if name != CONTEXT}
        phases = tuple(
            phase.model_copy(update={"files": {name: sha(files[name]) for name in phase.files if name in files}})
            for phase in turn.manifest.phases
        )
        fields = {"state": TurnState.ARCHIVED, "archive": record, "phases": phases}
        manifest = updated_manifest(turn.manifest, {**fields, **context_fields(context, where=where, counter=self.counter)})
        check_query(turn.manifest, manifest, where)
        return Turn(turn.key, manifest, context, files)

    def commit(self, turns: Sequence[tuple[Turn, Turn]]) -> None:
        """Archive turns, given as pairs (stored, archived): documents are written first, `turn.json` last. Raises StoreError."""
        kept: list[tuple[Path, bytes]] = []
        documents: list[tuple[Path, bytes]] = []
        manifests: list[tuple[Path, bytes]] = []
        for before, after in turns:
            folder = path_inside(self.root, Layout(self.root).turn(after.key, after.manifest.revision))
            stored_texts = turn_documents(before)
            for name, text in turn_documents(after).items():
                if text != (stored_text := stored_texts[name]):
                    kept.append((folder / KEPT / sha(stored_text), encode_text(f"{folder / name}", stored_text)))
                    documents.append((folder / name, encode_text(f"{folder / name}", text)))
            manifests.append((folder / MANIFEST, render_manifest(after.manifest).encode()))
        with disk_errors(self.root):
            write_files(dict(kept))
            write_files(dict(documents), new_folders=False)
            write_files(dict(manifests), new_folders=False)

    def remove_unnamed(self, manifests: Iterable[Manifest]) -> None:
        """Delete what the manifests of archived turns do not name: other documents and older revisions. Raises StoreError."""
        for manifest in manifests:
            base = self._base(manifest.key)
            prefix = revision_prefix(manifest.revision)
            named = {prefix + name for name in (MANIFEST, CONTEXT, *named_files(manifest))}
            with disk_errors(base, "cannot clean up"):
                _remove_unnamed_files(base, named, keep=Layout(self.root).turn(manifest.key, manifest.revision))

    def reconcile(self, key: TurnKey) -> None:
        """Make an archived turn's folder match its manifest, after an interrupted archival or restore.

        Raises DocumentError where its documents are damaged, StoreError.
        """
        folder, manifest = self._newest(key)
        turn = TurnFolder(self.root, folder, key, manifest.revision).turn()  # reads kept documents where files were replaced
        documents = {name: encode_text(f"{folder / name}", text) for name, text in turn_documents(turn).items()}
        with disk_errors(folder):
            changed = {folder / name: data for name, data in documents.items() if _bytes_or_none(folder / name) != data}
            write_files(changed, new_folders=False)
        self.remove_unnamed([manifest])

    def restore(self, key: TurnKey) -> Turn:
        """Restore the originals byte for byte, the newest revision's `turn.json` last. Raises DocumentError, StoreError.

        An interrupted restore leaves the archived turn, and can be repeated.
        """
        folder, manifest = self._newest(key)
        if manifest.archive is None:
            raise DocumentError(f"{folder / MANIFEST}: the turn is {manifest.state}: expected an archived one")
        archived = TurnFolder(self.root, folder, key, manifest.revision)
        files = self.cold.read(manifest.archive)
        manifest_name = revision_prefix(manifest.revision) + MANIFEST
        if manifest_name not in files:
            raise DocumentError(
                f"{manifest.archive.cold}: {manifest_name}: missing: expected the manifest of the newest revision", missing=True
            )
        base = self._base(key)
        targets = {name: path_inside(self.root, _restore_path(base, name)) for name in files}
        keep_replaced(folder, _documents_to_replace(archived, files, revision_prefix(manifest.revision)))
        with disk_errors(base):
            write_files({targets[name]: data for name, data in files.items() if name != manifest_name})
            write_files({targets[manifest_name]: files[manifest_name]}, new_folders=False)
            _remove_temporary_files(base)
        release_replaced(folder)
        return TurnFolder(self.root, folder, key, manifest.revision).turn()

    def clear_leftovers(self, key: TurnKey) -> None:
        """Delete what a restore left that was interrupted after its commit point, where the documents are whole. Raises DocumentError."""
        folder, manifest = self._newest(key)
        turn = TurnFolder(self.root, folder, key, manifest.revision).turn()
        if all(_bytes_or_none(folder / name) == text.encode() for name, text in turn_documents(turn).items()):
            release_replaced(folder)

    def _base(self, key: TurnKey) -> Path:
        layout = Layout(self.root)
        base = layout.turn(key)
        if not os.path.lexists(base):
            raise UnknownTurnError(f"turn {key}: there is no {base}: expected a turn that exists")
        if base.is_symlink():
            raise DocumentError(f"{base}: a link: expected the folder of a turn", hint="remove the link")
        return path_inside(self.root, base)

    def _newest(self, key: TurnKey) -> tuple[Path, Manifest]:
        number = newest_revision(self._base(key))
        folder = Layout(self.root).turn(key, number)
        return folder, read_manifest(path_inside(self.root, folder / MANIFEST), key, number)


class HoldFiles:
    """The Holds port: `hold.json` beside the first manifest of a turn."""

    def __init__(self, storage: StorageRoot) -> None:
        pattern, hint = f"users/{{user}}/turns/{{turn}}/{HOLD}", "remove the file to let the turn be archived"
        self._files = RecordFiles(storage, pattern, Hold, expected="a hold", hint=hint)

    def find(self, key: TurnKey) -> Hold | None:
        """The hold of a turn, None where there is none; raises DocumentError for a damaged one, which may be a pin."""
        return self._files.find(key.user, key.turn_id)

    def put(self, key: TurnKey, hold: Hold) -> None:
        """Write a hold over an older one; raises StoreError."""
        self._files.put(hold, key.user, key.turn_id)

    def remove(self, key: TurnKey) -> bool:
        """Delete the hold of a turn; True where there was one. Raises StoreError."""
        return self._files.delete(key.user, key.turn_id)


def _document_files(base: Path) -> Iterator[tuple[str, Path]]:
    """Name in the turn and path of each document; raises DocumentError for what is neither a file nor a folder."""
    pending = [base]
    while pending:
        folder = pending.pop()
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                path = Path(entry.path)
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    pending += [] if entry.name == KEPT else [path]
                elif not stat.S_ISREG(mode):
                    description = "a link" if stat.S_ISLNK(mode) else "no file"
                    raise DocumentError(f"{path}: {description}: expected the documents of a turn", hint="remove it")
                elif entry.name not in _NOT_ARCHIVED and not is_stray(entry.name):
                    yield path.relative_to(base).as_posix(), path


def _bytes_or_none(path: Path) -> bytes | None:
    """The bytes of a file, None where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def _restore_path(base: Path, name: str) -> Path:
    """The path of an original; raises DocumentError for a name that leads out of the turn's folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts or path.as_posix() != name or path.name in _NOT_ARCHIVED:
        raise DocumentError(f"{base}: original {name[:200]!r}: expected a document's name inside the turn")
    return base / path


def _documents_to_replace(archived: TurnFolder, files: Mapping[str, bytes], prefix: str) -> dict[str, str]:
    """Name -> text of the compressed documents that the originals will replace; none of a damaged turn, which need not be kept."""
    try:
        turn = archived.turn()
    except DocumentError:
        return {}
    return {name: text for name, text in turn_documents(turn).items() if files.get(prefix + name) != text.encode()}


def _remove_temporary_files(base: Path) -> None:
    """Delete the temporary files of interrupted writes, except those of the hold, which is written without the turn's lock."""
    for folder, _, names in os.walk(base):
        for name in names:
            if is_stray(name) and not name.startswith(f".{HOLD}."):
                Path(folder, name).unlink(missing_ok=True)


def _remove_unnamed_files(base: Path, named: AbstractSet[str], *, keep: Path) -> None:
    """Delete every file that is not named and does not stay, then every empty folder except `keep`; links are not followed."""
    for folder, _, names in os.walk(base, topdown=False):
        within = f"{folder[len(str(base)) + 1 :]}/".lstrip("/")
        for name in names:
            if within + name not in named and name not in _NOT_ARCHIVED and not name.startswith(f".{HOLD}."):
                Path(folder, name).unlink(missing_ok=True)
        if folder not in (str(base), str(keep)):
            with suppress(OSError):
                Path(folder).rmdir()
