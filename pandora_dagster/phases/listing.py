"""Turns as a list: the index, held against the documents, which are the truth."""

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.turns import TurnRow
from pandora_dagster.phases.indexing import UNSETTLED_STATES
from pandora_dagster.phases.deps import PhaseDependencies
from pandora_dagster.selection.turn_row import build_turn_row


def turn_rows(deps: PhaseDependencies, user: UserId | None = None) -> tuple[TurnRow, ...]:
    """All turns, oldest first, of one user or of all. One that a crash kept out of the index is read from its manifest."""
    indexed = {TurnKey(UserId(row.user_id), row.number): row for row in deps.index.rows(user)}
    rows = [_listed_row(deps, key, indexed.get(key)) for key in deps.turns.keys(user)]
    return tuple(sorted(rows, key=lambda r: (r.created_at, r.user_id, r.number)))


def _listed_row(deps: PhaseDependencies, key: TurnKey, row: TurnRow | None) -> TurnRow:
    if row is not None and row.state not in UNSETTLED_STATES:
        return row
    return build_turn_row(deps.turns.manifest(key), "")
