"""The index row of a turn: put when the turn comes to rest, made again where a crash kept it back. Knows when; `row_of` knows what."""

from dataclasses import replace

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.turns import Turn, TurnRow
from pandora_dagster.contracts.words import TurnState
from pandora_dagster.errors import DocumentError
from pandora_dagster.phases.kit import Kit
from pandora_dagster.selection.turn_row import row_of

UNSETTLED = (TurnState.OPEN, TurnState.HALTED)
"""States of a row that may be behind its documents: a process that dies after its last commit leaves them."""


def index(kit: Kit, turn: Turn) -> TurnRow:
    """Put the turn's row, take its call records into their index, write its lineage: they lose no turn. Raises StoreError for its row.

    Vectors are made of a saved turn only: its answer is out by now (DECISIONS 16). A rebuild makes those of the others.
    """
    row = row_of(turn.manifest, turn.context, turn.files)
    kit.index.put([row])
    kit.calls.settle(turn.key, turn.manifest.revision)
    if kit.vectors and turn.manifest.state is TurnState.SAVED:
        kit.vectors.put([row])
    if kit.lineage:
        kit.lineage.put([(turn.manifest, turn)])
    return row


def current(kit: Kit, row: TurnRow) -> TurnRow:
    """`row` as the documents have it; one that a crash left behind is put again. A damaged turn keeps the row it has."""
    key = TurnKey(UserId(row.user_id), row.number)
    try:
        manifest = kit.turns.manifest(key)
        if row.state not in UNSETTLED or manifest.state is row.state:
            return row
        return index(kit, replace(kit.turns.original(key), manifest=manifest))
    except DocumentError:
        return row
