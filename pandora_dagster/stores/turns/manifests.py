"""`turn.json`: reading, validation, migration of older formats, rendering."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import FORMAT_VERSION, Manifest
from pandora_dagster.documents.plain_json import PlainDataError, parse_json_object
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.files import read_text

RawManifest = dict[str, Any]
"""The JSON object before it is validated."""


def read_manifest(path: Path, key: TurnKey, revision: int) -> Manifest:
    """The manifest at `path`, which must be that of this turn and revision; raises DocumentError."""
    manifest = parse_manifest(read_text(path), where=str(path))
    identity = (manifest.user_id, manifest.turn_id, manifest.revision)
    if identity != (key.user, key.turn_id, revision):
        raise DocumentError(f"{path}: it describes {identity[0]}:{identity[1]} revision {identity[2]}: expected {key} revision {revision}")
    return manifest


def parse_manifest(text: str, *, where: str) -> Manifest:
    """A manifest of any known format; raises DocumentError with every fault."""
    try:
        raw = parse_json_object(text)
    except PlainDataError as error:
        raise DocumentError(f"{where}: {error}: expected a turn's manifest") from error
    try:
        return Manifest.model_validate(migrate(raw, where=where))
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise DocumentError(f"{where}: {faults}") from error


def render_manifest(manifest: Manifest) -> str:
    """The manifest as stored in `turn.json`."""
    return manifest.model_dump_json(indent=1) + "\n"


def updated_manifest(manifest: Manifest, changes: Mapping[str, object]) -> Manifest:
    """A changed copy, checked, with values exactly as they will be read back (tuples in reports become lists)."""
    try:
        changed = Manifest.model_validate({**{name: getattr(manifest, name) for name in Manifest.model_fields}, **changes})
    except ValidationError as error:
        raise ValueError(f"manifest of {manifest.user_id}:{manifest.turn_id}: {error}") from error
    return Manifest.model_validate_json(changed.model_dump_json())


def migrate(raw: RawManifest, *, where: str) -> RawManifest:
    """A manifest of an older format in today's; raises DocumentError for a format this program does not know."""
    version = raw.get("format_version", 0)
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise DocumentError(f"{where}: format_version {version!r}: expected a number from 0 to {FORMAT_VERSION}")
    if version > FORMAT_VERSION:
        message = f"{where}: format_version {version}: expected at most {FORMAT_VERSION}, the newest that this program knows"
        raise DocumentError(message, hint="the turn was written by a newer pandora-dagster: install that version")
    for migration in _MIGRATIONS[version:]:
        raw = migration(raw)
    return raw


def _add_last_activity(raw: RawManifest) -> RawManifest:
    """0 -> 1: a manifest without `format_version`; where it has no `last_activity`, the turn's creation is used."""
    return {"last_activity": raw.get("created_at"), **raw, "format_version": 1}


def _add_archive(raw: RawManifest) -> RawManifest:
    """1 -> 2: a turn can be archived; none of the older format is."""
    return {"archive": None, **raw, "format_version": 2}


def _add_metadata(raw: RawManifest) -> RawManifest:
    """2 -> 3: a turn can have metadata of a client; none of the older format has."""
    return {"metadata": {}, **raw, "format_version": 3}


_MIGRATIONS: tuple[Callable[[RawManifest], RawManifest], ...] = (_add_last_activity, _add_archive, _add_metadata)
"""Migration i leads from format i to format i + 1."""
