"""Call records and their index as one CallLog: written as lines at once, taken into DuckDB when a turn comes to rest."""

from dataclasses import dataclass

from pandora_dagster.contracts.calls import CallRecord
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.stores.call_index import DuckCallIndex
from pandora_dagster.stores.call_log import CallFiles


@dataclass(frozen=True, slots=True)
class Calls:
    """The CallLog port. The lines are the truth; `settle` may be called any number of times."""

    files: CallFiles
    index: DuckCallIndex

    def append(self, record: CallRecord) -> None:
        """Write one line; raises StoreError."""
        self.files.append(record)

    def settle(self, key: TurnKey, revision: int) -> None:
        """Take the records of one revision of a turn into the index; raises StoreError."""
        self.index.absorb([self.files.path_of(key, revision)])
