"""Batches of one store: files of queries at any path, and the files of the inbox."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.app.application import App
from pandora_dagster.contracts.batches import Batch, BatchRow, query_file_digest
from pandora_dagster.contracts.ports.model_runtime import Capacity
from pandora_dagster.contracts.ports.record_storage import Batches, QueryFiles
from pandora_dagster.transfer.query_batch import BatchContext, OnRow, batch_rows, open_batch, run_batch

OnBegin = Callable[[Batch], None]


@dataclass(frozen=True, slots=True)
class BatchRun:
    """A finished batch, the state of each of its lines, and the file of its rejected lines."""

    batch: Batch
    rows: tuple[BatchRow, ...]
    rejected: Path | None


class SequentialCapacity:
    """The capacity of a runtime in this process: one call at a time."""

    def max_concurrent_calls(self) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class BatchService:
    """Batches over one application."""

    app: App

    @property
    def query_files(self) -> QueryFiles:
        return self.app.records.query_files

    @property
    def _batches(self) -> Batches:
        return self.app.records.batches

    def today(self) -> str:
        """Today in the configured time zone."""
        return f"{self.app.dependencies.clock().astimezone(self.app.settings.zone):%Y-%m-%d}"

    def run_file(self, path: Path, *, day: str = "", on_begin: OnBegin = lambda _: None, on_row: OnRow = lambda _: None) -> BatchRun:
        """Run the unfinished queries of a file; the file stays in place, its rejected lines are written beside it.

        Raises InputError for an unreadable file, StoreError, ConfigurationError where a server has another model.
        """
        batch, rows = self._run(path, day, on_begin, on_row)
        return BatchRun(batch, rows, self.query_files.keep_rejected(path, batch.rejected))

    def run_waiting(self, name: str, day: str, *, on_begin: OnBegin = lambda _: None, on_row: OnRow = lambda _: None) -> BatchRun:
        """Run a file of the inbox and move it to `done/<day>/`, its rejected lines beside it; a batch begun before keeps its day."""
        batch, rows = self._run(self.query_files.path(name), day, on_begin, on_row)
        return BatchRun(batch, rows, self.query_files.finish(name, batch.day, batch.digest, batch.rejected))

    def digest_and_day(self, name: str) -> tuple[str, str]:
        """The digest of a file of the inbox, and its day: the day on which its batch began, else today."""
        digest = query_file_digest(self.query_files.read(self.query_files.path(name)))
        begun_batch = self._batches.find(digest)
        return digest, begun_batch.day if begun_batch else self.today()

    def waiting(self, day: str) -> tuple[str, ...]:
        """The files of the inbox that belong to this day."""
        return tuple(file.name for file in self.query_files.files() if self.digest_and_day(file.name)[1] == day)

    def of_day(self, day: str) -> tuple[tuple[Batch, tuple[BatchRow, ...]], ...]:
        """The batches that began on this day, and the states of their lines."""
        return tuple((batch, batch_rows(batch, self.app.dependencies)) for batch in self._batches.of_day(day))

    def _run(self, path: Path, day: str, on_begin: OnBegin, on_row: OnRow) -> tuple[Batch, tuple[BatchRow, ...]]:
        data = self.query_files.read(path)
        self.app.verify_models()
        context = self._context()
        batch = open_batch(context, data, digest=query_file_digest(data), file=path.name, day=day or self.today())
        on_begin(batch)
        return batch, self.app.run(run_batch(batch, context, on_row=on_row))

    def _context(self) -> BatchContext:
        runtime = self.app.runtime
        capacity = runtime if isinstance(runtime, Capacity) else SequentialCapacity()
        return BatchContext(self.app.dependencies, self._batches, capacity, self.app.settings.user)
