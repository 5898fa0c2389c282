"""What was learned of the served tokenizers, in one small file: `<root>/token_ratios.json`. Knows the file, not what it is for."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, RootModel

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.disk.files import encode_text, path_inside, write_atomic
from pandora_dagster.stores.disk.json_files import find_json_record

_FILE = "token_ratios.json"


class _Ratio(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    model: str
    ratio: Annotated[float, Field(ge=1, allow_inf_nan=False)]


class _Ratios(RootModel[dict[ModelLayer, _Ratio]]):
    """One entry a layer, of the model that answered there last: another model has another tokenizer."""


class TokenRatioFile:
    """The file, written whole or not at all."""

    def __init__(self, root: Path, *, lock_seconds: float = 10.0) -> None:
        self._root, self._lock_seconds = root, lock_seconds

    def find(self, layer: ModelLayer, model: str) -> float | None:
        """The ratio that was kept for this model on this layer; raises DocumentError for a damaged file."""
        known = self._load().get(layer)
        return known.ratio if known and known.model == model else None

    def keep(self, layer: ModelLayer, model: str, ratio: float) -> None:
        """Replace the layer's entry, while no other process does; raises StoreError. A damaged file is begun anew."""
        with file_lock(self._path().with_name(f".{_FILE}.lock"), what="the token ratios", seconds=self._lock_seconds):
            try:
                known = self._load()
            except DocumentError:
                known = {}
            ratios = _Ratios({**known, layer: _Ratio(model=model, ratio=ratio)})
            write_atomic(self._path(), encode_text(_FILE, ratios.model_dump_json(indent=1) + "\n"))

    def _load(self) -> dict[ModelLayer, _Ratio]:
        found = find_json_record(self._path(), _Ratios, expected="layers with model and ratio")
        return found.root if found else {}

    def _path(self) -> Path:
        return path_inside(self._root, self._root / _FILE)
