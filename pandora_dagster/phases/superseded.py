"""Cold objects that no turn names any more: left by a turn that was restored, changed and archived anew.

What such an object holds stands in the object that the turn names now, which is read before anything goes. That of a turn that is restored
stays, and so does one whose turn is gone: it may be the last copy.
"""

from collections.abc import Collection, Iterator
from datetime import datetime
from hashlib import sha256

from pandora_dagster.contracts.archive import ColdLocation
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.retention import DeletedFile, PrunedTurn, RetentionReason, Tombstone
from pandora_dagster.errors import DocumentError, StoreError, UnknownTurnError
from pandora_dagster.phases.archiving import ArchiveContext
from pandora_dagster.text.dates import format_timestamp

LOCK_WAIT_S = 1.0
"""For a turn that another process works on: the next run takes it."""
SUPERSEDED_REASON = "an object of an earlier archival"


def prune_superseded(ctx: ArchiveContext, named: Collection[str], *, before: datetime, by: str, dry_run: bool) -> Iterator[PrunedTurn | str]:
    """Delete the objects written before then that are not in `named` (paths below the root) and whose turn is archived in another.

    Each leaves a tombstone. One that does not tell whose it is stays, and is a sentence. Raises StoreError where the disk refuses.
    """
    for place in ctx.cold.objects(before=before):
        if place.path in named:
            continue
        try:
            key, files = ctx.cold.unpack(place)
        except DocumentError as error:
            yield f"{error}; no turn names it, and it stays"
            continue
        now = format_timestamp(ctx.deps.clock().replace(microsecond=0))
        there = {name: DeletedFile(sha256=sha256(data).hexdigest(), size=len(data)) for name, data in sorted(files.items())}
        month = "-".join(place.path.split("/")[2:4])
        stone = Tombstone(sha256=place.sha256, turn=str(key), day=month, files=there, deleted_at=now, why=SUPERSEDED_REASON, by=by)
        if (turn := _prune_object(key, place, ctx, stone, dry_run=dry_run)) is not None:
            yield turn


def _prune_object(key: TurnKey, place: ColdLocation, ctx: ArchiveContext, stone: Tombstone, *, dry_run: bool) -> PrunedTurn | None:
    """One object, under its turn's lock; None where the turn names it by now, or is active."""

    def kept(why: RetentionReason, reason: str) -> PrunedTurn:
        return PrunedTurn(key, stone.day, place.path, place.size, why, reason)

    try:
        with ctx.deps.turns.lock(key, wait_s=LOCK_WAIT_S):
            record = ctx.deps.turns.manifest(key).archive
            if record is None or record.cold == place.path:
                return None
            if fault := ctx.cold.verify(record):
                return kept(RetentionReason.FAULT, f"what the turn names now is damaged: {fault}")
            if not dry_run:
                ctx.cold.write_tombstone(place, stone)
                ctx.cold.delete(place)
            return PrunedTurn(key, stone.day, place.path, place.size, reason=SUPERSEDED_REASON)
    except UnknownTurnError as error:
        return kept(RetentionReason.FAULT, f"it may be the last copy: {error}")
    except DocumentError as error:
        return kept(RetentionReason.FAULT, f"it may be the last whole copy: {error}")
    except StoreError as error:
        if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, TimeoutError):
            raise
        return kept(RetentionReason.BUSY, str(error))
