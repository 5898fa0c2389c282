"""The one resource of the graph. Knows how to open the house; knows nothing of phases beyond running one by name."""

import os
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import dagster as dg
from pydantic import Field

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.phases import flow
from pandora_dagster.phases.report import PhaseReport
from pandora_dagster.settings import load_settings
from pandora_dagster.wiring import House, open_house


class RunsPhases(Protocol):
    """What the assets need of the house. A test replaces it by any object with these methods."""

    def start(self, query: str, *, user: str, session: str, mode: str) -> TurnKey: ...
    def session(self, key: TurnKey) -> str: ...
    def run_phase(self, name: str, key: TurnKey) -> PhaseReport: ...
    def folder(self, key: TurnKey, revision: int) -> str: ...


@dataclass(frozen=True, slots=True)
class HousePhases:
    """RunsPhases over a house that is open."""

    house: House

    def start(self, query: str, *, user: str, session: str, mode: str) -> TurnKey:
        return self.house.start(query, user=user, session=session, mode=mode)

    def session(self, key: TurnKey) -> str:
        return self.house.kit.turns.manifest(key).session_id

    def run_phase(self, name: str, key: TurnKey) -> PhaseReport:
        return self.house.run(flow.run_phase(name, key, self.house.kit))

    def folder(self, key: TurnKey, revision: int) -> str:
        return self.house.kit.turns.path(key, revision=revision)


class Pandora(dg.ConfigurableResource[None]):
    """RunsPhases as a Dagster resource; empty fields leave the project's own settings as they are."""

    root: str = Field("", description="Store root; empty: PANDORA_ROOT, or data/panda-system-docs.")
    runtime: str = Field("", description="Runtime: extractive or sglang; empty: as the settings say.")

    def start(self, query: str, *, user: str, session: str, mode: str) -> TurnKey:
        return self._phases.start(query, user=user, session=session, mode=mode)

    def session(self, key: TurnKey) -> str:
        return self._phases.session(key)

    def run_phase(self, name: str, key: TurnKey) -> PhaseReport:
        return self._phases.run_phase(name, key)

    def folder(self, key: TurnKey, revision: int) -> str:
        return self._phases.folder(key, revision)

    @property
    def _phases(self) -> RunsPhases:
        return HousePhases(_house(self.root, self.runtime))


@cache
def _house(root: str, runtime: str) -> House:
    """A process opens a house once: Dagster makes the resource anew for every run."""
    over = {"PANDORA_ROOT": root, "PANDORA_RUNTIME": runtime}
    return open_house(load_settings({**os.environ, **{name: value for name, value in over.items() if value}}))
