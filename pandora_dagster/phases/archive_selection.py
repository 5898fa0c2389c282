"""Which stored turns are due for archival: candidates from the index and from folders without a row, each with its hold.

Reads little: a row's state and last activity, and a manifest only where there is no row. Whoever archives a turn judges it again.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from itertools import islice

from pandora_dagster.contracts.archive import Due, Hold, Kept, NotDue, Stands
from pandora_dagster.contracts.ids import TurnKey, UserId, turn_number
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import BadIdError, DocumentError, StoreError, UnknownTurnError
from pandora_dagster.phases.archiving import ArchiveDesk
from pandora_dagster.phases.halting import gone_on
from pandora_dagster.phases.indexing import UNSETTLED
from pandora_dagster.selection.due import Selection

_FOLDERS = 10_000
"""Folders that are held against the index at a time."""


@dataclass(frozen=True, slots=True)
class Selected:
    """What a run archives, oldest day first, and which turns of those days stay, with the reason.

    `known` holds what the index says of each due turn that it has: the row of a turn that still says so needs no new texts.
    """

    due: tuple[Due, ...]
    not_due: tuple[NotDue, ...]
    known: frozenset[Stands]


def selection(desk: ArchiveDesk) -> Selection:
    """The rules and what is open at this moment; raises DocumentError for a damaged intervention."""
    return Selection(desk.kit.clock(), desk.rules.zone, desk.rules.after_days, interventions_by_turn(desk))


def select(desk: ArchiveDesk, *, days: Collection[date] | None = None) -> Selected:
    """Every due turn, or those of `days`. A turn that is archived or too young for any day is not listed, unless its day was asked for."""
    rules = selection(desk)
    due: list[Due] = []
    not_due: list[NotDue] = []
    known: set[Stands] = set()
    for stands, indexed in _candidates(desk):
        try:
            judged = _with_hold(rules, stands, desk)
        except StoreError:  # the folder is not where it should be: who archives the turn finds out
            judged = rules.judge(stands)
        if days is not None and judged.day not in days:
            continue
        if isinstance(judged, NotDue) and judged.kept is Kept.HELD and judged.day and is_archived(stands.key, desk):
            judged = Due(stands.key, judged.day)  # a restoring that was cut off: its row and its hold are ahead of it
        if isinstance(judged, NotDue):
            if judged.kept is not Kept.ARCHIVED and (days is not None or judged.kept is not Kept.YOUNG):
                not_due.append(judged)
            continue
        due.append(judged)
        if indexed:
            known.add(stands)
    return Selected(tuple(sorted(due, key=lambda d: (d.day, d.key))), tuple(not_due), frozenset(known))


def is_archived(key: TurnKey, desk: ArchiveDesk) -> bool:
    """What the manifest says; False where it can not be read."""
    return _manifest(key, desk).state == Kept.ARCHIVED


def judged_again(manifest: Manifest, desk: ArchiveDesk, rules: Selection) -> Due | NotDue:
    """The judgement by the turn's own manifest, read under its lock; raises DocumentError, StoreError."""
    return _with_hold(rules, Stands(manifest.key, manifest.state, manifest.last_activity), desk)


def _with_hold(rules: Selection, stands: Stands, desk: ArchiveDesk) -> Due | NotDue:
    judged = rules.judge(stands)
    if isinstance(judged, NotDue):
        return judged
    try:
        hold: Hold | None = desk.holds.find(stands.key)
    except DocumentError as error:
        return NotDue(stands.key, judged.day, Kept.HELD, f"its hold can not be read, and may be a pin: {error.with_hint}")
    return rules.judge(stands, hold)


def _candidates(desk: ArchiveDesk) -> Iterator[tuple[Stands, bool]]:
    """What the index says of every turn at rest that is not archived, and the manifests of the others and of turns that have no row."""
    for row in desk.kit.index.standing(archived=False):
        yield (row, True) if row.state not in UNSETTLED else (_manifest(row.key, desk), False)
    keys = iter(desk.kit.turns.keys(None))
    while some := list(islice(keys, _FOLDERS)):
        yield from ((_manifest(key, desk), False) for key in desk.kit.index.absent(some))


def _manifest(key: TurnKey, desk: ArchiveDesk) -> Stands:
    """What a turn's manifest says, where the index does not know or may be behind; an unreadable one says why."""
    try:
        manifest = desk.kit.turns.manifest(key)
    except (DocumentError, UnknownTurnError, StoreError) as error:
        return Stands(key, Kept.UNREADABLE, str(error))
    return Stands(key, manifest.state, manifest.last_activity)


def interventions_by_turn(desk: ArchiveDesk, *, phase: str = "") -> dict[TurnKey, str]:
    """The turns that open interventions name, each with its intervention; with `phase` those of that phase. One past which its turn went
    on keeps nothing."""
    named: dict[TurnKey, str] = {}
    for found in desk.kit.interventions.list(state="open"):
        with suppress(BadIdError):
            key = TurnKey(UserId(found.user_id), turn_number(found.turn_id))
            if (not phase or found.phase == phase) and not _gone_on(key, found, desk):
                named[key] = found.id
    return named


def _gone_on(key: TurnKey, found: Intervention, desk: ArchiveDesk) -> bool:
    try:
        return gone_on(desk.kit.turns.manifest(key), found)
    except (DocumentError, UnknownTurnError, StoreError):
        return False
