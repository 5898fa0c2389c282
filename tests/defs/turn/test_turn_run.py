"""A turn through the graph in this process."""

import threading

import pytest

from pandora_dagster.defs.turn.turn_run import downstream_phases, ui_commands
from pandora_dagster.phases.flow.phase_table import PHASES
from pandora_dagster.settings import load_settings
from pandora_dagster.shipped import shipped_folder


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (("validation",), ("validation", "saved_turn", "turn_summary", "conversation_summary", "session_facts")),
        (("turn_summary",), ("turn_summary", "conversation_summary", "session_facts")),
        (("clarification",), ("clarification",)),
        (("turn_request",), tuple(p.name for p in PHASES)),
        (("clarification", "saved_turn"), ("clarification", "saved_turn", "turn_summary", "conversation_summary", "session_facts")),
    ],
)
def test_a_selection_takes_all_that_follows(select, expected):
    """`phase+`, in the order of the flow."""
    assert downstream_phases(select) == expected


def test_an_unknown_phase_is_named():
    """A misspelt phase does not run nothing, silently."""
    with pytest.raises(ValueError, match="phase9"):
        downstream_phases(("phase9",))


def test_the_outcome_holds_the_reports_in_order(graph):
    """The command line prints its account from them."""
    outcome = graph.run()
    assert [r.phase for r in outcome.reports if not r.skipped] == graph.phases.ran
    assert outcome.halt is None
    assert outcome.error is None


def test_two_threads_take_turns(graph):
    """Two runs in one process wait for each other instead of hanging."""
    outcomes = []
    threads = [threading.Thread(target=lambda: outcomes.append(graph.run()), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert [o.success for o in outcomes] == [True, True]


@pytest.mark.parametrize(("has_workspace", "opened"), [(True, "workspace.yaml"), (False, str(shipped_folder() / "workspace.yaml"))])
def test_the_page_opens_the_same_store_and_history(tmp_path, monkeypatch, has_workspace, opened):
    """In a checkout `workspace.yaml`, elsewhere the shipped one; both over the settings' own folders."""
    monkeypatch.chdir(tmp_path)
    if has_workspace:
        (tmp_path / "workspace.yaml").write_text("load_from: []\n")
    (page, daemon, pages), environment = ui_commands(load_settings({"PANDORA_ROOT": "store"}), host="127.0.0.1", port=3001)
    assert page[1:] == ["-m", "dagster_webserver", "-w", opened, "-h", "127.0.0.1", "-p", "3001"]
    assert daemon[1:] == ["-m", "dagster._daemon", "run", "-w", opened]
    assert pages[-1] == "pages"
    assert environment["DAGSTER_HOME"] == str(tmp_path / "store" / "dagster")
    assert environment["PANDORA_ROOT"] == str(tmp_path / "store")
    assert (tmp_path / "store" / "dagster" / "dagster.yaml").is_file()


def test_a_failure_outside_the_phases_is_reported_too(graph):
    """A run never fails without a reason for the caller."""
    graph.phases.folder = lambda key, revision: 1 / 0
    outcome = graph.run()
    assert not outcome.success
    assert "turn_request" in str(outcome.error)
    assert "division by zero" in str(outcome.error)
