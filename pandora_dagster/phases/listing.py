"""Turns as a list: the index, held against the documents, which are the truth."""

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.turns import TurnRow
from pandora_dagster.phases.indexing import UNSETTLED
from pandora_dagster.phases.kit import Kit
from pandora_dagster.selection.turn_row import row_of


def turn_rows(kit: Kit, user: UserId | None = None) -> tuple[TurnRow, ...]:
    """All turns, oldest first, of one user or of all. One that a crash kept out of the index is read from its manifest."""
    indexed = {TurnKey(UserId(row.user_id), row.number): row for row in kit.index.rows(user)}
    rows = [_current(kit, key, indexed.get(key)) for key in kit.turns.keys(user)]
    return tuple(sorted(rows, key=lambda r: (r.created_at, r.user_id, r.number)))


def _current(kit: Kit, key: TurnKey, row: TurnRow | None) -> TurnRow:
    if row is not None and row.state not in UNSETTLED:
        return row
    return row_of(kit.turns.manifest(key), "")
