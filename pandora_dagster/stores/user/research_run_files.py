"""The checkpoints of research: one file a run, written whole after each step; the runs of a turn have a folder of their own."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.web.research_run import ResearchRun
from pandora_dagster.stores.disk.files import disk_errors, path_inside, write_atomic
from pandora_dagster.stores.disk.layout import Layout


@dataclass(frozen=True, slots=True)
class ResearchRunFile:
    """The file of one run."""

    root: Path
    folder: Path
    run_id: str

    @property
    def _path(self) -> Path:
        return path_inside(self.root, self.folder / f"{self.run_id}.json")

    def load(self) -> ResearchRun | None:
        """The run as it was stored last; None where there is none, or none that can be read: it starts again."""
        try:
            return ResearchRun.model_validate_json(self._path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def save(self, run: ResearchRun) -> None:
        write_atomic(self._path, run.model_dump_json().encode())

    def delete(self) -> None:
        self._path.unlink(missing_ok=True)


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

    def runs(self) -> tuple[ResearchRun, ...]:
        """Every run that can be read."""
        names = sorted(path.stem for path in self._folder.glob("*.json")) if self._folder.is_dir() else []
        return tuple(run for name in names if (run := self.file(name).load()))

    def delete(self) -> None:
        """Delete the runs of the turn."""
        with disk_errors(self._folder, "cannot delete"):
            if self._folder.is_dir():
                shutil.rmtree(self._folder)


def _runs_folder(root: Path, user: UserId) -> Path:
    return Layout(root).user(user) / "research_runs"
