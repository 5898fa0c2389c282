"""Puts whole turn folders in place: each is built in another folder, flushed to the disk, then renamed to its final path."""

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.turns import RECORDED, Manifest, PhaseRecord, Turn
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.disk.files import disk_errors, encode_text, make_folder, path_inside, sha, sync, write_open
from pandora_dagster.stores.disk.layout import CONTEXT, MANIFEST, Layout, document_name
from pandora_dagster.stores.turns.commits import context_fields
from pandora_dagster.stores.turns.manifests import render_manifest, updated_manifest
from pandora_dagster.stores.turns.turn_folder import named_files, turn_documents

TurnPlacement = tuple[TurnKey, Mapping[str, str], Manifest]
"""Key, texts by name, and manifest of a turn that an importer gives."""
_BATCH_FOLDERS = 32
"""Folders built at a time: their files stay open until the disk has them, and a process may have 1,024 open."""


@dataclass(frozen=True, slots=True)
class NewFolder:
    """A folder that does not exist yet: its final path, the folder where it is built, and its files."""

    target: Path
    staging_folder: Path
    contents: Mapping[str, bytes]


def recorded_turn(item: TurnPlacement, *, counter: TokenMeasure) -> Turn:
    """The turn that an importer's texts and manifest make, hashes and tokens filled in; raises DocumentError."""
    key, texts, manifest = item
    if (manifest.user_id, manifest.turn_id) != (key.user, key.turn_id):
        raise DocumentError(f"manifest of {manifest.user_id}:{manifest.turn_id}: expected that of {key}")
    context = texts.get(CONTEXT)
    if context is None:
        raise DocumentError(f"turn {key}: {CONTEXT} is missing: expected it among the files")
    files = {document_name(name): text for name, text in texts.items() if name != CONTEXT}
    fields = context_fields(context, where=f"{key}: {CONTEXT}", counter=counter)
    return Turn(key, updated_manifest(manifest, {**fields, "phases": _with_current_hashes(manifest, files)}), context, files)


def new_turn_folder(layout: Layout, turn: Turn) -> NewFolder:
    """The folder that `turn` becomes."""
    documents = {**turn_documents(turn), MANIFEST: render_manifest(turn.manifest)}
    contents = {name: encode_text(f"{turn.key}: {name}", text) for name, text in documents.items()}
    return NewFolder(layout.turn(turn.key, turn.manifest.revision), layout.incoming(turn.key.user), contents)


def place_folders(layout: Layout, folders: Sequence[NewFolder]) -> None:
    """Put new folders in place. Raises StoreError, after deleting what was built and is not in place.

    The bytes of many folders are written first and flushed afterwards, in fewer and larger steps.
    """
    built: list[tuple[Path, NewFolder]] = []
    with disk_errors(layout.root):
        try:
            for parent in dict.fromkeys(path for folder in folders for path in (folder.target.parent, folder.staging_folder)):
                make_folder(path_inside(layout.root, parent))
            for start in range(0, len(folders), _BATCH_FOLDERS):
                _build(folders[start : start + _BATCH_FOLDERS], built)
            for staged, folder in built:
                _move_into_place(staged, folder)
            for parent in dict.fromkeys(folder.target.parent for folder in folders):
                sync(parent)
        finally:
            for staged, _ in built:
                if staged.exists():
                    shutil.rmtree(staged, ignore_errors=True)


def _build(folders: Sequence[NewFolder], built: list[tuple[Path, NewFolder]]) -> None:
    """Build folders and wait until they are on the disk; each is added to `built` first, so that it is deleted after an error."""
    with ExitStack() as opened:
        descriptors: list[int] = []
        for folder in folders:
            staged = folder.staging_folder / f".{folder.target.name}.{secrets.token_hex(6)}.part"
            built.append((staged, folder))
            for inner in _folders_to_create(staged, folder):
                inner.mkdir()
                descriptors.append(_keep_open(os.open(inner, os.O_RDONLY | os.O_CLOEXEC), opened))
            for name, data in folder.contents.items():
                descriptors.append(_keep_open(write_open(staged / name, data), opened))
        for descriptor in reversed(descriptors):
            os.fsync(descriptor)


def _folders_to_create(staged: Path, folder: NewFolder) -> list[Path]:
    """The staged folder and the folders in it, outer ones first."""
    inner = {staged / above for name in folder.contents if "/" in name for above in PurePosixPath(name).parents}
    return sorted({staged, *inner})


def _keep_open(descriptor: int, opened: ExitStack) -> int:
    opened.callback(os.close, descriptor)
    return descriptor


def _move_into_place(staged: Path, folder: NewFolder) -> None:
    if folder.target.exists():
        raise StoreError(f"{folder.target}: already exists: expected a number that no turn has")
    os.rename(staged, folder.target)  # noqa: PTH104 - one primitive, the same that the kill tests count


def _with_current_hashes(manifest: Manifest, files: Mapping[str, str]) -> tuple[PhaseRecord, ...]:
    """The manifest's phases with the hashes of `files`; documents that no phase names belong to the phase `recorded`."""
    if missing := sorted(set(named_files(manifest)) - set(files)):
        raise DocumentError(f"turn {manifest.turn_id}: {', '.join(missing)}: named by a phase: expected them among the files")
    updated_phases = [phase.model_copy(update={"files": {name: sha(files[name]) for name in phase.files}}) for phase in manifest.phases]
    unnamed = {name: sha(text) for name, text in files.items() if name not in named_files(manifest)}
    if not unnamed:
        return tuple(updated_phases)
    return (PhaseRecord(phase=RECORDED, finished_at=manifest.last_activity, files=unnamed), *updated_phases)
