"""Runs of turns that left no record: from what the turns store, once, and as a command records them after the answer."""

import os
from dataclasses import replace
from datetime import timedelta

import dagster as dg
import pytest

from pandora_dagster.app import open_app
from pandora_dagster.defs.instance import open_instance
from pandora_dagster.defs.turn.missing_runs import record_recent_turns, record_stored_turns
from pandora_dagster.defs.turn.turn_run import report_turn
from pandora_dagster.phases.core.phase_report import TimedReports
from pandora_dagster.phases.flow.phase_table import phase_spec
from pandora_dagster.settings import load_settings
from tests.defs.archival.test_recorded_archival import materializations

QUESTIONS = ("The oak desk costs 248 euros.", "What did the desk cost?")


@pytest.fixture
def app(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("PANDORA_", "DAGSTER_"))]:
        monkeypatch.delenv(name)
    opened = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}))
    yield opened
    opened.close()


def asked(app, text=QUESTIONS[0]):
    """A finished turn with the reports that its command had."""
    key, reports = app.start(text, user="ann", session="s1", mode="chat"), TimedReports()
    app.run_turn(key, on_report=reports.append)
    return key, reports


def later(app, **passed):
    """The application after this time."""
    clock = app.dependencies.clock
    return replace(app, dependencies=replace(app.dependencies, clock=lambda: clock() + timedelta(**passed)))


def test_the_run_of_a_stored_turn_has_what_the_recorded_one_has(app, tmp_path):
    """The same phases, checks, sections and counts, from the store alone; a second time there is nothing to record."""
    key, reports = asked(app, QUESTIONS[0])
    report_turn(app, key, reports)
    with dg.instance_for_test() as other, open_instance(app.settings) as own:
        (run_id,) = record_stored_turns(app, other, [key])
        assert other.get_run_by_id(run_id).tags["pandora/turn"] == key.turn_id
        for report in reports:
            (stored,), (first,) = (materializations(i, report.phase)[str(key)] for i in (other, own))
            has_section = phase_spec(report.phase).section is not None
            for name in ("calls", "tokens_used", "path", "session", *(("section",) if has_section else ())):
                assert stored.metadata.get(name) == first.metadata.get(name), (report.phase, name)
            assert not has_section or stored.tags["dagster/data_version"] == first.tags["dagster/data_version"]
        assert _checks(other, run_id) == _checks(own, own.get_runs()[0].run_id)
        assert record_stored_turns(app, other, [key]) == [] and other.get_runs_count() == 1


def test_a_later_turn_records_the_one_whose_process_died(app):
    """Not at once: its process may be about to. An imported turn has no run at all."""
    app.transfer.import_example()
    dead, _ = asked(app)
    key, reports = asked(app, QUESTIONS[1])
    report_turn(app, key, reports)
    with open_instance(app.settings) as instance:
        assert _turns(instance) == [key.turn_id]
        assert record_recent_turns(later(app, minutes=3), instance, "example") == []
    next_key, reports = asked(app, QUESTIONS[1])
    report_turn(later(app, minutes=3), next_key, reports)
    with open_instance(app.settings) as instance:
        assert sorted(_turns(instance)) == [dead.turn_id, key.turn_id, next_key.turn_id]


def test_a_halt_without_a_record_becomes_a_failed_run(app, monkeypatch):
    """The failed step names the intervention; a turn that is still open is left to `resume`."""
    settings = load_settings({"PANDORA_ROOT": str(app.settings.root), "PANDORA_RUNTIME": "sglang"})
    unreachable = open_app(settings)
    key = unreachable.start(QUESTIONS[0], user="ann", session="s1", mode="chat")
    halt = unreachable.run_turn(key, on_report=lambda _: None).halt
    unreachable.start(QUESTIONS[1], user="ann", session="s1", mode="chat")
    unreachable.close()
    with dg.instance_for_test() as instance:
        (run_id,) = record_recent_turns(later(app, minutes=3), instance, "ann")
        assert instance.get_run_by_id(run_id).status is dg.DagsterRunStatus.FAILURE
        (failed,) = [e.dagster_event for e in instance.all_logs(run_id) if e.dagster_event and e.dagster_event.is_step_failure]
        assert halt.id in failed.step_failure_data.user_failure_data.description
        assert record_recent_turns(later(app, minutes=3), instance, "ann") == []


def _turns(instance):
    return [run.tags["pandora/turn"] for run in instance.get_runs()]


def _checks(instance, run_id):
    events = [e.dagster_event for e in instance.all_logs(run_id) if e.dagster_event]
    kept = [e.asset_check_evaluation_data for e in events if e.event_type_value == "ASSET_CHECK_EVALUATION"]
    return {(c.asset_key.to_user_string(), c.check_name): c.passed for c in kept}
