"""A turn's folder on its way to the archive and back. Knows which files are originals, and the order in which a folder changes.

The manifest is the commit point: until `turn.json` is replaced the turn is active and reads as before (what was replaced is in `.kept`),
after it the turn is archived. Many turns switch together, so that they wait for the disk together.
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
from pandora_dagster.stores.turns.turn_folder import TurnFolder, named_files

_STAY = frozenset({CALLS, LOCK, HOLD})
"""No documents: the log of calls, the lock, what keeps the turn from archival. They stay where they are."""


@dataclass(frozen=True, slots=True)
class TurnArchiveFolders:
    """The `TurnArchive` port below one store root. The caller holds the turns' locks."""

    root: Path
    cold: ColdStorage
    counter: TokenMeasure

    def size(self, key: TurnKey) -> int:
        """Bytes of what `originals` would read, by what the disk says of them; 0 for a turn that is not there. Never raises."""
        found = 0
        for folder, _, names in os.walk(Layout(self.root).turn(key)):
            for name in names:
                with suppress(OSError):
                    found += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 - ten thousand times in an archival run
        return found

    def originals(self, key: TurnKey) -> tuple[Turn, Mapping[str, bytes]]:
        """The newest revision, and every file of the turn's folder that goes to cold storage by its name there.

        What manifests name comes as it was committed and checked against them, whatever a cut-off commit left behind; the rest byte
        for byte. Raises UnknownTurnError; DocumentError for a document that contradicts its manifest, for a link and for no file.
        """
        base = self._base(key)
        newest: Turn | None = None
        found: dict[str, bytes] = {}
        for number in range(newest_revision(base) + 1):
            folder = Layout(self.root).turn(key, number)
            if not folder.is_dir():
                continue
            newest = TurnFolder(self.root, folder, key, number).turn()
            for name, text in ((CONTEXT, newest.context), *newest.files.items()):
                found[revision_prefix(number) + name] = encode_text(f"{folder / name}", text)
        found |= {name: read_bytes(path) for name, path in _files(base) if name not in found}
        if newest is None:
            raise DocumentError(f"{base}: empty: expected a turn")
        return newest, found

    def archived_turn(self, turn: Turn, texts: Mapping[str, str], record: ArchiveRecord) -> Turn:
        """The turn as it will be stored: `texts` are its documents, context.md among them. Raises DocumentError where section 0 differs."""
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
        """Each turn as it is stored and as it is archived. Its documents first, `turn.json` last; raises StoreError."""
        kept: list[tuple[Path, bytes]] = []
        documents: list[tuple[Path, bytes]] = []
        manifests: list[tuple[Path, bytes]] = []
        for before, after in turns:
            folder = path_inside(self.root, Layout(self.root).turn(after.key, after.manifest.revision))
            old = {CONTEXT: before.context, **before.files}
            for name, text in ((CONTEXT, after.context), *after.files.items()):
                if text != old[name]:
                    kept.append((folder / KEPT / sha(old[name]), encode_text(f"{folder / name}", old[name])))
                    documents.append((folder / name, encode_text(f"{folder / name}", text)))
            manifests.append((folder / MANIFEST, render_manifest(after.manifest).encode()))
        with disk_errors(self.root):
            write_files(dict(kept))
            write_files(dict(documents), new_folders=False)
            write_files(dict(manifests), new_folders=False)

    def remove_unnamed(self, manifests: Iterable[Manifest]) -> None:
        """Take away what archived turns no longer name: their other documents, their older revisions. Raises StoreError."""
        for manifest in manifests:
            base = self._base(manifest.key)
            prefix = revision_prefix(manifest.revision)
            named = {prefix + name for name in (MANIFEST, CONTEXT, *named_files(manifest))}
            with disk_errors(base, "cannot clean up"):
                _remove_others(base, named, keep=Layout(self.root).turn(manifest.key, manifest.revision))

    def reconcile(self, key: TurnKey) -> None:
        """Bring an archived turn's folder to what its manifest says, whatever an archival or a restoring that was cut off left in it.

        Raises DocumentError where its documents are damaged, StoreError.
        """
        folder, manifest = self._newest(key)
        turn = TurnFolder(self.root, folder, key, manifest.revision).turn()  # what was about to be replaced is read where it was kept
        documents = {name: encode_text(f"{folder / name}", text) for name, text in ((CONTEXT, turn.context), *turn.files.items())}
        with disk_errors(folder):
            changed = {folder / name: data for name, data in documents.items() if _on_disk(folder / name) != data}
            write_files(changed, new_folders=False)
        self.remove_unnamed([manifest])

    def restore(self, key: TurnKey) -> Turn:
        """The originals back, byte for byte, the newest revision's `turn.json` last. Raises DocumentError, StoreError.

        A restoring that is cut off leaves the archived turn, and can be done again.
        """
        folder, manifest = self._newest(key)
        if manifest.archive is None:
            raise DocumentError(f"{folder / MANIFEST}: the turn is {manifest.state}: expected an archived one")
        archived = TurnFolder(self.root, folder, key, manifest.revision)
        files = self.cold.read(manifest.archive)
        last = revision_prefix(manifest.revision) + MANIFEST
        if last not in files:
            raise DocumentError(f"{manifest.archive.cold}: {last}: missing: expected the manifest of the newest revision", missing=True)
        base = self._base(key)
        targets = {name: path_inside(self.root, _target(base, name)) for name in files}
        keep_replaced(folder, _replaced(archived, files, revision_prefix(manifest.revision)))
        with disk_errors(base):
            write_files({targets[name]: data for name, data in files.items() if name != last})
            write_files({targets[last]: files[last]}, new_folders=False)
            _remove_parts(base)
        release_replaced(folder)
        return TurnFolder(self.root, folder, key, manifest.revision).turn()

    def clear_leftovers(self, key: TurnKey) -> None:
        """Take away what a restoring that was cut off after its switch left, where the documents are whole. Raises DocumentError."""
        folder, manifest = self._newest(key)
        turn = TurnFolder(self.root, folder, key, manifest.revision).turn()
        if all(_on_disk(folder / name) == text.encode() for name, text in ((CONTEXT, turn.context), *turn.files.items())):
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
        """Raises DocumentError for a damaged one: it may be a pin."""
        return self._files.find(key.user, key.turn_id)

    def put(self, key: TurnKey, hold: Hold) -> None:
        """Write a hold in the place of an older one; raises StoreError."""
        self._files.put(hold, key.user, key.turn_id)

    def remove(self, key: TurnKey) -> bool:
        """True where there was one; raises StoreError."""
        return self._files.delete(key.user, key.turn_id)


def _files(base: Path) -> Iterator[tuple[str, Path]]:
    """The files of a turn that are documents, by their name in the turn; raises DocumentError for what is neither file nor folder."""
    waiting = [base]
    while waiting:
        folder = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                path = Path(entry.path)
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    waiting += [] if entry.name == KEPT else [path]
                elif not stat.S_ISREG(mode):
                    what = "a link" if stat.S_ISLNK(mode) else "no file"
                    raise DocumentError(f"{path}: {what}: expected the documents of a turn", hint="remove it")
                elif entry.name not in _STAY and not is_stray(entry.name):
                    yield path.relative_to(base).as_posix(), path


def _on_disk(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _target(base: Path, name: str) -> Path:
    """Where an original lies; raises DocumentError for a name that would lead out of the turn's folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts or path.as_posix() != name or path.name in _STAY:
        raise DocumentError(f"{base}: original {name[:200]!r}: expected a document's name inside the turn")
    return base / path


def _replaced(archived: TurnFolder, files: Mapping[str, bytes], prefix: str) -> dict[str, str]:
    """The compressed documents that originals are about to take the place of; damaged ones are no loss, and not kept."""
    try:
        turn = archived.turn()
    except DocumentError:
        return {}
    return {name: text for name, text in ((CONTEXT, turn.context), *turn.files.items()) if files.get(prefix + name) != text.encode()}


def _remove_parts(base: Path) -> None:
    """What writes that were cut off left; a hold may be written now, without the turn's lock."""
    for folder, _, names in os.walk(base):
        for name in names:
            if is_stray(name) and not name.startswith(f".{HOLD}."):
                Path(folder, name).unlink(missing_ok=True)


def _remove_others(base: Path, named: AbstractSet[str], *, keep: Path) -> None:
    """Every file but the named ones and those that stay, and every folder but `keep` that holds nothing then; links are not followed."""
    for folder, _, names in os.walk(base, topdown=False):
        within = f"{folder[len(str(base)) + 1 :]}/".lstrip("/")
        for name in names:
            if within + name not in named and name not in _STAY and not name.startswith(f".{HOLD}."):
                Path(folder, name).unlink(missing_ok=True)
        if folder not in (str(base), str(keep)):
            with suppress(OSError):
                Path(folder).rmdir()
