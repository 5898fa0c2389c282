"""Records of a store that name a user: interventions, batches and their files, logs.

A record of the user alone is deleted; from a record of several users the user's lines and every other trace are removed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from pandora_dagster.contracts.batches import Batch, query_file_digest
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.ports.user_storage import TraceScrubber
from pandora_dagster.contracts.retention import SearchedObject
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.disk.erasure_intents import FOLDER
from pandora_dagster.stores.disk.files import disk_errors, write_atomic
from pandora_dagster.stores.erasure.content_search import search_files
from pandora_dagster.stores.erasure.file_erasure import files_below

_OF_OTHERS = frozenset({"users", "cold", "indexes", FOLDER})
"""Folders of the root that other erasers erase and search."""
_OWN = _OF_OTHERS | {"interventions", "batches", "inbox"}
"""Folders of the root without logs."""
_REJECTED = ".rejected.jsonl"


@dataclass(frozen=True, slots=True)
class RecordEraser:
    """The Eraser of records of several users. `default_user` owns the lines that name no user; `elsewhere` are folders without records."""

    root: Path
    default_user: UserId
    elsewhere: tuple[Path, ...]
    wait_s: float
    step: str = "records"

    def count(self, user: UserId) -> Mapping[str, int]:
        return {"interventions": len(self.interventions(user)), "lines_of_queries": self.lines_of(user)}

    def erase(self, user: UserId, traces: TraceScrubber) -> Sequence[str]:
        self.erase_interventions(user, traces)
        self.erase_batches(user, traces)
        self.erase_logs(traces)
        return ()

    def search(self, traces: TraceScrubber) -> Iterator[SearchedObject]:
        """Every file of the store that no other eraser of the store searches."""
        entries = (entry for entry in sorted(self.root.iterdir()) if entry.name not in _OF_OTHERS and entry not in self.elsewhere)
        paths = (path for path in files_below(*entries) if not any(path.is_relative_to(folder) for folder in self.elsewhere))
        yield from search_files(paths, traces, wait_s=self.wait_s)

    def interventions(self, user: UserId) -> tuple[Path, ...]:
        """Those that halted something of the user's."""
        return tuple(path for path, found in self._interventions() if found is not None and found.user_id == user)

    def erase_interventions(self, user: UserId, traces: TraceScrubber) -> None:
        """The user's go, also damaged ones that name them; in others' the user's traces go. Raises StoreError."""
        for path, found in self._interventions():
            data = path.read_bytes()
            if (found is not None and found.user_id == user) or (found is None and traces.found_in(data)):
                path.unlink()
            elif traces.found_in(data):
                write_atomic(path, traces.scrub(data.decode(errors="surrogateescape")).encode(errors="surrogateescape"))

    def others_queries(self, user: UserId) -> Iterator[str]:
        """What other users asked in batches and in files that wait."""
        for _, batch in self._batches():
            yield from (query.query for query in batch.queries if query.key.user != user)
        for path in self._query_files():
            yield from (line for line, mine in self._lines_by_owner(path, user) if not mine)

    def lines_of(self, user: UserId) -> int:
        """Lines of files of queries that are the user's."""
        return sum(mine for path in self._query_files() for _, mine in self._lines_by_owner(path, user))

    def erase_batches(self, user: UserId, traces: TraceScrubber) -> None:
        """Lines of files first, then the records that say whose they are: a run that was cut off finds them again. Raises StoreError.

        A line leaves an empty one, so that the others keep their numbers.
        """
        for path in self._query_files():
            judged = list(self._lines_by_owner(path, user))
            kept = ["" if mine else line for line, mine in judged]
            if path.name.endswith(_REJECTED):
                kept = [line for line, mine in judged if not mine]
            self._rewrite(
                path, [line if not traces.names_user(line) else traces.scrub(line) for line in kept], [line for line, _ in judged]
            )
        for path, batch in self._batches():
            queries = tuple(query for query in batch.queries if query.key.user != user)
            rejected = tuple(line for line in batch.rejected if not self._is_theirs(line.text, user, traces))
            if (queries, rejected) == (batch.queries, batch.rejected):
                continue
            if not queries and not rejected:
                path.unlink()
            else:
                changed = batch.model_copy(update={"queries": queries, "rejected": rejected})
                write_atomic(path, (changed.model_dump_json(indent=1) + "\n").encode(errors="surrogatepass"))

    def erase_logs(self, traces: TraceScrubber) -> None:
        """Every other file of the store: lines with a trace go, of JSON files the traces. Raises StoreError."""
        for path in self._others():
            with disk_errors(path, "cannot erase"):
                data = path.read_bytes()
            if not traces.found_in(data):
                continue
            text = data.decode(errors="surrogateescape")
            if path.suffix == ".json":
                kept = traces.scrub(text)
            else:
                kept = "".join(
                    line for line in text.splitlines(keepends=True) if not traces.found_in(line.encode(errors="surrogateescape"))
                )
            write_atomic(path, kept.encode(errors="surrogateescape"))

    def _others(self) -> Iterator[Path]:
        for entry in sorted(self.root.iterdir()) if self.root.is_dir() else ():
            if entry.name not in _OWN and entry not in self.elsewhere:
                yield from (path for path in files_below(entry) if path.is_file() and not path.is_symlink())

    def _interventions(self) -> Iterator[tuple[Path, Intervention | None]]:
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

    def _batches(self) -> Iterator[tuple[Path, Batch]]:
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
        """The lines of a file, each with whether it is the user's: by the record of its batch, else by what it says."""
        with disk_errors(path, "cannot read"):
            data = path.read_bytes()
        lines = data.decode(errors="surrogateescape").split("\n")
        if path.name.endswith(_REJECTED):
            for line in lines:
                row = _object(line)
                yield line, self._line_names_user(str(row.get("text", "")), user) if row else False
            return
        numbers = {query.line for batch in self._of_file(path, data) for query in batch.queries if query.key.user == user}
        for number, line in enumerate(lines, 1):
            yield line, bool(line.strip()) and (number in numbers or self._line_names_user(line, user, named=bool(numbers)))

    def _of_file(self, path: Path, data: bytes) -> Iterable[Batch]:
        """The records of a file's batch: by its content; of one whose lines were erased before, by its name."""
        digest, known = query_file_digest(data), [batch for _, batch in self._batches()]
        exact = [batch for batch in known if batch.digest == digest]
        name = path.name.removesuffix(".jsonl")
        return exact or [batch for batch in known if name in (Path(batch.file).stem, f"{Path(batch.file).stem}.{batch.digest[:12]}")]

    def _line_names_user(self, line: str, user: UserId, *, named: bool = False) -> bool:
        """Whether a line is the user's by what it says. `named`: a record knows whose those are that name no user."""
        row = _object(line)
        if row is None:
            return False
        asked = row.get("user")
        return asked == user or (asked is None and "query" in row and user == self.default_user and not named)

    def _is_theirs(self, text: str, user: UserId, traces: TraceScrubber) -> bool:
        return self._line_names_user(text, user) or traces.found_in(text.encode(errors="surrogatepass"))

    @staticmethod
    def _rewrite(path: Path, lines: list[str], before: list[str]) -> None:
        if lines != before:
            write_atomic(path, "\n".join(lines).encode(errors="surrogateescape"))


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
