"""A house's batches: files of queries, wherever they lie, and the inbox. Knows which adapters belong together."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.app.application import App
from pandora_dagster.contracts.batches import Batch, BatchRow
from pandora_dagster.contracts.ports.model_runtime import Capacity
from pandora_dagster.stores.records.batch_files import BatchFiles, Inbox, digest_of, keep_rejected, queries_of
from pandora_dagster.transfer.query_batch import BatchContext, OnRow, batch_rows, open_batch, run_batch

OnBegin = Callable[[Batch], None]


@dataclass(frozen=True, slots=True)
class BatchRun:
    """A batch that ran, how each of its lines stands, and where its rejected lines lie."""

    batch: Batch
    rows: tuple[BatchRow, ...]
    rejected: Path | None


class SequentialCapacity:
    """The capacity of a runtime that works in this process."""

    def max_concurrent_calls(self) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class BatchService:
    """Batches over one house."""

    app: App

    @property
    def inbox(self) -> Inbox:
        return Inbox(self.app.settings.root)

    @property
    def _batches(self) -> BatchFiles:
        return BatchFiles(self.app.settings.root)

    def today(self) -> str:
        """The day it is in the configured time zone."""
        return f"{self.app.dependencies.clock().astimezone(self.app.settings.zone):%Y-%m-%d}"

    def run_file(self, path: Path, *, day: str = "", on_begin: OnBegin = lambda _: None, on_row: OnRow = lambda _: None) -> BatchRun:
        """Run a file of queries, or what is left of it; the file stays where it is, its rejected lines are written beside it.

        Raises InputError for a file that can not be read, StoreError, ConfigurationError where a server has another model.
        """
        batch, rows = self._run(path, day, on_begin, on_row)
        return BatchRun(batch, rows, keep_rejected(path, batch.rejected))

    def run_waiting(self, name: str, day: str, *, on_begin: OnBegin = lambda _: None, on_row: OnRow = lambda _: None) -> BatchRun:
        """Run a file of the inbox and move it to `done/<day>/`, its rejected lines beside it; what began before keeps its day."""
        batch, rows = self._run(self.inbox.path(name), day, on_begin, on_row)
        return BatchRun(batch, rows, self.inbox.finish(name, batch.day, batch.digest, batch.rejected))

    def identity(self, name: str) -> tuple[str, str]:
        """The digest of a file of the inbox, and its day: on which it began, else today."""
        digest = digest_of(queries_of(self.inbox.path(name)))
        known = self._batches.find(digest)
        return digest, known.day if known else self.today()

    def waiting(self, day: str) -> tuple[str, ...]:
        """The files of the inbox whose day this is."""
        return tuple(waiting.name for waiting in self.inbox.files() if self.identity(waiting.name)[1] == day)

    def of_day(self, day: str) -> tuple[tuple[Batch, tuple[BatchRow, ...]], ...]:
        """The batches that began on this day, and how their lines stand."""
        return tuple((batch, batch_rows(batch, self.app.dependencies)) for batch in self._batches.of_day(day))

    def _run(self, path: Path, day: str, on_begin: OnBegin, on_row: OnRow) -> tuple[Batch, tuple[BatchRow, ...]]:
        data = queries_of(path)
        self.app.run(self.app.health.verify_models())
        batch = open_batch(self._context(), data, digest=digest_of(data), file=path.name, day=day or self.today())
        on_begin(batch)
        return batch, self.app.run(run_batch(batch, self._context(), on_row=on_row))

    def _context(self) -> BatchContext:
        runtime = self.app.runtime
        capacity = runtime if isinstance(runtime, Capacity) else SequentialCapacity()
        return BatchContext(self.app.dependencies, self._batches, capacity, self.app.settings.user)
