"""Token ratios of the served tokenizers, in one file: `<root>/token_ratios.json`."""

from typing import Annotated

from pydantic import Field, RootModel

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.strict_model import StrictModel
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.record_files import RecordFiles, StorageRoot


class _Ratio(StrictModel):
    model: str
    ratio: Annotated[float, Field(ge=1, allow_inf_nan=False)]


class _Ratios(RootModel[dict[ModelLayer, _Ratio]]):
    """One entry per layer, of the model that answered there last: another model has another tokenizer."""


class TokenRatioFile:
    """The TokenRatios port."""

    def __init__(self, storage: StorageRoot, *, lock_seconds: float = 10.0) -> None:
        self._file = RecordFiles(storage, "token_ratios.json", _Ratios, expected="layers with model and ratio", lock_seconds=lock_seconds)

    def find(self, layer: ModelLayer, model: str) -> float | None:
        """The ratio of this model on this layer, None where none is stored; raises DocumentError for a damaged file."""
        stored = self._file.find()
        entry = stored.root.get(layer) if stored else None
        return entry.ratio if entry and entry.model == model else None

    def keep(self, layer: ModelLayer, model: str, ratio: float) -> None:
        """Replace the entry of a layer, under the lock; raises StoreError. A damaged file is replaced by a new one."""
        with self._file.lock(what="the token ratios"):
            try:
                stored = self._file.find()
            except DocumentError:
                stored = None
            self._file.put(_Ratios({**(stored.root if stored else {}), layer: _Ratio(model=model, ratio=ratio)}))
