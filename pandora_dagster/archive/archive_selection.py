"""Selection of the stored turns that are due for archival: candidates from the index and from folders without a row, with their holds.

Reads rows, and manifests only of turns without a settled row. The archival run judges each turn again under its lock.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from itertools import islice

from pandora_dagster.archive.eligibility import EligibilityRule
from pandora_dagster.archive.turn_archival import ArchiveContext
from pandora_dagster.contracts.archive_records import DueTurn, Hold, NotDueReason, NotDueTurn, TurnActivity
from pandora_dagster.contracts.ids import TurnKey, UserId, turn_number
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import BadIdError, DocumentError, StoreError, UnknownTurnError
from pandora_dagster.phases.core.halt_interventions import has_passed
from pandora_dagster.phases.core.turn_indexing import UNSETTLED_STATES

_KEYS_PER_QUERY = 10_000
"""Folders that are compared with the index at a time."""


@dataclass(frozen=True, slots=True)
class ArchiveSelection:
    """The turns that a run archives, oldest day first, and those of the same days that are not due, with the reason.

    `known`: the index rows of due turns; a row that still agrees with its turn needs no new texts.
    """

    due: tuple[DueTurn, ...]
    not_due: tuple[NotDueTurn, ...]
    known: frozenset[TurnActivity]


def current_eligibility(ctx: ArchiveContext) -> EligibilityRule:
    """The rule at this moment, with open interventions; raises DocumentError for a damaged one."""
    return EligibilityRule(ctx.deps.clock(), ctx.rules.zone, ctx.rules.after_days, interventions_by_turn(ctx))


def select_turns(ctx: ArchiveContext, *, days: Collection[date] | None = None) -> ArchiveSelection:
    """Every due turn, or those of `days`. Archived turns are not listed; turns that are too young only where `days` names their day."""
    rules = current_eligibility(ctx)
    due: list[DueTurn] = []
    not_due: list[NotDueTurn] = []
    known: set[TurnActivity] = set()
    for activity, indexed in _candidates(ctx):
        try:
            judged = _judge_with_hold(rules, activity, ctx)
        except StoreError:  # the folder is missing: the archival run reports it
            judged = rules.decide(activity)
        if days is not None and judged.day not in days:
            continue
        if isinstance(judged, NotDueTurn) and judged.kept is NotDueReason.HELD and judged.day and is_archived(activity.key, ctx):
            judged = DueTurn(activity.key, judged.day)  # an interrupted restore: its row and hold were written before its manifest
        if isinstance(judged, NotDueTurn):
            if judged.kept is not NotDueReason.ARCHIVED and (days is not None or judged.kept is not NotDueReason.YOUNG):
                not_due.append(judged)
            continue
        due.append(judged)
        if indexed:
            known.add(activity)
    return ArchiveSelection(tuple(sorted(due, key=lambda d: (d.day, d.key))), tuple(not_due), frozenset(known))


def is_archived(key: TurnKey, ctx: ArchiveContext) -> bool:
    """Whether the manifest says archived; False where it cannot be read."""
    return _manifest_state(key, ctx).state == NotDueReason.ARCHIVED


def judge_manifest(manifest: Manifest, ctx: ArchiveContext, rules: EligibilityRule) -> DueTurn | NotDueTurn:
    """Judge a turn by its own manifest, read under its lock; raises DocumentError, StoreError."""
    return _judge_with_hold(rules, TurnActivity(manifest.key, manifest.state, manifest.last_activity), ctx)


def _judge_with_hold(rules: EligibilityRule, activity: TurnActivity, ctx: ArchiveContext) -> DueTurn | NotDueTurn:
    judged = rules.decide(activity)
    if isinstance(judged, NotDueTurn):
        return judged
    try:
        hold: Hold | None = ctx.holds.find(activity.key)
    except DocumentError as error:
        return NotDueTurn(activity.key, judged.day, NotDueReason.HELD, f"its hold cannot be read, and may be a pin: {error.with_hint}")
    return rules.decide(activity, hold)


def _candidates(ctx: ArchiveContext) -> Iterator[tuple[TurnActivity, bool]]:
    """Turns that are not archived: from their row where it is settled, else from their manifest. True: from the row."""
    for row in ctx.deps.index.activities(archived=False):
        yield (row, True) if row.state not in UNSETTLED_STATES else (_manifest_state(row.key, ctx), False)
    keys = iter(ctx.deps.turns.keys(None))
    while some := list(islice(keys, _KEYS_PER_QUERY)):
        yield from ((_manifest_state(key, ctx), False) for key in ctx.deps.index.missing(some))


def _manifest_state(key: TurnKey, ctx: ArchiveContext) -> TurnActivity:
    """The activity of a turn from its manifest; for an unreadable one with the reason."""
    try:
        manifest = ctx.deps.turns.manifest(key)
    except (DocumentError, UnknownTurnError, StoreError) as error:
        return TurnActivity(key, NotDueReason.UNREADABLE, str(error))
    return TurnActivity(key, manifest.state, manifest.last_activity)


def interventions_by_turn(ctx: ArchiveContext, *, phase: str = "") -> dict[TurnKey, str]:
    """Turn -> its open intervention, of one `phase` if given; without interventions that their turn has passed."""
    named: dict[TurnKey, str] = {}
    for found in ctx.deps.interventions.list(state="open"):
        with suppress(BadIdError):
            key = TurnKey(UserId(found.user_id), turn_number(found.turn_id))
            if (not phase or found.phase == phase) and not _has_passed(key, found, ctx):
                named[key] = found.id
    return named


def _has_passed(key: TurnKey, found: Intervention, ctx: ArchiveContext) -> bool:
    try:
        return has_passed(ctx.deps.turns.manifest(key), found)
    except (DocumentError, UnknownTurnError, StoreError):
        return False
