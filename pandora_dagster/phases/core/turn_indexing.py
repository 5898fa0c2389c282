"""The index row of a turn: written when the turn is completed, repaired after a crash. `documents.turn_row` makes the row itself."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.turns import Manifest, Turn, TurnRow
from pandora_dagster.documents.turn_row import build_turn_row
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.phases.core.dependencies import PhaseDependencies

UNSETTLED_STATES = (TurnState.OPEN, TurnState.HALTED)
"""States of a row that may be older than its documents: a process that dies after its last commit leaves such a row."""


def index_turn(deps: PhaseDependencies, turn: Turn) -> TurnRow:
    """Index the turn's calls, write its lineage and its row. Raises StoreError for the row alone.

    Another process that lists turns repairs rows too. One that read the turn before its summary was committed would write its older row
    over the newer one for good, so whoever wrote a row compares it with the manifest afterwards.
    """
    row = _write_rows(deps, turn)
    with suppress(DocumentError, UnknownTurnError):
        while (manifest := deps.turns.manifest(turn.key)) != turn.manifest:
            turn = replace(deps.turns.original(turn.key), manifest=manifest)
            row = _write_rows(deps, turn)
    return row


def _write_rows(deps: PhaseDependencies, turn: Turn) -> TurnRow:
    """Write the rows of a turn as it was read.

    The row is written last, because a row of a finished turn is not verified again. Where another index was locked too long, the row says
    `open`, and the next reader repairs it. Vectors are made of a saved turn only: its answer is stored by then (decision 16,
    docs/decisions/16-the-answer-comes-first.md). A rebuild makes missing vectors.
    """
    are_calls_indexed = deps.calls.index_turns([(turn.key, turn.manifest.revision)])
    is_lineage_stored = deps.lineage.put([(turn.manifest, turn)]) if deps.lineage else True
    row = build_turn_row(turn.manifest, turn.context, turn.files)
    deps.index.put([row if are_calls_indexed and is_lineage_stored else row.model_copy(update={"state": TurnState.OPEN})])
    if deps.vectors and turn.manifest.state is TurnState.SAVED:
        deps.vectors.put([row])
    return row


def reopen_row(deps: PhaseDependencies, manifest: Manifest, *, reruns: bool) -> None:
    """Mark the row of a finished turn as open before a phase changes the turn, so that a crash from here on is repaired.

    `reruns`: the phase had finished, so that a new revision begins; the calls of the revision before it are indexed first.
    """
    if manifest.state not in (TurnState.SAVED, TurnState.CLARIFY):
        return
    if reruns:
        deps.calls.index_turns([(manifest.key, manifest.revision)])
    open_manifest = manifest.model_copy(update={"state": TurnState.OPEN})
    if deps.index.outdated([open_manifest]):
        deps.index.update_states([open_manifest])


def repair_row(deps: PhaseDependencies, manifest: Manifest) -> None:
    """Write the row of a finished turn again where it differs from the manifest. The row of a damaged turn stays as it is."""
    is_finished = manifest.state in (TurnState.SAVED, TurnState.CLARIFY, TurnState.ABANDONED) and not manifest.recorded
    with suppress(DocumentError):
        if is_finished and deps.index.outdated([manifest]):
            index_turn(deps, deps.turns.load(manifest.key))


def current_row(deps: PhaseDependencies, row: TurnRow) -> TurnRow:
    """`row` as the documents have it; an outdated row of an unfinished turn is written again. The row of a damaged turn stays as it is."""
    if row.state not in UNSETTLED_STATES:
        return row
    key = TurnKey(UserId(row.user_id), row.number)
    try:
        manifest = deps.turns.manifest(key)
        if manifest.state is row.state:
            return row
        return index_turn(deps, replace(deps.turns.original(key), manifest=manifest))
    except DocumentError:
        return row


# Lists of turns: the index, verified against the documents, which are the truth.


def turn_rows(
    deps: PhaseDependencies, user: UserId | None = None, *, on_fault: Callable[[DocumentError], None] | None = None
) -> tuple[TurnRow, ...]:
    """All turns, oldest first, of one user or of all. A turn without a row is read from its manifest.

    A damaged one goes to `on_fault` as a DocumentError, which is raised where there is none.
    """
    indexed = {TurnKey(UserId(row.user_id), row.number): row for row in deps.index.rows(user)}
    rows: list[TurnRow] = []
    for key in deps.turns.keys(user):
        try:
            rows.append(_listed_row(deps, key, indexed.get(key)))
        except DocumentError as error:
            if on_fault is None:
                raise
            on_fault(error)
    return tuple(sorted(rows, key=lambda r: (r.created_at, r.user_id, r.number)))


def _listed_row(deps: PhaseDependencies, key: TurnKey, row: TurnRow | None) -> TurnRow:
    if row is not None and row.state not in UNSETTLED_STATES:
        return row
    return build_turn_row(deps.turns.manifest(key), "")
