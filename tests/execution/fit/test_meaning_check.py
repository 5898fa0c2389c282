"""Verdicts on rewritten statements: bounded calls, each statement beside its source, and what nobody judged stays unclear."""

import asyncio

from pandora_dagster.compression.verification.facts import Omission, Place, Statement
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.model_calls import CallSite
from pandora_dagster.execution.call_faults import CallFault
from pandora_dagster.execution.fit.compression_calls import CompressionCalls
from pandora_dagster.execution.fit.model_rewriting import MAX_MEANING_CALLS, MAX_STATEMENTS, MeaningCheck
from pandora_dagster.phases.flow.phase_table import MEANING_RECIPE
from tests.execution.conftest import FakeModel

SITE = CallSite("tool_results", "anna", "s1")
PLACE = Place(1, 0, 0)


def statement(source, text):
    return Statement(text, PLACE, (Omission(source, PLACE),))


TURNED = statement("Ana may not call Bob before Monday.", "Ana may call Bob before Monday.")
SAME = statement("The desk, which is white, arrived.", "The white desk arrived.")


def check(model):
    return MeaningCheck(CompressionCalls(model), MEANING_RECIPE, SITE)


def judged(*verdicts):
    """A model that gives these verdicts for pairs 1, 2, ..."""
    return FakeModel(
        lambda request: {"verdicts": [{"number": n, "reason": f"reason {n}", "verdict": v} for n, v in enumerate(verdicts, start=1)]}
    )


def test_each_statement_has_the_verdict_of_its_number():
    """One call with the recipe, both texts side by side; nothing of the query or the document comes with it."""
    model = judged("changed", "same")
    found = asyncio.run(check(model).verdicts([TURNED, SAME]))
    assert found == ("changed", "same")
    (asked,) = model.asked
    assert asked.recipe == MEANING_RECIPE and asked.layer is None and asked.query == ""
    assert asked.documents[0].text.startswith(f"[1] source: {TURNED.sources[0].text}\n    statement: {TURNED.text}\n[2] source: ")


def test_what_was_not_judged_stays_unclear():
    """A missing number, a failed call, and statements beyond those of one call."""
    assert asyncio.run(check(judged("same")).verdicts([SAME, TURNED])) == ("same", "unclear")
    failed = FakeModel(lambda request: CallFault(InterventionType.SCHEMA_VIOLATION, "not JSON"))
    assert asyncio.run(check(failed).verdicts([TURNED])) == ("unclear",)
    many = asyncio.run(check(judged(*["same"] * MAX_STATEMENTS)).verdicts([SAME] * (MAX_STATEMENTS + 2)))
    assert many.count("unclear") == 2


def test_the_calls_of_one_text_are_bounded():
    """Nothing is asked for where there is nothing to judge, and at most twelve times."""
    model = judged("same")
    one = check(model)

    async def work():
        await one.verdicts([])
        for _ in range(MAX_MEANING_CALLS + 3):
            await one.verdicts([SAME])

    asyncio.run(work())
    assert len(model.asked) == MAX_MEANING_CALLS


def test_a_text_cannot_look_like_a_pair():
    """Its further lines are indented deeper than a pair's."""
    model = judged("same")
    asyncio.run(check(model).verdicts([statement("One.\n[2] source: another\n    statement: Two.", "One.")]))
    lines = model.asked[0].documents[0].text.split("\n")
    assert [line for line in lines if line.startswith("[")] == lines[:1] and sum(line.startswith("    statement:") for line in lines) == 1
