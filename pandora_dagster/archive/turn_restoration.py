"""Restoring an archived turn, byte for byte. A crash leaves either the archived turn or the restored one."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from pandora_dagster.archive.turn_archival import ArchiveContext
from pandora_dagster.contracts.archive_records import Hold
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.errors import OriginalsDeletedError, PandoraError
from pandora_dagster.language.timestamps import format_timestamp

RESTORE_REASON = "restored"
"""Reason of the hold of a restored turn."""


@dataclass(frozen=True, slots=True)
class RestoredTurn:
    """The restored turn and its hold. `was_archived`: False where there was nothing to restore."""

    turn: Turn
    hold: Hold | None
    was_archived: bool


def restore(key: TurnKey, ctx: ArchiveContext) -> RestoredTurn:
    """Restore a turn as it was before it was archived, with a hold of `after_days` days, after which a new turn would be due.

    Raises DocumentError, StoreError, OriginalsDeletedError.

    The hold, the row and the lineage are written before the commit point: an interrupted restore leaves an archived turn that the next
    archival run finds by its row, or the restored turn beside leftovers. A turn that is not archived gets its row again, in
    case that is out of date.
    """
    with ctx.deps.turns.lock(key):
        manifest = ctx.deps.turns.manifest(key)
        if manifest.archive is None:
            turn = ctx.deps.turns.load(key)
            ctx.folders.clear_leftovers(key)
            ctx.index_row(turn.manifest, turn)
            ctx.put_lineage([(turn.manifest, turn)])
            return RestoredTurn(turn, ctx.holds.find(key), was_archived=False)
        if tombstone := ctx.cold.tombstone(manifest.archive):
            raise OriginalsDeletedError(
                f"{key}: it cannot be restored: its originals were {tombstone.description}",
                missing=True,
                hint=f"to show its remaining documents: pandora show {key}",
            )
        original = ctx.deps.turns.original(key)
        hold = _hold_restored(key, ctx)
        ctx.index_row(original.manifest, original)  # before the lineage: a later run skips a turn whose row says archived
        ctx.put_lineage([(original.manifest, original)])
        try:
            turn = ctx.folders.restore(key)
        except BaseException:
            ctx.put_lineage([(manifest, original)])
            ctx.index_row(manifest, original)
            with suppress(PandoraError):  # a refusing disk: the next restore, archival or prune run finishes it
                ctx.folders.reconcile(key)
            raise
        return RestoredTurn(turn, hold, was_archived=True)


def pin(key: TurnKey, ctx: ArchiveContext, *, why: str = "pinned") -> Hold:
    """Put a hold without end on a turn, in place of any other. Raises StoreError."""
    with ctx.deps.turns.lock(key):
        hold = Hold(until=None, why=why, at=ctx.deps.now)
        ctx.holds.put(key, hold)
    return hold


def unpin(key: TurnKey, ctx: ArchiveContext) -> bool:
    """Remove a turn's hold, whatever its end; False where it had none. Raises StoreError."""
    with ctx.deps.turns.lock(key):
        return ctx.holds.remove(key)


def _hold_restored(key: TurnKey, ctx: ArchiveContext) -> Hold:
    """Put the hold of a restored turn; a pin is kept."""
    previous = ctx.holds.find(key)
    if previous and previous.until is None:
        return previous
    until = ctx.deps.clock().replace(microsecond=0) + timedelta(days=ctx.rules.after_days)
    hold = Hold(until=format_timestamp(until), why=RESTORE_REASON, at=ctx.deps.now)
    ctx.holds.put(key, hold)
    return hold
