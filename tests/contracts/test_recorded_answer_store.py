"""What every store of recorded answers must do, asked of one on the disk and of one in memory."""

from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ports.object_storage import Storage
from pandora_dagster.contracts.ports.record_storage import RecordedAnswerStore
from pandora_dagster.contracts.recipe_governance import RecordedAnswer, RecordedAnswers
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.record_files import storage_of
from pandora_dagster.stores.records.recorded_answer_files import RecordedAnswerFiles
from tests.fakes.storage import fake_storage

RECIPE = "pipeline/phase0_query_analyzer"


def recorded(answer: str) -> RecordedAnswers:
    made = RecordedAnswer(
        request="ab" * 32,
        recipe=RECIPE,
        layer=ModelLayer.REFLEX,
        runtime="sglang",
        model="tiny",
        recorded_at="2026-01-04T14:30:00Z",
        finish_reason="stop",
        answer=answer,
    )
    return RecordedAnswers(recipe=RECIPE, version="v1", answers=(made,))


@pytest.fixture(params=["memory", "disk"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return fake_storage() if request.param == "memory" else storage_of(tmp_path)


@pytest.fixture
def answers(storage: Storage) -> RecordedAnswerStore:
    return RecordedAnswerFiles(storage)


def test_a_recipe_has_its_newest_recordings(answers: RecordedAnswerStore) -> None:
    """Another recipe has none."""
    answers.put(recorded("first"))
    answers.put(recorded("second"))
    assert answers.of_recipe(RECIPE) == recorded("second") and answers.of_recipe("pipeline/phase6_validator") is None


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    answers = RecordedAnswerFiles(tmp_path)
    path = answers.put(recorded("first"))
    path.write_text("{")
    with pytest.raises(DocumentError, match=r"phase0_query_analyzer\.json"):
        answers.of_recipe(RECIPE)
