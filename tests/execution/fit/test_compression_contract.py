"""The three checks of a compression, what the cache knows, and the judgement of a whole made of parts."""

from datetime import timedelta

import pytest

from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.execution.fit.compression_contract import CompressionContract, compression_gates
from tests.execution.fit.test_summarization_engine import FILLER, LIMIT, REPORT


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("The shop sold chair CH100X for $149.00.", set()),
        ("{limit}The budget may exceed $1,299.00.", {"no_fact_changed"}),
        ("Error: payment gateway timed out at 11:31.", {"no_fact_changed"}),
        ("{limit}{filler}", set()),
        ("{limit}{filler}{filler}{filler}{filler}", {"within_budget"}),
        ("Sure! Here is a summary of the text you gave me:\n{limit}", {"is_a_summary"}),
    ],
)
def test_the_three_checks_are_what_was_found(text, failed, counter):
    """Each fails for its own reason and says it."""
    original = LIMIT + REPORT
    contract = CompressionContract(CompressionRequest(original, target=120), counter)
    judged = contract.judge(text.format(limit=LIMIT, filler=FILLER))
    gates = compression_gates(judged.verification, judged.form_faults, counter.count(judged.text), contract.request.target)
    assert {gate.gate for gate in gates if not gate.passed} >= failed
    assert all(bool(gate.reason) is not gate.passed for gate in gates) and {"within_budget"} & failed == {
        gate.gate for gate in gates if not gate.passed and gate.gate == "within_budget"
    }


def test_the_cache_holds_for_its_time_and_for_one_question(open_engine):
    """The same text, target, type, query and recipe: once; another query or a later time: again. A TTL of 0 keeps nothing."""
    at = open_engine()
    for query in ("", "", "which chair cost $349.00?"):
        at.compress(REPORT, 600, query=query)
    assert len(at.records) == 2
    at.now[0] += timedelta(seconds=299)
    at.compress(REPORT, 600)
    assert len(at.records) == 2
    at.now[0] += timedelta(seconds=2)
    at.compress(REPORT, 600)
    assert len(at.records) == 3
    uncached = open_engine(ttl_s=0)
    uncached.compress(REPORT, 600)
    uncached.compress(REPORT, 600)
    assert len(uncached.records) == 2


def test_the_cache_knows_target_and_recipe(open_engine):
    """Another target, or a recipe that changed meanwhile: compressed again."""
    at = open_engine()
    at.compress(REPORT, 600)
    at.compress(REPORT, 500)
    assert [record.tokens.output <= target for record, target in zip(at.records, (600, 500), strict=True)] == [True, True]
    loader = at.engine._recipes

    class Changed:
        def compressor(self, kind):
            return loader.compressor(kind).model_copy(update={"version": "9.9.9"})

    at.engine._recipes = Changed()
    at.compress(REPORT, 600)
    assert [record.recipe_version for record in at.records][2:] == ["9.9.9"]


@pytest.mark.parametrize("damage", (("$349.00", "$394.00"), ("must not exceed", "may exceed")))
def test_sound_parts_make_no_sound_whole_by_themselves(damage, open_engine):
    """A text put together of compressed parts is judged as a whole: unsound, the original stays, with the reason."""
    at = open_engine()
    content = CompressionRequest(LIMIT + REPORT, "toolresults.md", ContentType.GENERIC, target=700)
    sound = at.compress(content.text, 700)
    part = at.engine.report(content, sound)
    assert at.engine.verify_whole(content, sound.text, [part]).report.verdicts
    shrunk = at.engine.verify_whole(content, sound.text.replace(*damage), [part])
    assert shrunk.text == content.text and shrunk.report is None and shrunk.halted.startswith("toolresults.md: ")


def test_a_failed_text_is_never_cached(open_engine):
    """A HALT is tried again: nothing of it is stored."""
    at = open_engine()
    at.compress(LIMIT + REPORT, 5)
    at.compress(LIMIT + REPORT, 5)
    assert len(at.records) == 2
