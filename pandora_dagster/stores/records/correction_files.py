"""Corrections: one JSON file each, in the folder of the person who made it. Knows how they are named, written and found."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.recipe_governance import Correction
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import UnknownTurnError
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.disk.files import encode_text, path_inside, write_atomic
from pandora_dagster.stores.disk.json_files import read_json_record
from pandora_dagster.stores.disk.layout import Layout
from pandora_dagster.stores.turns.commits import iso

_NAME = re.compile(r"cor_[0-9]{8}_[0-9]{6}_[0-9a-f]{8}\.json")


@dataclass(frozen=True, slots=True)
class CorrectionFiles:
    """The Corrections port below one store root. `random_hex(n)` gives n bytes as hex (`secrets.token_hex`)."""

    root: Path
    clock: Clock
    random_hex: Callable[[int], str]

    def add(self, key: TurnKey, *, revision: int, phase: str, recipe: str, recipe_version: str, said: str, call_id: str = "") -> Correction:
        now = self.clock()
        number = f"cor_{now.strftime('%Y%m%d_%H%M%S')}_{self.random_hex(4)}"
        made = Correction(
            id=number,
            user_id=key.user,
            turn_id=key.turn_id,
            revision=revision,
            phase=phase,
            recipe=recipe,
            recipe_version=recipe_version,
            call_id=call_id,
            said=redact(said),
            at=iso(now),
        )
        with ErasureIntents(self.root).beginning(key.user):
            if not path_inside(self.root, Layout(self.root).turn(key)).is_dir():
                raise UnknownTurnError(f"{key}: the turn is gone: expected one that is there")
            path = path_inside(self.root, self._folder(key.user) / f"{number}.json")
            write_atomic(path, encode_text(path.name, made.model_dump_json(indent=1) + "\n"))
        return made

    def of_user(self, user: UserId) -> tuple[Correction, ...]:
        folder = path_inside(self.root, self._folder(user))
        paths = sorted(p for p in folder.iterdir() if _NAME.fullmatch(p.name)) if folder.is_dir() else []
        return tuple(read_json_record(path_inside(self.root, path), Correction, expected="a correction") for path in paths)

    def _folder(self, user: UserId) -> Path:
        return Layout(self.root).user(user) / "corrections"
