"""What a turn took so far, told with each of its phases; and the alarm, once, where that is too much."""

import logging

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.contracts import model_calls
from pandora_dagster.contracts.enums import Priority
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow.turn_flow import run_phase
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.calls.metrics_file import read_metrics


def test_a_turn_tells_what_it_took_and_says_once_when_that_is_too_much(tmp_path, monkeypatch, caplog):
    """The sums grow phase by phase and are those of the index; the live phases go before what follows the answer."""
    monkeypatch.setattr(model_calls, "EXPECTED_TURN_TOKENS", 3_000)
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path)}))
    asked: list[tuple[str, Priority]] = []
    plain = app.dependencies.execution.call

    async def heard(request):
        asked.append((request.site.phase, request.site.priority))
        return await plain(request)

    monkeypatch.setattr(app.dependencies.execution, "call", heard)
    reports: list[PhaseReport] = []
    with caplog.at_level(logging.WARNING):
        key = app.start("Which chair did we order?", user="ann", session="s1")
        app.run_turn(key, on_report=reports.append)
    messages = [r.facts["turn_tokens"] for r in reports if r.calls]
    assert messages == sorted(messages) and messages[0] < 3_000 < messages[-1] == app.calls.totals(key, 0).used_tokens
    alarms = [("turn_tokens_alarm" in r.facts) for r in reports if r.calls]
    assert alarms == [tokens > 3_000 for tokens in messages] and caplog.text.count("tokens in this turn: expected about 3,000") == 1
    assert {phase for phase, priority in asked if priority is Priority.FOLLOW_UP} == {p for p, _ in asked} & {
        "turn_summary",
        "conversation_summary",
    }
    app.close()
    metrics = read_metrics(tmp_path / "metrics" / "pandora.prom")
    assert sum(value for (name, _), value in metrics.items() if name == "pandora_calls_total") == len(asked)
    assert pytest.approx(len(asked)) == sum(v for (name, _), v in metrics.items() if name == "pandora_call_seconds_count")


def test_a_batch_asks_with_the_archival_runs_priority(tmp_path, monkeypatch):
    """From the first call on: nobody waits for its answers."""
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path)}), priority=Priority.BATCH)
    asked: list[Priority] = []
    plain = app.dependencies.execution.call

    async def heard(request):
        asked.append(request.site.priority)
        return await plain(request)

    monkeypatch.setattr(app.dependencies.execution, "call", heard)
    key = app.start("Which chair did we order?", user="ann", session="s1")
    for phase in ("turn_request", "query_analysis"):
        app.run(run_phase(phase, key, app.dependencies))
    assert asked == [Priority.BATCH]
    app.close()
