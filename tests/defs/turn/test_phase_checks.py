"""What Dagster shows of a compression: its three checks, its figures, its table of facts, both texts."""

from dataclasses import replace

import dagster as dg
import pytest

from pandora_dagster.contracts.compression_results import GateVerdict
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.defs.turn.phase_checks import COMPRESSION_CHECKS, check_results, halt_results
from pandora_dagster.defs.turn.phase_metadata import phase_metadata
from pandora_dagster.phases.flow.phase_table import PHASES
from tests.defs.conftest import intervention

FACTS = {
    "compressions": [{"document": "toolresults.md", "tokens_before": 2000, "tokens_after": 900, "ratio": 0.45, "kept": 30}],
    "compressed_facts": [{"document": "toolresults.md", "outcome": "kept", "rank": "important", "kind": "money", "fact": "$12"}],
    "compression_before": "**toolresults.md**\n\nlong",
    "compression_tokens_before": 2000,
}


@pytest.fixture
def report(phases, key):
    return phases.run_phase("tool_results", key)


def test_a_phase_that_compressed_nothing_passes_and_says_so(report):
    """The checks are there in every run, so that a page of runs can be read."""
    found = {c.check_name: c for c in check_results(report, tuple(COMPRESSION_CHECKS))}
    assert all(c.passed and c.description == "nothing was compressed" for c in found.values()) and set(found) == set(COMPRESSION_CHECKS)


def test_an_overflow_is_a_warning(report):
    """A text that had to stay too large fails `within_budget` without an error: nothing was lost."""
    fields = replace(report, verdicts=(GateVerdict("within_budget", False, "critical facts alone need 2600 tokens"),))
    check = next(c for c in check_results(fields, ("within_budget",)))
    assert not check.passed and check.severity is dg.AssetCheckSeverity.WARN and "2600" in check.description


def test_every_compressed_document_is_judged_by_itself(report):
    """A check lists the phase's documents, each with its own verdict and tokens."""
    rows = [{"document": name, "tokens_before": 90, "tokens_after": n, "is_a_summary": n < 50} for name, n in (("a.md", 40), ("b.md", 60))]
    fields = replace(report, facts={"compressions": rows}, verdicts=(GateVerdict("is_a_summary", False, "echo"),))
    shown = next(c for c in check_results(fields, ("is_a_summary",))).metadata["documents"]
    assert isinstance(shown, dg.TableMetadataValue)
    assert [(r.data["document"], r.data["passed"], r.data["tokens_after"]) for r in shown.records] == [
        ("a.md", True, 40),
        ("b.md", False, 60),
    ]


def test_a_halt_for_lost_facts_fails_its_check(report):
    """fact_loss: `no_fact_changed` is red."""
    verdict = GateVerdict("no_fact_changed", False, "critical facts do not fit")
    fields = replace(report, halt=intervention(InterventionType.FACT_LOSS), verdicts=(verdict,))
    assert [(c.check_name, c.passed) for c in halt_results(fields, tuple(COMPRESSION_CHECKS))] == [("no_fact_changed", False)]


def test_figures_facts_and_texts_are_metadata(report):
    """Numbers as numbers, rows as tables, texts as Markdown."""
    shown = dg.AssetMaterialization("phase", metadata=phase_metadata(replace(report, facts=FACTS), "/t")).metadata
    assert isinstance(shown["compressions"], dg.TableMetadataValue) and isinstance(shown["compressed_facts"], dg.TableMetadataValue)
    assert isinstance(shown["compression_before"], dg.MarkdownMetadataValue)
    assert shown["compression_tokens_before"].value == 2000


def test_the_graph_has_the_checks_where_a_compression_can_occur(graph):
    """All three in every phase that makes calls, whose documents may be too large; none where no call is made."""
    checks = [key for asset in graph.assets for key in asset.check_keys if key.name in COMPRESSION_CHECKS]
    assert len(checks) == len(set(checks)) == 3 * len({key.asset_key for key in checks})
    assert {key.asset_key.to_user_string() for key in checks} == {spec.name for spec in PHASES if spec.recipes}
