"""Embeddings in the application: off by default, made after the answer, told by the doctor, and never in the way."""

from json import dumps
from pathlib import Path

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.turns import RebuildReport
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.settings import load_settings
from tests.fakes.embedding_model import FakeEmbedder

_SAID = ("my physician called", "noted", "the desk is oak", "fine")
_MESSAGES = [{"role": role, "content": text} for role, text in zip(("user", "assistant") * 2, _SAID, strict=True)]
_LINE = dumps({"id": "c1", "user_id": "ann", "created_at": "2026-01-04T10:00:00Z", "messages": _MESSAGES}).encode()


def _open(folder: Path, embeds: FakeEmbedder | None = None, **environ: str) -> App:
    return open_app(load_settings({"PANDORA_ROOT": str(folder / "store"), **environ}), embeds=embeds)


def _found(app: App, query: str) -> list[str]:
    return [result.text for result in app.search.messages(query, user="ann", budget_tokens=500).results]


def test_off_makes_no_vectors(tmp_path: Path) -> None:
    """Neither file nor finding."""
    app = _open(tmp_path)
    app.transfer.import_conversations([_LINE], where="f")
    assert "vectors" not in app.indexes.rebuild().rows and not (tmp_path / "store/indexes/turn_vectors.duckdb").exists()
    assert "embeddings" not in {finding.part for finding in app.run(app.health.check())} and not _found(app, "doctor")
    app.close()


def test_an_import_is_embedded_and_found_by_meaning(tmp_path: Path) -> None:
    """The import, the search, the rebuild and the doctor."""
    embeds = FakeEmbedder()
    app = _open(tmp_path, embeds)
    app.transfer.import_conversations([_LINE], where="f")
    assert any("my physician called" in text for text in _found(app, "doctor"))
    report: RebuildReport = app.indexes.rebuild()
    assert report.rows["vectors"] == 4 and len([text for text in embeds.asked if "physician" in text]) == 1
    says = {finding.part: finding for finding in app.run(app.health.check())}["embeddings"]
    assert says.ok and says.says == "fake 1: vectors of 64 values"
    app.close()


def test_a_turn_is_embedded_after_its_answer(tmp_path: Path) -> None:
    """When the turn is saved nothing of it was embedded; when it has come to rest, all it said was."""
    embeds, asked_when_saved = FakeEmbedder(), list[str]()
    app = _open(tmp_path, embeds)

    def report(phase: PhaseReport) -> None:
        if phase.phase == "saved_turn":
            asked_when_saved.extend(embeds.asked)

    key = app.start("The automobile is red.", user="ann")
    app.run_turn(key, on_report=report)
    assert app.turns.manifest(key).state == "saved" and not asked_when_saved
    assert any("automobile" in text for text in embeds.asked)
    for other in ("The kettle is blue.", "The door is locked."):
        app.run_turn(app.start(other, user="ann"), on_report=lambda phase: None)
    assert any("automobile" in text for text in _found(app, "car"))
    app.close()


def test_a_failing_model_fails_neither_ask_nor_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both go by words alone; a notice says so, and so does the doctor."""
    embeds = FakeEmbedder()
    app = _open(tmp_path, embeds)
    app.transfer.import_conversations([_LINE], where="f")
    embeds.fails = True
    key = app.start("What is the desk made of?", user="ann")
    last = app.run_turn(key, on_report=lambda _: None)
    assert last.halt is None and "oak" in app.answer_of(key).response
    assert any("oak" in text for text in _found(app, "desk"))
    assert "search without vectors: embeddings at" in capsys.readouterr().err
    says = {finding.part: finding for finding in app.run(app.health.check())}["embeddings"]
    assert not says.ok and "refused the connection" in says.says
    app.close()


def test_a_runtime_file_without_a_server_for_vectors_is_a_fault(tmp_path: Path) -> None:
    """Told at once, with what to do."""
    with pytest.raises(ConfigurationError, match="embeddings is missing: expected a server's name") as error:
        _open(tmp_path, PANDORA_EMBEDDINGS="runtime")
    assert "local or off" in error.value.hint
