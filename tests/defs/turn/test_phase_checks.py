"""What Dagster shows of a compression: its check, its figures, its table of facts, both texts."""

from dataclasses import replace

import dagster as dg
import pytest

from pandora_dagster.contracts.compression_results import GateVerdict
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.defs.turn.phase_checks import COMPRESSION_CHECK, check_results, judged_results
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
    """The check of a run that executes assets; a recorded run leaves out what had nothing to judge."""
    (found,) = check_results(report, (COMPRESSION_CHECK,))
    assert found.passed and found.description == "nothing was compressed"
    assert not list(judged_results(report, (COMPRESSION_CHECK,)))


def test_an_overflow_is_a_warning(report):
    """A text that had to stay too large fails without an error: nothing was lost."""
    fields = replace(report, verdicts=(GateVerdict("within_budget", False, "critical facts alone need 2600 tokens"),))
    check = next(c for c in check_results(fields, (COMPRESSION_CHECK,)))
    assert not check.passed and check.severity is dg.AssetCheckSeverity.WARN and "2600" in check.description


def test_every_compressed_document_is_judged_by_itself(report):
    """A check lists the phase's documents, each with its own verdict and tokens."""
    rows = [{"document": name, "tokens_before": 90, "tokens_after": n, "is_a_summary": n < 50} for name, n in (("a.md", 40), ("b.md", 60))]
    fields = replace(report, facts={"compressions": rows}, verdicts=(GateVerdict("is_a_summary", False, "echo"),))
    shown = next(c for c in check_results(fields, (COMPRESSION_CHECK,))).metadata["documents"]
    assert isinstance(shown, dg.TableMetadataValue)
    assert [(r.data["document"], r.data["is_a_summary"], r.data["tokens_after"]) for r in shown.records] == [
        ("a.md", True, 40),
        ("b.md", False, 60),
    ]


def test_a_halt_for_lost_facts_fails_its_check(report):
    """fact_loss: `compression_sound` is red and names the verdict."""
    verdict = GateVerdict("no_fact_changed", False, "critical facts do not fit")
    fields = replace(report, halt=intervention(InterventionType.FACT_LOSS), verdicts=(verdict,))
    (check,) = judged_results(fields, ("schema_validation", COMPRESSION_CHECK))
    assert (check.check_name, check.passed, check.severity) == (COMPRESSION_CHECK, False, dg.AssetCheckSeverity.ERROR)
    assert check.metadata["reason"].value == "no_fact_changed: critical facts do not fit"


def test_figures_facts_and_texts_are_metadata(report):
    """Numbers as numbers, rows as tables, texts as Markdown."""
    shown = dg.AssetMaterialization("phase", metadata=phase_metadata(replace(report, facts=FACTS), "/t")).metadata
    assert isinstance(shown["compressions"], dg.MarkdownMetadataValue) and "| 2000 | 900 |" in shown["compressions"].value
    assert isinstance(shown["compression_before"], dg.MarkdownMetadataValue)
    assert shown["compression_tokens_before"].value == 2000


def test_the_graph_has_the_check_where_a_compression_can_occur(graph):
    """In the phases that read or write what was gathered, planned and answered; the others read the query and bounded lists."""
    checks = [key for asset in graph.assets for key in asset.check_keys if key.name == COMPRESSION_CHECK]
    written = {spec.name for spec in PHASES if spec.section and spec.section > 1 and spec.name != "clarification"}
    assert {key.asset_key.to_user_string() for key in checks} == written


def test_credentials_are_redacted_in_what_dagster_stores(report):
    """Dagster's storage is derived: a password of the user stays in the documents alone."""
    secret = "sk-ant-api03-" + "Ab1" * 12
    facts = {"notice": f"key {secret}", "rows": [{"text": secret}], "list": [secret, {"inner": secret}]}
    verdict = GateVerdict("evidence_required", False, f"no source says {secret}", rows=({"statement": f"The key is {secret}."},))
    leaky = replace(report, section=f"My key is {secret}.", facts=facts, verdicts=(verdict,), halt=intervention())
    stored = dg.AssetMaterialization("phase", metadata=phase_metadata(leaky, "/t"))
    shown = [*judged_results(leaky, ("evidence_required",)), *check_results(leaky, ("evidence_required",))]
    assert "My key is" in str(stored) and "no source says" in str(shown)
    assert secret not in f"{stored} {shown}"


def test_the_statements_of_an_answer_are_a_table(report):
    """The check `evidence_required` lists each statement with what it cites, the verdict and the reason."""
    row = {"statement": "It cost 429 euros.", "cited": "[1]", "verdict": "refused", "reason": "value 429 euros: not in [1]", "source": ""}
    fields = replace(report, verdicts=(GateVerdict("evidence_required", False, "1 of 1", 1.0, (row,)),))
    (check,) = check_results(fields, ("evidence_required",))
    table = check.metadata["statements"]
    assert isinstance(table, dg.TableMetadataValue) and [record.data for record in table.records] == [row]
