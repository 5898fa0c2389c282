"""What users see of a phase: the section, the calls, numbers that plot."""

import dagster as dg
import pytest

from pandora_dagster.defs.turn.phase_metadata import data_version, phase_metadata


@pytest.fixture
def report(phases, key):
    return phases.run_phase("reflection", key)


def test_a_materialisation_shows_section_calls_and_whereabouts(graph):
    """Numbers are numbers; versions, runtime and the turn's folder stand beside them."""
    graph.run()
    shown = graph.metadata("reflection")
    assert shown["section"] == "What **reflection** wrote."
    assert {n: shown[n] for n in ("tokens_prompt", "tokens_input", "tokens_output", "tokens_cached", "latency_ms")} == {
        "tokens_prompt": 300,
        "tokens_input": 120,
        "tokens_output": 80,
        "tokens_cached": 30,
        "latency_ms": 12.3,
    }
    assert "| phase1_reflection | ab12/cd34 | MIND: extractive | 500 of 1500 | 12.3 ms | ok |" in shown["calls"]
    assert not {"retries", "queue_ms", "cost"} & set(shown), "Dagster stores 150 bytes for each zero"
    assert shown["path"] == "/store/users/ann/turns/turn_000811"
    assert "left_out" not in shown


def test_waiting_cost_and_sources_are_numbers_that_plot(report):
    """Each source of the context that varies is a number of its own; what the router said is text."""
    fields = {
        "queue_ms": 12.5,
        "cost": 0.25,
        "context_sizes": {"context.md": 90, "query": 20, "role": 200},
        "routed": ("long +1", "score 1 < 4: REFLEX"),
    }
    calls = [call.model_copy(update=fields) for call in (report.calls[0], report.calls[0])]
    shown = _shown(_with(report, calls=calls, facts={"turn_tokens": 80_000, "turn_tokens_alarm": "80,000 tokens"}))
    numbers = {name: value.value for name, value in shown.items() if isinstance(value, dg.IntMetadataValue | dg.FloatMetadataValue)}
    assert numbers["queue_ms"] == 25.0 and numbers["cost"] == 0.5 and numbers["turn_tokens"] == 80_000
    assert {name for name in shown if name.startswith("context/")} == {"context/context.md", "context/query"}
    assert (numbers["context/context.md"], numbers["context/query"]) == (180, 40)
    assert shown["turn_tokens_alarm"].value == "80,000 tokens" and "score 1 < 4: REFLEX" in shown["routed"].value
    assert "12.3 ms (12.5 queued)" in shown["calls"].value


def test_each_call_is_a_row_with_tokens_against_budget(report):
    """A failed call says why in its row."""
    failed = report.calls[0].model_copy(
        update={"success": False, "error": "cut answer", "escalated": True, "retries": 2, "confidence": 0.4, "cost": 0.25}
    )
    rows = _shown(_with(report, calls=(*report.calls, failed)))["calls"].value.splitlines()[2:]
    assert rows[0].endswith("| ok |") and rows[1].endswith("| cut answer; 2 retries; confidence 0.40; cost 0.25 |")
    assert "| MIND: extractive (escalated) | 500 of 1500 |" in rows[1]


@pytest.mark.parametrize(
    ("fact", "kind"),
    [
        (True, dg.BoolMetadataValue),
        (3, dg.IntMetadataValue),
        (0.5, dg.FloatMetadataValue),
        ("APPROVE", dg.TextMetadataValue),
        ([{"round": 1, "decision": "REVISE"}, {"round": 2, "issues": ("x",)}], dg.MarkdownMetadataValue),
        ([{"round": n} for n in range(11)], dg.TableMetadataValue),
        ([], dg.JsonMetadataValue),
        ({"a": (1, None)}, dg.JsonMetadataValue),
        (None, dg.JsonMetadataValue),
    ],
)
def test_a_fact_is_shown_as_what_it_is(report, fact, kind):
    """Numbers plot, tables are tables, the rest is JSON."""
    assert isinstance(_shown(_with(report, facts={"rounds": fact}))["rounds"], kind)


def test_what_was_left_out_is_listed(report):
    """Selection leaves a trace that users can read."""
    call = report.calls[0].model_copy(update={"left_out": ("turn_000001", "turn_000002")})
    assert _shown(_with(report, calls=(call,)))["left_out"].md_str == "- turn_000001\n- turn_000002"


def test_the_data_version_tells_recipe_prompt_and_content(report):
    """A changed recipe, prompt or section changes it; the same again does not (DECISIONS 29)."""
    same = data_version(report).value
    assert same.startswith("pipeline/phase1_reflection@ab12/cd34+")
    changed = report.calls[0].model_copy(update={"prompt_version": "ffff"})
    others = {data_version(_with(report, calls=(changed,))).value, data_version(_with(report, section="other")).value}
    assert same == data_version(_with(report)).value
    assert same not in others


def _shown(report):
    """The metadata as Dagster types them."""
    return dg.AssetMaterialization("phase", metadata=phase_metadata(report, "/t")).metadata


def _with(report, **changed):
    from dataclasses import replace

    return replace(report, **changed)
