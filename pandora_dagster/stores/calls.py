"""Call records and their index as one CallLog: written as lines at once, taken into DuckDB when a turn comes to rest."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pandora_dagster.contracts.calls import CallRecord, TurnUsage
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.errors import DamagedIndexError, StoreError
from pandora_dagster.stores.call_index import CallTotals, DuckCallIndex, SumBy
from pandora_dagster.stores.call_log import CallFiles, records_in


@dataclass(frozen=True, slots=True)
class IndexedCallLog:
    """The CallLog port. The lines are the truth; `settle` may be called any number of times."""

    files: CallFiles
    index: DuckCallIndex
    report: Callable[[str], None]
    """Is told, in one sentence, what kept records out of the index."""
    listeners: tuple[Callable[[CallRecord], None], ...] = ()
    """Hear of every record; they never raise."""
    settled: tuple[Callable[[Sequence[CallRecord]], None], ...] = ()
    """Hear of all records of a turn when it comes to rest; they never raise."""
    owed: set[Path] = field(default_factory=set[Path])
    """Files that the index refused to take in; the next turn that comes to rest brings them along."""

    def append(self, record: CallRecord) -> None:
        """Write one line, and let the listeners hear of it; raises StoreError, after them."""
        try:
            self.files.append(record)
        finally:
            for hear in self.listeners:
                hear(record)

    def usage(self, key: TurnKey, revision: int, *, phase: str) -> TurnUsage:
        """What a revision of a turn took so far, and how much of it before `phase`; nothing where its records can not be read."""
        try:
            records = tuple(records_in(self.files.path_of(key, revision), lambda fault: None))
        except StoreError:
            return TurnUsage()
        tokens = sum(record.used_tokens for record in records)
        return TurnUsage(
            tokens,
            sum(record.cost for record in records),
            sum(record.used_tokens for record in records if record.phase != phase),
            sum(record.latency_ms for record in records),
        )

    def index_turn(self, key: TurnKey, revision: int) -> bool:
        """Take the records of one revision of a turn into the index. What goes wrong is reported, never raised: the turn stands,
        what it still owes comes with the next one, and the index can be made again. False where another try may do."""
        return self.index_turns([(key, revision)])

    def index_turns(self, turns: Sequence[tuple[TurnKey, int]]) -> bool:
        """`settle` for many revisions, in one opening of the index."""
        paths = [self.files.path_of(key, revision) for key, revision in turns]
        self.owed.update(paths)
        try:
            for path in paths if self.settled else ():
                records = tuple(records_in(path, self.report))
                for hear in self.settled:
                    hear(records)
            self.index.index_files(sorted(self.owed), report=self.report)
            self.owed.clear()
        except StoreError as error:
            named = ", ".join(str(key) for key, _ in turns[:3]) + (" ..." if len(turns) > 3 else "")
            self.report(f"{named}: its calls are not in the index: {error.with_hint}")
            return isinstance(error, DamagedIndexError)
        return True

    def totals(self, key: TurnKey, revision: int) -> CallTotals:
        """What one revision of a turn took, its newest calls included; raises StoreError."""
        self.index.index_files([self.files.path_of(key, revision)], report=self.report)
        return self.index.totals(key, revision=revision)

    def of_turn(self, key: TurnKey, revision: int) -> tuple[CallRecord, ...]:
        """The calls of one revision of a turn, oldest first; raises StoreError."""
        self.index.index_files([self.files.path_of(key, revision)], report=self.report)
        return self.index.records(key, revision=revision)

    def newest(self, recipe: str, *, version: str = "", layer: str = "", limit: int) -> Iterator[CallRecord]:
        """The newest calls of a recipe, by its name (of one version, on one layer), that are in the index.

        Newest first, page by page. Raises StoreError."""
        return self.index.newest(recipe, version=version, layer=layer, limit=limit)

    def between(self, begin: str, end: str) -> Iterator[CallRecord]:
        """All calls of a time, those without a turn too, oldest first, page by page. Raises StoreError."""
        self.index.index_files([path for one in self.files.users() for path in self.files.days(one, report=self.report)], report=self.report)
        return self.index.between(begin, end)

    def sums(self, by: SumBy, *, user: UserId | None, since: str) -> tuple[tuple[str, CallTotals], ...]:
        """Sums over the calls of all turns that came to rest, and of those without a turn; raises StoreError."""
        whose = [user] if user else self.files.users()
        self.index.index_files([path for one in whose for path in self.files.days(one, report=self.report)], report=self.report)
        return self.index.sums(by, user=user or "", since=since)
