"""Erases a user from records of several users: interventions, batches and their files, logs.

A record of the user alone is deleted; from any other the user's lines and every trace of the user are removed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pandora_dagster.contracts.batches import Batch, query_file_digest
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.ports.user_storage import TraceScrubber
from pandora_dagster.contracts.retention import SearchedObject
from pandora_dagster.documents.plain_json import PlainDataError, parse_json_object
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.disk.erasure_intents import FOLDER
from pandora_dagster.stores.disk.files import disk_errors, write_atomic
from pandora_dagster.stores.erasure.content_search import search_files
from pandora_dagster.stores.erasure.file_erasure import files_below

_FOLDERS_OF_OTHER_ERASERS = frozenset({"users", "cold", "indexes", FOLDER})
"""Folders of the store that other erasers erase and search."""
_FOLDERS_WITHOUT_LOGS = _FOLDERS_OF_OTHER_ERASERS | {"interventions", "batches", "inbox"}
"""Folders of the store without logs."""
_REJECTED_SUFFIX = ".rejected.jsonl"


@dataclass(frozen=True, slots=True)
class RecordEraser:
    """The Eraser of records of several users. `default_user` owns the lines that name no user; `excluded_folders` hold no records."""

    root: Path
    default_user: UserId
    excluded_folders: tuple[Path, ...]
    wait_s: float
    step: str = "records"

    def count(self, user: UserId) -> Mapping[str, int]:
        return {"interventions": len(self.interventions(user)), "lines_of_queries": self.count_lines(user)}

    def erase(self, user: UserId, traces: TraceScrubber) -> Sequence[str]:
        self.erase_interventions(user, traces)
        self.erase_batches(user, traces)
        self.erase_logs(traces)
        return ()

    def search(self, traces: TraceScrubber) -> Iterator[SearchedObject]:
        """Every file of the store that no other eraser of the store searches."""
        entries = (
            entry
            for entry in sorted(self.root.iterdir())
            if entry.name not in _FOLDERS_OF_OTHER_ERASERS and entry not in self.excluded_folders
        )
        paths = (path for path in files_below(*entries) if not any(path.is_relative_to(folder) for folder in self.excluded_folders))
        yield from search_files(paths, traces, wait_s=self.wait_s)

    def interventions(self, user: UserId) -> tuple[Path, ...]:
        """The files of interventions of the user."""
        return tuple(path for path, intervention in self._read_interventions() if intervention is not None and intervention.user_id == user)

    def erase_interventions(self, user: UserId, traces: TraceScrubber) -> None:
        """Delete the user's interventions, also damaged ones that name the user; remove traces from others. Raises StoreError."""
        for path, intervention in self._read_interventions():
            data = path.read_bytes()
            if (intervention is not None and intervention.user_id == user) or (intervention is None and traces.found_in(data)):
                path.unlink()
            elif traces.found_in(data):
                write_atomic(path, traces.scrub(data.decode(errors="surrogateescape")).encode(errors="surrogateescape"))

    def queries_of_others(self, user: UserId) -> Iterator[str]:
        """The queries of other users, in batches and in waiting files."""
        for _, batch in self._read_batches():
            yield from (query.query for query in batch.queries if query.key.user != user)
        for path in self._query_files():
            yield from (line for line, is_users in self._lines_by_owner(path, user) if not is_users)

    def count_lines(self, user: UserId) -> int:
        """The number of the user's lines in files of queries."""
        return sum(is_users for path in self._query_files() for _, is_users in self._lines_by_owner(path, user))

    def erase_batches(self, user: UserId, traces: TraceScrubber) -> None:
        """Erase the user's lines in files, then in the records that say whose they are: an interrupted run finds them again.

        An erased line becomes an empty one, so that the others keep their numbers. Raises StoreError.
        """
        for path in self._query_files():
            owned_lines = list(self._lines_by_owner(path, user))
            remaining_lines = ["" if is_users else line for line, is_users in owned_lines]
            if path.name.endswith(_REJECTED_SUFFIX):
                remaining_lines = [line for line, is_users in owned_lines if not is_users]
            scrubbed = [traces.scrub(line) if traces.names_user(line) else line for line in remaining_lines]
            if scrubbed != [line for line, _ in owned_lines]:
                write_atomic(path, "\n".join(scrubbed).encode(errors="surrogateescape"))
        for path, batch in self._read_batches():
            queries = tuple(query for query in batch.queries if query.key.user != user)
            rejected = tuple(line for line in batch.rejected if not self._is_rejected_line_of(line.text, user, traces))
            if (queries, rejected) == (batch.queries, batch.rejected):
                continue
            if not queries and not rejected:
                path.unlink()
            else:
                changed = batch.model_copy(update={"queries": queries, "rejected": rejected})
                write_atomic(path, (changed.model_dump_json(indent=1) + "\n").encode(errors="surrogatepass"))

    def erase_logs(self, traces: TraceScrubber) -> None:
        """In every other file of the store: delete lines with a trace of the user; in JSON files remove the traces. Raises StoreError."""
        for path in self._log_paths():
            with disk_errors(path, "cannot erase"):
                data = path.read_bytes()
            if not traces.found_in(data):
                continue
            text = data.decode(errors="surrogateescape")
            if path.suffix == ".json":
                scrubbed = traces.scrub(text)
            else:
                lines = text.splitlines(keepends=True)
                scrubbed = "".join(line for line in lines if not traces.found_in(line.encode(errors="surrogateescape")))
            write_atomic(path, scrubbed.encode(errors="surrogateescape"))

    def _log_paths(self) -> Iterator[Path]:
        for entry in sorted(self.root.iterdir()) if self.root.is_dir() else ():
            if entry.name not in _FOLDERS_WITHOUT_LOGS and entry not in self.excluded_folders:
                yield from (path for path in files_below(entry) if path.is_file() and not path.is_symlink())

    def _read_interventions(self) -> Iterator[tuple[Path, Intervention | None]]:
        folder = self.root / "interventions"
        for path in sorted(folder.glob("*.json")) if folder.is_dir() and not folder.is_symlink() else ():
            if path.is_symlink() or not path.is_file():
                continue
            try:
                yield path, Intervention.model_validate_json(path.read_bytes())
            except ValidationError:
                yield path, None
            except OSError as error:
                raise StoreError(f"{path}: cannot be read: {error.strerror}: expected an intervention") from error

    def _read_batches(self) -> Iterator[tuple[Path, Batch]]:
        folder = self.root / "batches"
        for path in sorted(folder.glob("[0-9a-f]*.json")) if folder.is_dir() and not folder.is_symlink() else ():
            try:
                yield path, Batch.model_validate_json(path.read_bytes())
            except (OSError, ValidationError) as error:
                raise DocumentError(
                    f"{path}: cannot be read: expected a batch's record", hint="inspect it and move it out of the store"
                ) from error

    def _query_files(self) -> Iterator[Path]:
        folder = self.root / "inbox"
        if folder.is_dir() and not folder.is_symlink():
            yield from (path for path in files_below(folder) if path.is_file() and not path.is_symlink())

    def _lines_by_owner(self, path: Path, user: UserId) -> Iterator[tuple[str, bool]]:
        """The lines of a file, each with whether it is the user's: by the record of its batch, else by the user that it names."""
        with disk_errors(path, "cannot read"):
            data = path.read_bytes()
        lines = data.decode(errors="surrogateescape").split("\n")
        if path.name.endswith(_REJECTED_SUFFIX):
            for line in lines:
                row = _json_object(line)
                yield line, self._line_names_user(str(row.get("text", "")), user) if row else False
            return
        numbers = {query.line for batch in self._batches_of_file(path, data) for query in batch.queries if query.key.user == user}
        for number, line in enumerate(lines, 1):
            yield line, bool(line.strip()) and (number in numbers or self._line_names_user(line, user, has_record=bool(numbers)))

    def _batches_of_file(self, path: Path, data: bytes) -> Iterable[Batch]:
        """The records of a file's batch: by its content, or after an erasure, which changes the content, by its name."""
        digest, stored = query_file_digest(data), [batch for _, batch in self._read_batches()]
        exact = [batch for batch in stored if batch.digest == digest]
        name = path.name.removesuffix(".jsonl")
        return exact or [batch for batch in stored if name in (Path(batch.file).stem, f"{Path(batch.file).stem}.{batch.digest[:12]}")]

    def _line_names_user(self, line: str, user: UserId, *, has_record: bool = False) -> bool:
        """Whether a line is the user's by the user that it names. `has_record`: a record says whose the lines without a user are."""
        row = _json_object(line)
        if row is None:
            return False
        owner = row.get("user")
        return owner == user or (owner is None and "query" in row and user == self.default_user and not has_record)

    def _is_rejected_line_of(self, text: str, user: UserId, traces: TraceScrubber) -> bool:
        """Whether a rejected line is the user's, or has a trace of the user."""
        return self._line_names_user(text, user) or traces.found_in(text.encode(errors="surrogatepass"))


def _json_object(line: str) -> dict[str, Any] | None:
    """The JSON object in a line, None where it holds none."""
    try:
        return parse_json_object(line)
    except PlainDataError:
        return None
