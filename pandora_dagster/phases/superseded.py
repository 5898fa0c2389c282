"""Cold objects that no turn names any more: left by a turn that was restored, changed and archived anew.

What such an object holds stands in the object that the turn names now, which is read before anything goes. That of a turn that is restored
stays, and so does one whose turn is gone: it may be the last copy.
"""

from collections.abc import Collection, Iterator
from datetime import datetime
from hashlib import sha256

from pandora_dagster.contracts.archive import ColdPlace
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.retention import DeletedFile, PrunedTurn, Referred, Tombstone
from pandora_dagster.errors import DocumentError, StoreError, UnknownTurnError
from pandora_dagster.phases.archiving import ArchiveDesk
from pandora_dagster.text.dates import stamp

WAIT_S = 1.0
"""For a turn that another process works on: the next run takes it."""
WHY = "an object of an earlier archival"


def superseded(desk: ArchiveDesk, named: Collection[str], *, before: datetime, by: str, dry_run: bool) -> Iterator[PrunedTurn | str]:
    """Delete the objects written before then that are not in `named` (paths below the root) and whose turn is archived in another.

    Each leaves a tombstone. One that does not tell whose it is stays, and is a sentence. Raises StoreError where the disk refuses.
    """
    for place in desk.cold.standing(before=before):
        if place.path in named:
            continue
        try:
            key, files = desk.cold.told(place)
        except DocumentError as error:
            yield f"{error}; no turn names it, and it stays"
            continue
        now = stamp(desk.kit.clock().replace(microsecond=0))
        there = {name: DeletedFile(sha256=sha256(data).hexdigest(), size=len(data)) for name, data in sorted(files.items())}
        month = "-".join(place.path.split("/")[2:4])
        stone = Tombstone(sha256=place.sha256, turn=str(key), day=month, files=there, deleted_at=now, why=WHY, by=by)
        if (turn := _settled(key, place, desk, stone, dry_run=dry_run)) is not None:
            yield turn


def _settled(key: TurnKey, place: ColdPlace, desk: ArchiveDesk, stone: Tombstone, *, dry_run: bool) -> PrunedTurn | None:
    """One object, under its turn's lock; None where the turn names it by now, or is active."""

    def kept(why: Referred, reason: str) -> PrunedTurn:
        return PrunedTurn(key, stone.day, place.path, place.size, why, reason)

    try:
        with desk.kit.turns.lock(key, wait_s=WAIT_S):
            record = desk.kit.turns.manifest(key).archive
            if record is None or record.cold == place.path:
                return None
            if fault := desk.cold.verify(record):
                return kept(Referred.FAULT, f"what the turn names now is damaged: {fault}")
            if not dry_run:
                desk.cold.bury(place, stone)
                desk.cold.discard(place)
            return PrunedTurn(key, stone.day, place.path, place.size, reason=WHY)
    except UnknownTurnError as error:
        return kept(Referred.FAULT, f"it may be the last copy: {error}")
    except DocumentError as error:
        return kept(Referred.FAULT, f"it may be the last whole copy: {error}")
    except StoreError as error:
        if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, TimeoutError):
            raise
        return kept(Referred.BUSY, str(error))
