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


@pytest.mark.parametrize(
    ("many", "spare", "long", "expected"), [(4, 1, 10_000, 1), (4, 0, 10_000, 0), (5, 1, 10_000, 0), (5, 1, 100, 1), (4, 0, 100, 1)]
)
def test_texts_are_shortened_apart_and_come_out_the_same(tmp_path, monkeypatch, many, spare, long, expected):
    """Where they are many and a processor is spare; long ones always, as only a process can be ended."""
    plain, app = archived(tmp_path / "plain")
    app.close()
    processes: list[int] = []

    class Counted(CompressionWorkerPool):
        async def __call__(self, contract, tokens):
            made = await super().__call__(contract, tokens)
            processes.append(len(workers()))
            return made

    monkeypatch.setattr(archive_service, "_MIN_TURNS_FOR_WORKERS", many)
    monkeypatch.setattr(archive_service, "_MIN_TOKENS_FOR_WORKERS", long)
    monkeypatch.setattr(archive_service, "spare_processor_count", lambda: spare)
    monkeypatch.setattr(archive_service, "CompressionWorkerPool", Counted)
    apart, app = archived(tmp_path / "apart")
    assert apart == plain and processes == [expected] * 4 and not workers()
    assert app.indexes.verify() == ()
    app.close()


def test_a_document_that_takes_too_long_stays_whole_and_the_others_are_compressed(tmp_path, monkeypatch):
    """One such document kept a run from all others."""

    class Slow(CompressionWorkerPool):
        def _worker_outcome(self, job):
            self._timeout_s = 0.001 if "for room 2?" in job[0].text else 60.0
            return super()._worker_outcome(job)

    monkeypatch.setattr(archive_service, "_MIN_TOKENS_FOR_WORKERS", 0)
    monkeypatch.setattr(archive_service, "spare_processor_count", lambda: 1)
    monkeypatch.setattr(archive_service, "CompressionWorkerPool", Slow)
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path)}), counter=vocabulary())
    app.transfer.import_conversations(map(line, range(1, 5)), where="made")
    report = archive_service.ArchiveService(app).run(DAYS, run_id="", on_row=lambda row: None)
    assert report.counts == {"archived": 4} and report.compressed == 3
    records = [app.turns.manifest(key).archive for key in sorted(app.turns.keys(), key=str)]
    assert [document.whole for record in records for document in record.documents] == ["", "no compression within 0.001 s", "", ""]
    app.close()
