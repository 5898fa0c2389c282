"""Call records and their index as one CallLog: written as lines at once, taken into DuckDB when a turn comes to rest."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pandora_dagster.contracts.calls import CallRecord
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.call_index import CallTotals, DuckCallIndex
from pandora_dagster.stores.call_log import CallFiles


@dataclass(frozen=True, slots=True)
class Calls:
    """The CallLog port. The lines are the truth; `settle` may be called any number of times."""

    files: CallFiles
    index: DuckCallIndex
    report: Callable[[str], None]
    """Is told, in one sentence, what kept records out of the index."""
    owed: set[Path] = field(default_factory=set[Path])
    """Files that the index refused to take in; the next turn that comes to rest brings them along."""

    def append(self, record: CallRecord) -> None:
        """Write one line; raises StoreError."""
        self.files.append(record)

    def settle(self, key: TurnKey, revision: int) -> None:
        """Take the records of one revision of a turn into the index. What goes wrong is reported, never raised: the turn stands,
        what it still owes comes with the next one, and the index can be made again."""
        self.owed.add(self.files.path_of(key, revision))
        try:
            self.index.absorb(sorted(self.owed), report=self.report)
            self.owed.clear()
        except StoreError as error:
            self.report(f"{key}: its calls are not in the index: {error.with_hint}")

    def totals(self, key: TurnKey, revision: int) -> CallTotals:
        """What one revision of a turn took, its newest calls included; raises StoreError."""
        self.index.absorb([self.files.path_of(key, revision)], report=self.report)
        return self.index.totals(key, revision=revision)
