"""The engine with a model and without one: a text within its target, or a HALT; recorded, and the original untouched."""

import pytest

from pandora_dagster.compression.verification.verifier import verify
from pandora_dagster.errors import InputError
from tests.execution.conftest import FakeModel

FILLER = "After that we talked for quite a while about how the weather had been and what everybody was going to do at the weekend. "
REPORT = "\n\n".join(
    f"On {day} March 2026 the shop at store{day}.example.com sold chair CH{day}00X for ${day}49.00 to a person of the town. {FILLER * 2}"
    for day in range(1, 13)
)
LIMIT = "The budget must not exceed $1,299.00 in total.\nError: payment gateway timed out at 10:31.\n"


def shorter(request):
    """A model that keeps the first unit of each piece."""
    return {"keep": [1]}


def test_a_target_that_holds_not_one_unit_halts_with_the_reason(open_engine):
    """No text, the reason, and a record that says it failed."""
    made = (at := open_engine()).compress(LIMIT + REPORT, 5)
    assert made.text is None and "not one unit fits in 5 tokens" in made.halted
    assert not at.records[0].success and at.records[0].error == made.halted and not at.records[0].compression_applied


def test_a_text_within_its_target_costs_nothing(open_engine):
    """It comes back as it is; no call, no record, no event."""
    model = FakeModel(shorter)
    made = (at := open_engine(model)).compress(LIMIT, 500)
    assert made.text == LIMIT and made.verification is None
    assert not (model.asked or at.records or at.events)


@pytest.mark.parametrize("target", [0, -3])
def test_a_target_under_1_is_refused(target, open_engine):
    """Bad input is an error, not a HALT."""
    with pytest.raises(InputError, match=f"{target}: expected at least 1"):
        open_engine().compress(LIMIT, target)


def test_compressing_again_without_new_input_changes_nothing(open_engine):
    """The same target: the text comes back unchanged, however often."""
    at = open_engine()
    once = at.compress(REPORT, 600)
    assert at.compress(once.text, 600, original=REPORT).text == once.text


def test_a_second_generation_is_held_to_the_first_original(open_engine):
    """What the first compression kept of the original is judged again; critical facts are those of the original."""
    at, text = open_engine(), LIMIT + "\n" + REPORT
    once = at.compress(text, 700)
    twice = at.compress(once.text, 250, original=text)
    assert twice.counts["total"] == once.counts["total"]
    assert verify(text, twice.text).no_fact_changed


def test_a_text_that_says_something_else_than_its_original_gives_way_to_it(open_engine):
    """What was changed between two generations is compressed from the original again, with a model too; a sound text that fits stays."""
    text = LIMIT + "\n" + REPORT
    once = open_engine().compress(text, 700)
    for model in (None, FakeModel(shorter)):
        made = open_engine(model).compress(once.text.replace("$1,299.00", "$1,992.00"), 750, original=text)
        assert "$1,992.00" not in made.text and made.counts["mutated"] + made.counts["invented"] == 0
        assert open_engine(model).compress(once.text, 750, original=text).text == once.text


def test_a_compression_is_recorded_like_a_call_and_counted(open_engine):
    """Record and JSON line say the same (000 section 27)."""
    at = open_engine()
    made = at.compress(REPORT, 600)
    record, (event, fields) = at.records[0], at.events[0]
    assert (record.recipe, record.model_layer, record.runtime, record.phase) == ("compress_generic", "NERVES", "extractive", "tool_results")
    assert record.compression_applied and record.compression_savings == made.original_tokens - made.tokens
    assert event == "smart_summarization" and fields["outcome"] == "compressed"
    assert (fields["recipe"], fields["compressed_by"]) == ("compress_generic", "compress_generic")
    assert (fields["original_tokens"], fields["compressed_tokens"]) == (made.original_tokens, made.tokens)
