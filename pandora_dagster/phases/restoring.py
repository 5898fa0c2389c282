"""An archived turn brought back, byte for byte. Knows the order: what a crash leaves is the archived turn or the restored one."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from pandora_dagster.contracts.archive import Hold
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.errors import OriginalsDeletedError, PandoraError
from pandora_dagster.phases.archiving import ArchiveDesk
from pandora_dagster.selection.turn_row import row_of
from pandora_dagster.text.dates import stamp

RESTORED = "restored"
"""Why a restored turn is held."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The turn as it stands. `was_archived`: False where there was nothing to bring back."""

    turn: Turn
    hold: Hold | None
    was_archived: bool


def restore(key: TurnKey, desk: ArchiveDesk) -> Restored:
    """The turn as it was before it was archived, held for as long as a new one would stay. Raises DocumentError, StoreError,
    OriginalsDeletedError.

    The hold, the row and the lineage come before the switch: a restoring that is cut off leaves a turn that is archived and that the
    next archival finds by its row, or the restored one, beside which lies at most what it replaced. A turn that is not archived gets
    its row, which may be behind.
    """
    with desk.kit.turns.lock(key):
        manifest = desk.kit.turns.manifest(key)
        if manifest.archive is None:
            turn = desk.kit.turns.load(key)
            desk.folders.clear(key)
            _put(turn.manifest, turn, desk)
            _link(turn.manifest, turn, desk)
            return Restored(turn, desk.holds.find(key), was_archived=False)
        if gone := desk.cold.tombstone(manifest.archive):
            raise OriginalsDeletedError(
                f"{key}: it can not be restored: its originals were {gone.said}",
                missing=True,
                hint=f"what is left of it: pandora show {key}",
            )
        original = desk.kit.turns.original(key)
        hold = _held(key, desk)
        _put(original.manifest, original, desk)  # before the lineage: a row that says archived is not looked at again
        _link(original.manifest, original, desk)
        try:
            turn = desk.folders.restore(key)
        except BaseException:
            _link(manifest, original, desk)
            _put(manifest, original, desk)
            with suppress(PandoraError):  # a disk that refuses: the next restoring, night or pruning settles it
                desk.folders.settle(key)
            raise
        return Restored(turn, hold, was_archived=True)


def pin(key: TurnKey, desk: ArchiveDesk, *, why: str = "pinned") -> Hold:
    """A hold without end, in the place of any other. Raises StoreError."""
    with desk.kit.turns.lock(key):
        hold = Hold(until=None, why=why, at=_now(desk))
        desk.holds.put(key, hold)
    return hold


def unpin(key: TurnKey, desk: ArchiveDesk) -> bool:
    """Take away a turn's hold, whatever its end; False where it had none. Raises StoreError."""
    with desk.kit.turns.lock(key):
        return desk.holds.remove(key)


def _held(key: TurnKey, desk: ArchiveDesk) -> Hold:
    """The hold of a restored turn; a pin stays."""
    known = desk.holds.find(key)
    if known and known.until is None:
        return known
    until = desk.kit.clock().replace(microsecond=0) + timedelta(days=desk.rules.after_days)
    hold = Hold(until=stamp(until), why=RESTORED, at=_now(desk))
    desk.holds.put(key, hold)
    return hold


def _put(manifest: Manifest, texts: Turn, desk: ArchiveDesk) -> None:
    desk.kit.index.put([row_of(manifest, texts.context, texts.files, preamble=desk.preamble(manifest))])


def _link(manifest: Manifest, texts: Turn, desk: ArchiveDesk) -> None:
    if desk.kit.lineage:
        desk.kit.lineage.put([(manifest, texts)])


def _now(desk: ArchiveDesk) -> str:
    return stamp(desk.kit.clock().replace(microsecond=0))
