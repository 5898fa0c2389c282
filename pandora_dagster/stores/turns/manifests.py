"""`turn.json`: read, checked, brought up to date, written."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import FORMAT_VERSION, Manifest
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.files import read_text

Raw = dict[str, Any]
"""JSON as it was read, before it is a model: its values are anything."""


def read_manifest(path: Path, key: TurnKey, revision: int) -> Manifest:
    """The manifest at `path`, which must be that of this turn and revision; raises DocumentError."""
    manifest = parse_manifest(read_text(path), where=str(path))
    says = (manifest.user_id, manifest.turn_id, manifest.revision)
    if says != (key.user, key.turn_id, revision):
        raise DocumentError(f"{path}: it describes {says[0]}:{says[1]} revision {says[2]}: expected {key} revision {revision}")
    return manifest


def parse_manifest(text: str, *, where: str) -> Manifest:
    """A manifest of any known format; raises DocumentError with every fault."""
    try:
        raw: object = json.loads(text)
    except ValueError as error:
        raise DocumentError(f"{where}: not JSON: {error}: expected a turn's manifest") from error
    if not isinstance(raw, dict):
        raise DocumentError(f"{where}: {type(raw).__name__}: expected a JSON object")
    try:
        return Manifest.model_validate(migrate(cast("Raw", raw), where=where))
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


def migrate(raw: Raw, *, where: str) -> Raw:
    """A manifest of an older format in today's; raises DocumentError for a format this program does not know."""
    version = raw.get("format_version", 0)
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise DocumentError(f"{where}: format_version {version!r}: expected a number from 0 to {FORMAT_VERSION}")
    if version > FORMAT_VERSION:
        message = f"{where}: format_version {version}: expected at most {FORMAT_VERSION}, the newest that this program knows"
        raise DocumentError(message, hint="the turn was written by a newer pandora-dagster: install that version")
    for step in _STEPS[version:]:
        raw = step(raw)
    return raw


def _with_last_activity(raw: Raw) -> Raw:
    """0 -> 1: a manifest without `format_version`; where it has no `last_activity`, the turn's creation is used."""
    return {"last_activity": raw.get("created_at"), **raw, "format_version": 1}


def _with_archive(raw: Raw) -> Raw:
    """1 -> 2: a turn can be archived; none of the older format is."""
    return {"archive": None, **raw, "format_version": 2}


def _with_metadata(raw: Raw) -> Raw:
    """2 -> 3: a turn can have metadata of a client; none of the older format has."""
    return {"metadata": {}, **raw, "format_version": 3}


_STEPS: tuple[Callable[[Raw], Raw], ...] = (_with_last_activity, _with_archive, _with_metadata)
"""Step i leads from format i to format i + 1."""
