"""The index row of a turn: put when the turn comes to rest, made again where a crash kept it back. Knows when; `row_of` knows what."""

from contextlib import suppress
from dataclasses import replace

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.turns import Manifest, Turn, TurnRow
from pandora_dagster.errors import DocumentError
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.retrieval.turn_row import build_turn_row

UNSETTLED_STATES = (TurnState.OPEN, TurnState.HALTED)
"""States of a row that may be behind its documents: a process that dies after its last commit leaves them."""


def index_turn(deps: PhaseDependencies, turn: Turn) -> TurnRow:
    """Take the turn's call records into their index, write its lineage, put its row: they lose no turn. Raises StoreError for its row.

    The row comes last of what must be there: one that says that the turn is done is not looked at again. Where an index was held too long
    it says `open`, and who reads it tries again. Vectors are made of a saved
    turn only: its answer is out by now (DECISIONS 16), and nobody waits at an unsettled row for a model. A rebuild makes those that
    are not there.
    """
    taken = deps.calls.index_turn(turn.key, turn.manifest.revision)
    linked = deps.lineage.put([(turn.manifest, turn)]) if deps.lineage else True
    row = build_turn_row(turn.manifest, turn.context, turn.files)
    deps.index.put([row if taken and linked else row.model_copy(update={"state": TurnState.OPEN})])
    if deps.vectors and turn.manifest.state is TurnState.SAVED:
        deps.vectors.put([row])
    return row


def reopen_row(deps: PhaseDependencies, manifest: Manifest, *, redone: bool) -> None:
    """Before a phase changes a turn that is done: a process that dies from here on leaves a row that is looked at again.

    `redone`: the phase had finished, so that a new revision begins; the calls of the one before it are taken in first.
    """
    if manifest.state not in (TurnState.SAVED, TurnState.CLARIFY):
        return
    if redone:
        deps.calls.index_turn(manifest.key, manifest.revision)
    opened = manifest.model_copy(update={"state": TurnState.OPEN})
    if deps.index.outdated([opened]):
        deps.index.update_states([opened])


def repair_row(deps: PhaseDependencies, manifest: Manifest) -> None:
    """Put the row of a turn that is done once more where it does not say what the manifest says. A damaged turn keeps the row it has."""
    done = manifest.state in (TurnState.SAVED, TurnState.CLARIFY, TurnState.ABANDONED) and not manifest.recorded
    with suppress(DocumentError):
        if done and deps.index.outdated([manifest]):
            index_turn(deps, deps.turns.load(manifest.key))


def current_row(deps: PhaseDependencies, row: TurnRow) -> TurnRow:
    """`row` as the documents have it; one that a crash left behind is put again. A damaged turn keeps the row it has."""
    key = TurnKey(UserId(row.user_id), row.number)
    try:
        manifest = deps.turns.manifest(key)
        if row.state not in UNSETTLED_STATES or manifest.state is row.state:
            return row
        return index_turn(deps, replace(deps.turns.original(key), manifest=manifest))
    except DocumentError:
        return row


# Turns as a list: the index, held against the documents, which are the truth.


def turn_rows(deps: PhaseDependencies, user: UserId | None = None) -> tuple[TurnRow, ...]:
    """All turns, oldest first, of one user or of all. One that a crash kept out of the index is read from its manifest."""
    indexed = {TurnKey(UserId(row.user_id), row.number): row for row in deps.index.rows(user)}
    rows = [_listed_row(deps, key, indexed.get(key)) for key in deps.turns.keys(user)]
    return tuple(sorted(rows, key=lambda r: (r.created_at, r.user_id, r.number)))


def _listed_row(deps: PhaseDependencies, key: TurnKey, row: TurnRow | None) -> TurnRow:
    if row is not None and row.state not in UNSETTLED_STATES:
        return row
    return build_turn_row(deps.turns.manifest(key), "")
