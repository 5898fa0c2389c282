"""What the servers' counts teach: a ratio per layer and model, kept over restarts."""

import logging
from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.execution.fit.call_budget import FIRST_RATIO, TEMPLATE_TOKENS, TokenRatioEstimator
from pandora_dagster.stores.calls.token_ratio_file import TokenRatioFile

MIND, VOICE = ModelLayer.MIND, ModelLayer.VOICE


def taught(
    correction: TokenRatioEstimator, *served: int, layer: ModelLayer = MIND, model: str = "m", counted: int = 1_000
) -> TokenRatioEstimator:
    for tokens in served:
        correction.learn(layer, model, counted=counted, served=tokens + TEMPLATE_TOKENS)
    return correction


def test_the_highest_ratio_counts_and_small_samples_do_not() -> None:
    """A layer's ratio follows its worst count, per layer and model, never below 1."""
    assert taught(TokenRatioEstimator(), 500, counted=10).ratio(MIND, "m") == FIRST_RATIO
    assert taught(TokenRatioEstimator(), 900).ratio(MIND, "m") == 1.0
    learned = taught(TokenRatioEstimator(), 2_000, 1_000)
    assert (learned.ratio(MIND, "m"), learned.ratio(VOICE, "m"), learned.ratio(MIND, "other")) == (2.0, FIRST_RATIO, FIRST_RATIO)


def test_one_odd_prompt_is_forgotten() -> None:
    """After as many usual prompts as are remembered, an odd one no longer narrows the layer."""
    correction = taught(TokenRatioEstimator(), 3_000, *[1_200] * 63)
    assert correction.ratio(MIND, "m") == 3.0
    assert taught(correction, 1_200).ratio(MIND, "m") == 1.2


def test_what_was_learned_outlives_the_process(tmp_path: Path) -> None:
    """The next process plans with it from its first call; a new model on the layer starts anew."""
    taught(TokenRatioEstimator(TokenRatioFile(tmp_path)), 1_300, 1_250)
    taught(TokenRatioEstimator(TokenRatioFile(tmp_path)), 1_100, layer=VOICE)
    later = TokenRatioEstimator(TokenRatioFile(tmp_path))
    assert (later.ratio(MIND, "m"), later.ratio(VOICE, "m"), later.ratio(MIND, "new")) == (1.3, 1.1, FIRST_RATIO)
    taught(later, 1_400, model="new")
    assert TokenRatioEstimator(TokenRatioFile(tmp_path)).ratio(MIND, "new") == 1.4


def test_a_falling_ratio_is_kept_too(tmp_path: Path) -> None:
    """The file follows what holds now."""
    taught(TokenRatioEstimator(TokenRatioFile(tmp_path)), 3_000, *[1_200] * 64)
    assert TokenRatioFile(tmp_path).find(MIND, "m") == 1.2


@pytest.mark.parametrize("text", ["{", "[]", '{"MIND": {"model": "m", "ratio": 0.2}}', '{"MIND": {"model": "m"}}', '{"LEGS": {}}'])
def test_a_damaged_file_is_said_and_begun_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str) -> None:
    """No call fails for it."""
    caplog.set_level(logging.WARNING)
    path = tmp_path / "token_ratios.json"
    path.write_text(text)
    correction = TokenRatioEstimator(TokenRatioFile(tmp_path))
    assert correction.ratio(MIND, "m") == FIRST_RATIO and f"{path}: " in caplog.text and "expected" in caplog.text
    taught(correction, 1_500)
    assert TokenRatioFile(tmp_path).find(MIND, "m") == 1.5


def test_a_store_that_refuses_costs_only_the_memory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What could not be kept is said, and holds for this process."""
    (tmp_path / "store").write_text("no folder")
    correction = taught(TokenRatioEstimator(TokenRatioFile(tmp_path / "store")), 1_500)
    assert correction.ratio(MIND, "m") == 1.5 and "was not kept" in caplog.text
