"""An archival run's texts shortened in other processes: the same archive, and none of them left."""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest

from pandora_dagster.app import App, archive_service, open_app
from pandora_dagster.execution.fit.worker_pool import CompressionWorkerPool
from pandora_dagster.settings import load_settings
from tests.execution.fit.test_worker_pool import workers
from tests.phases.vocabulary import vocabulary

DAYS = [date(2026, 1, 1) + timedelta(days=n) for n in range(10)]


def line(number: int) -> bytes:
    offers = [
        f"Offer {n}: the oak desk from Miller costs ${400 + n * number} and never arrives before 2026-01-{10 + n}." for n in range(20)
    ]
    messages = [{"role": "user", "content": f"Which desk for room {number}?"}, {"role": "assistant", "content": "\n\n".join(offers)}]
    return json.dumps({"id": f"c{number}", "user_id": "anna", "created_at": "2026-01-04T10:00:00Z", "messages": messages}).encode()


def archived(root: Path) -> tuple[dict[str, str], App]:
    """What an archival run leaves of four turns: their documents by name, but for the moments of their records."""
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}), counter=vocabulary())
    app.transfer.import_conversations(map(line, range(1, 5)), where="made")
    report = archive_service.ArchiveService(app).run(DAYS, run_id="", on_row=lambda row: None)
    assert report.counts == {"archived": 4} and report.compressed == 4
    return {str(key): app.turns.load(key).context for key in list(app.turns.keys())}, app


@pytest.mark.parametrize(("many", "spare", "expected"), [(4, 1, 4), (4, 0, 0), (5, 1, 0)])
def test_many_turns_are_shortened_apart_and_come_out_the_same(tmp_path, monkeypatch, many, spare, expected):
    """Only where they are many and a processor is spare."""
    plain, app = archived(tmp_path / "plain")
    app.close()
    answered: list[int] = []

    class Counted(CompressionWorkerPool):
        async def __call__(self, contract, tokens):
            answered.append(tokens)
            made = await super().__call__(contract, tokens)
            assert len(workers()) == 1
            return made

    monkeypatch.setattr(archive_service, "_MIN_TURNS_FOR_WORKERS", many)
    monkeypatch.setattr(archive_service, "spare_processor_count", lambda: spare)
    monkeypatch.setattr(archive_service, "CompressionWorkerPool", Counted)
    apart, app = archived(tmp_path / "apart")
    assert apart == plain and len(answered) == expected and not workers()
    assert app.indexes.verify() == ()
    app.close()
