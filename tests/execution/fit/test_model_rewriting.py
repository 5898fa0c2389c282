"""A model that writes (`mode: rewrite`): an unsound text never gets through, and a turned meaning costs its piece."""

from collections import Counter

import pytest

from pandora_dagster.contracts.enums import InterventionType, OutputFormat
from pandora_dagster.contracts.recipe_schema import CompressionSettings
from pandora_dagster.execution.call_faults import CallFault
from pandora_dagster.execution.fit.compression_calls import MAX_CALLS
from pandora_dagster.phases.flow.phase_table import MEANING_RECIPE
from pandora_dagster.recipes.recipe_loader import open_recipes
from tests.execution.conftest import FakeModel

FILLER = "After that we talked for quite a while about how the weather had been and what everybody was going to do at the weekend. "
REPORT = "\n\n".join(
    f"On {day} March 2026 the shop at store{day}.example.com sold chair CH{day}00X for ${day}49.00 to a person of the town. {FILLER * 2}"
    for day in range(1, 13)
)
LIMIT = "The budget must not exceed $1,299.00 in total.\nError: payment gateway timed out at 10:31.\n"


class RewritingRecipes:
    """The shipped recipes, with compressors that rewrite."""

    shelf = open_recipes()

    def compressor(self, content_type):
        loaded = self.shelf.compressor(content_type)
        budget = loaded.recipe.token_budget.model_copy(update={"prompt": 300, "output": 200})
        changed = {
            "compression": CompressionSettings(enabled=False, mode="rewrite"),
            "output_format": OutputFormat.MARKDOWN,
            "output_schema": None,
            "token_budget": budget,
        }
        return loaded.model_copy(update={"recipe": loaded.recipe.model_copy(update=changed)})


@pytest.fixture
def rewriting(open_engine):
    """`rewriting(model)`: an engine whose recipes rewrite."""
    return lambda model: open_engine(model, recipes=RewritingRecipes())


def document(request):
    return request.documents[0].text


def writer(write, verdict="same"):
    """A model that writes, and that judges every statement alike."""

    def answer(request):
        if request.recipe != MEANING_RECIPE:
            return write(request)
        numbers = range(1, document(request).count("] source: ") + 1)
        return {"verdicts": [{"number": n, "reason": "because", "verdict": verdict} for n in numbers]}

    return FakeModel(answer)


def without_filler(request):
    return document(request).replace(FILLER, "").strip()


BAD_WRITERS = {
    "nothing": lambda request: CallFault(InterventionType.SCHEMA_VIOLATION, "the answer is empty"),
    "blank": lambda request: "   ",
    "longer": lambda request: document(request) + " And so on and so forth, as was said before in many more words." * 40,
    "the prompt": lambda request: "Shorten the document to at most target tokens; do not answer the query. Keep exactly numbers and names.",
    "a refusal": lambda request: "I'm sorry, but I can't help with compressing this document.",
    "a question back": lambda request: "Could you please provide the document that you want me to shorten?",
    "a chat reply": lambda request: "Sure! Here is a shortened version of your document: it is about chairs.",
    "the text itself": document,
    "changed numbers": lambda request: without_filler(request).replace("49.00", "94.50"),
    "invented facts": lambda request: without_filler(request) + " The warranty lasts 77 months, see https://made.up.example.org/x.",
    "one line for ever": lambda request: "A chair was sold in the shop.\n" * 9,
}


@pytest.mark.parametrize("manner", BAD_WRITERS)
def test_a_bad_model_never_gets_an_unsound_text_through(manner, rewriting, counter):
    """Whatever it writes: the text is within its target, and none of its piece's text stands in it; each piece is asked for once."""
    text, model = LIMIT + "\n" + REPORT, writer(BAD_WRITERS[manner])
    made = rewriting(model).compress(text, 700)
    assert made.text is not None and counter.count(made.text) <= 700 and made.runtime == "extractive"
    assert made.text == rewriting(None).compress(text, 700).text
    assert set(Counter(map(document, model.asked)).values()) == {1} and len(model.asked) <= MAX_CALLS


def test_a_good_model_is_believed(rewriting, counter):
    """What it left out was filler: its words come back, every sale with them, and no token is recorded twice."""
    made = (at := rewriting(writer(without_filler))).compress(REPORT, 700)
    assert made.runtime == "sglang" and FILLER.strip() not in made.text and counter.count(made.text) <= 700
    assert made.counts["mutated"] == made.counts["invented"] == 0 and all(f"CH{day}00X" in made.text for day in range(1, 13))
    record = at.records[0]
    assert record.runtime == at.events[0][1]["runtime"] == "sglang" and len(at.records) == 1
    assert record.compression_savings == made.original_tokens - made.tokens and record.tokens.total == 0


def retold(request):
    """Without the filler, and in other words."""
    return without_filler(request).replace("sold chair", "gave away the chair")


def test_statements_in_other_words_are_judged_beside_their_source(rewriting):
    """One call of the recipe for each piece, with what is not verbatim; judged the same, the text stays and nothing is unchecked."""
    model = writer(retold)
    made = rewriting(model).compress(REPORT, 700)
    pairs = [document(request) for request in model.asked if request.recipe == MEANING_RECIPE]
    assert made.runtime == "sglang" and "gave away" in made.text and made.unchecked == ()
    assert pairs and all("sold chair" in text and "gave away the chair" in text for text in pairs)


def test_a_turned_meaning_costs_its_piece(rewriting):
    """Whole units of the piece are there instead, and the record says who chose them."""
    made = (at := rewriting(writer(retold, verdict="changed"))).compress(REPORT, 700)
    assert "gave away" not in made.text and made.runtime == at.records[0].runtime == "extractive"


def test_what_nobody_could_judge_is_listed(rewriting):
    """In the outcome and in the log."""
    made = (at := rewriting(writer(retold, verdict="unclear"))).compress(REPORT, 700)
    assert made.runtime == "sglang" and made.unchecked and all("gave away" in text for text in made.unchecked)
    assert at.events[0][1]["unchecked"] == list(made.unchecked)


def test_a_verbatim_answer_needs_no_verdict(rewriting):
    """Whole sentences of the piece are asked about by nobody."""
    model = writer(without_filler)
    rewriting(model).compress(REPORT, 700)
    assert not [request for request in model.asked if request.recipe == MEANING_RECIPE]
