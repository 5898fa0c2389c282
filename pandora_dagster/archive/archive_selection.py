"""Which stored turns are due for archival: candidates from the index and from folders without a row, each with its hold.

Reads little: a row's state and last activity, and a manifest only where there is no row. Whoever archives a turn judges it again.
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
"""Folders that are held against the index at a time."""


@dataclass(frozen=True, slots=True)
class ArchiveSelection:
    """What a run archives, oldest day first, and which turns of those days stay, with the reason.

    `known` holds what the index says of each due turn that it has: the row of a turn that still says so needs no new texts.
    """

    due: tuple[DueTurn, ...]
    not_due: tuple[NotDueTurn, ...]
    known: frozenset[TurnActivity]


def current_eligibility(ctx: ArchiveContext) -> EligibilityRule:
    """The rules and what is open at this moment; raises DocumentError for a damaged intervention."""
    return EligibilityRule(ctx.deps.clock(), ctx.rules.zone, ctx.rules.after_days, interventions_by_turn(ctx))


def select_turns(ctx: ArchiveContext, *, days: Collection[date] | None = None) -> ArchiveSelection:
    """Every due turn, or those of `days`. A turn that is archived or too young for any day is not listed, unless its day was asked for."""
    rules = current_eligibility(ctx)
    due: list[DueTurn] = []
    not_due: list[NotDueTurn] = []
    known: set[TurnActivity] = set()
    for stands, indexed in _candidates(ctx):
        try:
            judged = _judge_with_hold(rules, stands, ctx)
        except StoreError:  # the folder is not where it should be: who archives the turn finds out
            judged = rules.decide(stands)
        if days is not None and judged.day not in days:
            continue
        if isinstance(judged, NotDueTurn) and judged.kept is NotDueReason.HELD and judged.day and is_archived(stands.key, ctx):
            judged = DueTurn(stands.key, judged.day)  # a restoring that was cut off: its row and its hold are ahead of it
        if isinstance(judged, NotDueTurn):
            if judged.kept is not NotDueReason.ARCHIVED and (days is not None or judged.kept is not NotDueReason.YOUNG):
                not_due.append(judged)
            continue
        due.append(judged)
        if indexed:
            known.add(stands)
    return ArchiveSelection(tuple(sorted(due, key=lambda d: (d.day, d.key))), tuple(not_due), frozenset(known))


def is_archived(key: TurnKey, ctx: ArchiveContext) -> bool:
    """What the manifest says; False where it can not be read."""
    return _manifest_state(key, ctx).state == NotDueReason.ARCHIVED


def judge_manifest(manifest: Manifest, ctx: ArchiveContext, rules: EligibilityRule) -> DueTurn | NotDueTurn:
    """The judgement by the turn's own manifest, read under its lock; raises DocumentError, StoreError."""
    return _judge_with_hold(rules, TurnActivity(manifest.key, manifest.state, manifest.last_activity), ctx)


def _judge_with_hold(rules: EligibilityRule, stands: TurnActivity, ctx: ArchiveContext) -> DueTurn | NotDueTurn:
    judged = rules.decide(stands)
    if isinstance(judged, NotDueTurn):
        return judged
    try:
        hold: Hold | None = ctx.holds.find(stands.key)
    except DocumentError as error:
        return NotDueTurn(stands.key, judged.day, NotDueReason.HELD, f"its hold can not be read, and may be a pin: {error.with_hint}")
    return rules.decide(stands, hold)


def _candidates(ctx: ArchiveContext) -> Iterator[tuple[TurnActivity, bool]]:
    """What the index says of every turn at rest that is not archived, and the manifests of the others and of turns that have no row."""
    for row in ctx.deps.index.activities(archived=False):
        yield (row, True) if row.state not in UNSETTLED_STATES else (_manifest_state(row.key, ctx), False)
    keys = iter(ctx.deps.turns.keys(None))
    while some := list(islice(keys, _KEYS_PER_QUERY)):
        yield from ((_manifest_state(key, ctx), False) for key in ctx.deps.index.missing(some))


def _manifest_state(key: TurnKey, ctx: ArchiveContext) -> TurnActivity:
    """What a turn's manifest says, where the index does not know or may be behind; an unreadable one says why."""
    try:
        manifest = ctx.deps.turns.manifest(key)
    except (DocumentError, UnknownTurnError, StoreError) as error:
        return TurnActivity(key, NotDueReason.UNREADABLE, str(error))
    return TurnActivity(key, manifest.state, manifest.last_activity)


def interventions_by_turn(ctx: ArchiveContext, *, phase: str = "") -> dict[TurnKey, str]:
    """The turns that open interventions name, each with its intervention; with `phase` those of that phase. One past which its turn went
    on keeps nothing."""
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
