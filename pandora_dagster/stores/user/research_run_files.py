"""The checkpoints of research: one file a run, written whole after each step; the runs of a turn have a folder of their own."""

import shutil
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.web.fetched import WebAccount
from pandora_dagster.contracts.web.research_run import ResearchRun
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import disk_errors, path_inside, write_atomic
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.disk.turn_directory import user_ids

_ACCOUNT = "web_budget.json"
_PARTS = (".json", ".budget", ".lock")
"""The files of a run: its checkpoint, what it has used of a budget of its own, and who holds it."""
_HELD_WAIT_S = 1.0
"""A run takes minutes: it makes no sense to wait for its end."""


@dataclass(frozen=True, slots=True)
class ResearchRunFile:
    """The file of one run."""

    root: Path
    folder: Path
    run_id: str

    @property
    def _path(self) -> Path:
        return path_inside(self.root, self.folder / f"{self.run_id}.json")

    @property
    def account(self) -> "WebAccountFile":
        """What the run has used of a budget of its own."""
        return WebAccountFile(self._path.with_suffix(".budget"))

    @contextmanager
    def held(self) -> Generator[None]:
        """Hold the run while it goes on: no other process takes it up, and no sweep deletes it. Raises StoreError.

        A run that ends without a checkpoint leaves no file.
        """
        with file_lock(self._path.with_suffix(".lock"), what="the same research", seconds=_HELD_WAIT_S):
            try:
                yield
            finally:
                if not self._path.exists():
                    self.delete()

    def load(self) -> ResearchRun | None:
        """The run as it was stored last; None where there is none, or none that can be read: it starts again."""
        try:
            return ResearchRun.model_validate_json(self._path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def save(self, run: ResearchRun) -> None:
        write_atomic(self._path, run.model_dump_json().encode())

    def delete(self) -> None:
        """Delete the run; its holder calls this."""
        _unlink_parts(self._path)


def user_run(root: Path, user: UserId, run_id: str) -> ResearchRunFile:
    """The run of a command for a user."""
    return ResearchRunFile(root, _runs_folder(root, user), run_id)


@dataclass(frozen=True, slots=True)
class TurnRunFiles:
    """The runs of one turn. They are kept until the turn has stored what it found."""

    root: Path
    turn: TurnKey

    @property
    def _folder(self) -> Path:
        return path_inside(self.root, _runs_folder(self.root, self.turn.user) / self.turn.turn_id)

    def file(self, run_id: str) -> ResearchRunFile:
        return ResearchRunFile(self.root, self._folder, run_id)

    @property
    def account(self) -> "WebAccountFile":
        """What the runs have used of the turn's budget."""
        return WebAccountFile(path_inside(self.root, self._folder / _ACCOUNT))

    def runs(self) -> tuple[ResearchRun, ...]:
        """Every run that can be read."""
        paths = self._folder.glob("*.json") if self._folder.is_dir() else ()
        names = sorted(path.stem for path in paths if path.name != _ACCOUNT)
        return tuple(run for name in names if (run := self.file(name).load()))

    def delete(self) -> None:
        """Delete the runs of the turn."""
        with disk_errors(self._folder, "cannot delete"):
            if self._folder.is_dir():
                shutil.rmtree(self._folder)


@dataclass(frozen=True, slots=True)
class WebAccountFile:
    """The WebAccounts port: one small file beside the run, or the runs of a turn."""

    path: Path

    def load(self) -> WebAccount:
        try:
            return WebAccount.model_validate_json(self.path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return WebAccount()

    def save(self, account: WebAccount) -> None:
        write_atomic(self.path, account.model_dump_json().encode(), durable=False)


@dataclass(frozen=True, slots=True)
class ResearchRunSweep:
    """Deletes the checkpoints of runs that were cut off and that nothing has taken up since."""

    root: Path

    def sweep(self, *, before: float, spared: Collection[TurnKey]) -> int:
        """Delete the runs stored last before the Unix time `before`; returns their number.

        A run that goes on is held and stays, and so do the runs of `spared` turns.
        """
        folders = (folder for user in user_ids(Layout(self.root)) for folder in self._folders(user, spared))
        return sum(_delete_old_runs(folder, before) for folder in folders)

    def _folders(self, user: UserId, spared: Collection[TurnKey]) -> Iterator[Path]:
        """The folders of a user's runs: those of turns, and the one of commands."""
        runs = path_inside(self.root, _runs_folder(self.root, user))
        spared_names = {key.turn_id for key in spared if key.user == user}
        with disk_errors(runs, "cannot list"):
            folders = [path for path in runs.iterdir() if path.is_dir() and not path.is_symlink()] if runs.is_dir() else []
        yield from (folder for folder in folders if folder.name not in spared_names)
        yield runs


def _delete_old_runs(folder: Path, before: float) -> int:
    """Delete the old runs of a folder with their locks, and then the folder of a turn where nothing is left in it."""
    deleted = 0
    for run in sorted({path.with_suffix(".json") for path in folder.glob("*.*") if path.suffix in _PARTS}):
        lock = run.with_suffix(".lock")
        if (_changed_at(run) or _changed_at(lock)) >= before:  # each attempt to lock changes the lock
            continue
        with suppress(StoreError), file_lock(lock, what="an old run", seconds=0):
            if _changed_at(run) < before:
                deleted += run.exists()
                _unlink_parts(run)
    with suppress(OSError):  # not empty, or not there
        folder.rmdir()
    return deleted


def _unlink_parts(run: Path) -> None:
    """The lock is deleted last: until then no other process takes the run up."""
    for suffix in _PARTS:
        run.with_suffix(suffix).unlink(missing_ok=True)


def _changed_at(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0


def _runs_folder(root: Path, user: UserId) -> Path:
    return Layout(root).user(user) / "research_runs"
