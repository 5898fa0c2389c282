"""The checkpoint of one run of research: one file, written whole after each step."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.web.research_run import ResearchRun
from pandora_dagster.stores.disk.files import path_inside, write_atomic
from pandora_dagster.stores.disk.layout import Layout


@dataclass(frozen=True, slots=True)
class ResearchRunFile:
    """The file of the run `run_id` of a user."""

    root: Path
    user: UserId
    run_id: str

    @property
    def _path(self) -> Path:
        return path_inside(self.root, Layout(self.root).user(self.user) / "research_runs" / f"{self.run_id}.json")

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
