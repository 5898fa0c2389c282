"""Prepares a commit: the next manifest and the bytes to write, checked before the disk is touched; and keeps what it replaces."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.turns import Manifest, PhaseRecord, Turn
from pandora_dagster.documents.sections import ContextDocument, parse_context
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.disk.files import disk_errors, encode_text, sha, write_all
from pandora_dagster.stores.disk.layout import CONTEXT, KEPT, document_name
from pandora_dagster.stores.turns.manifests import updated_manifest
from pandora_dagster.stores.turns.turn_folder import section_hashes

# Replaced documents are kept until `turn.json` is written, so that an interrupted commit has no effect.


def keep_replaced(folder: Path, replaced: Mapping[str, str]) -> None:
    """Keep each document that is about to be replaced (name -> its committed text) under its sha256. Raises StoreError.

    The text comes from memory, because an interrupted commit may have left other bytes in the file.
    """
    if not replaced:
        return
    kept = folder / KEPT
    with disk_errors(kept):
        kept.mkdir(exist_ok=True)
    write_all(kept, {sha(text): encode_text(name, text) for name, text in replaced.items()})


def release_replaced(folder: Path) -> None:
    """Delete the kept documents; what cannot be deleted is harmless and is deleted by the next commit."""
    if (folder / KEPT).is_dir():
        shutil.rmtree(folder / KEPT, ignore_errors=True)


_NEXT_STATES: Mapping[TurnState, frozenset[TurnState]] = {
    TurnState.OPEN: frozenset({TurnState.HALTED, TurnState.CLARIFY, TurnState.SAVED}),
    TurnState.HALTED: frozenset({TurnState.OPEN, TurnState.ABANDONED}),
}
"""State -> the other states that a commit may lead to. Only `reopen` opens a finished turn; `stores.turns.archive_folders` archives one."""
_CALLER_FIELDS = frozenset({"intervention", "runtime", "summary", "replies_to", "recorded", "last_activity", "tool_run"})


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """A commit, ready to be written: the turn as it will be stored, its new documents, and what they replace."""

    turn: Turn
    documents: Mapping[str, bytes]
    """Name -> bytes, in the order of writing; context.md last."""
    replaced: Mapping[str, str]
    """Name -> committed text that `documents` replaces."""


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """The changes that the caller of a commit asks for."""

    phase: PhaseRecord | None
    context: str | None
    files: Mapping[str, str]
    state: TurnState | None
    fields: Mapping[str, Any]
    """Manifest fields by name; their values are those of Manifest."""


def prepare_commit(turn: Turn, request: CommitRequest, *, where: str, now: datetime, counter: TokenMeasure) -> PreparedCommit:
    """The commit that `request` makes of `turn`; raises DocumentError or StoreError before anything is written."""
    _check_fields(request.fields)
    check_active(turn.manifest, where)
    files = {document_name(name): text for name, text in request.files.items() if turn.files.get(name) != text}
    context = turn.context if request.context is None else request.context
    fields: dict[str, object] = {
        "last_activity": iso(now),
        "tool_run": None,
        **request.fields,
        "state": _next_state(turn.manifest, request.state, where),
    }
    fields["phases"] = _updated_phases(turn, request.phase, request.files, where)
    documents = {name: encode_text(f"{where}/{name}", text) for name, text in files.items()}
    if context != turn.context:
        documents[CONTEXT] = encode_text(f"{where}/{CONTEXT}", context)
        fields |= context_fields(context, where=f"{where}/{CONTEXT}", counter=counter)
    after = Turn(turn.key, updated_manifest(turn.manifest, fields), context, {**turn.files, **files})
    check_query(turn.manifest, after.manifest, f"{where}/{CONTEXT}")
    return PreparedCommit(after, documents, _replaced_documents(turn, after))


def check_active(manifest: Manifest, where: str) -> None:
    """Raises StoreError for an archived turn, which must be restored before it is changed."""
    if manifest.state is TurnState.ARCHIVED:
        message = f"{where}: the turn is archived: expected one that is not"
        raise StoreError(message, hint=f"its originals come back with: pandora restore {manifest.user_id}:{manifest.turn_id}")


def context_fields(context: str, *, where: str, counter: TokenMeasure) -> dict[str, object]:
    """The manifest fields that describe a context.md: hashes and tokens. Raises DocumentError where it is not sound."""
    encode_text(where, context)
    document = parse_context(context, where=where)
    return {"sections": section_hashes(document), "context_sha": sha(context), "tokens": counter.count(context)}


def iso(moment: datetime) -> str:
    """`2026-01-04T14:30:00Z`: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _check_fields(fields: Mapping[str, Any]) -> None:
    if unknown := sorted(set(fields) - _CALLER_FIELDS):
        raise TypeError(f"commit: {', '.join(unknown)}: expected only {', '.join(sorted(_CALLER_FIELDS))}")


def _replaced_documents(before: Turn, after: Turn) -> dict[str, str]:
    """The committed documents that the commit replaces; not a context.md that only gains sections: its old ones stay readable."""
    documents = {name: text for name, text in before.files.items() if after.files[name] != text}
    keeps_sections = before.manifest.sections.items() <= after.manifest.sections.items()
    keeps_preamble = ContextDocument.parse(before.context).preamble == ContextDocument.parse(after.context).preamble
    return documents if keeps_sections and keeps_preamble else {**documents, CONTEXT: before.context}


def check_query(before: Manifest, after: Manifest, where: str) -> None:
    """Verify that section 0, the query, is unchanged; raises DocumentError."""
    if after.sections.get("0") != before.sections.get("0"):
        raise DocumentError(f"{where}: section 0 was changed: expected the query as the user wrote it")


def _next_state(manifest: Manifest, requested: TurnState | None, where: str) -> TurnState:
    """The requested state, or the present one; raises StoreError for a state that may not follow."""
    if requested is None or requested == manifest.state or requested in _NEXT_STATES.get(manifest.state, frozenset()):
        return requested or manifest.state
    allowed = ", ".join(sorted(_NEXT_STATES.get(manifest.state, frozenset()))) or "no other"
    raise StoreError(f"{where}: state {manifest.state} cannot become {requested}: expected {allowed}", hint="reopen the turn first")


def _updated_phases(turn: Turn, phase: PhaseRecord | None, files: Mapping[str, str], where: str) -> tuple[PhaseRecord, ...]:
    """The phase records after the commit. A document belongs to the phase that wrote it first; a later one may rewrite it.

    Without a phase, new documents belong to the last one."""
    hashes = {name: sha(text) for name, text in files.items()}
    owned_names = {name for record in turn.manifest.phases for name in record.files}
    updated = [r.model_copy(update={"files": {n: hashes.get(n, h) for n, h in r.files.items()}}) for r in turn.manifest.phases]
    new_hashes = {name: value for name, value in hashes.items() if name not in owned_names}
    if phase is None:
        if new_hashes and not updated:
            raise DocumentError(f"{where}: {', '.join(sorted(new_hashes))}: written by no phase: expected a phase record with them")
        return (*updated[:-1], _with_files(updated[-1], new_hashes)) if updated else ()
    if unknown := sorted(set(phase.files) - owned_names - set(hashes)):
        raise DocumentError(f"{where}: phase {phase.phase} names {', '.join(unknown)}: expected the texts of all new documents")
    return _with_phase(updated, phase.model_copy(update={"files": new_hashes}))


def _with_phase(records: list[PhaseRecord], phase: PhaseRecord) -> tuple[PhaseRecord, ...]:
    """`phase` after the others, or in the place of its earlier record, whose documents it keeps."""
    if all(r.phase != phase.phase for r in records):
        return (*records, phase)
    return tuple(_with_files(phase, {**r.files, **phase.files}) if r.phase == phase.phase else r for r in records)


def _with_files(record: PhaseRecord, files: Mapping[str, str]) -> PhaseRecord:
    return record.model_copy(update={"files": {**record.files, **files}})
