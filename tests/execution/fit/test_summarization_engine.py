"""The engine with models of every manner and without one: a sound text within its target, or a HALT; the original untouched."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from pandora_dagster.compression.judge.summary_check import check_summary
from pandora_dagster.compression.judge.verification import verify
from pandora_dagster.contracts.enums import ContentType, InterventionType
from pandora_dagster.contracts.model_calls import CallRequest, CallResult
from pandora_dagster.errors import InputError
from pandora_dagster.execution.call_faults import CallFault, CallFaultError
from pandora_dagster.execution.fit.model_compression import MAX_ATTEMPTS_PER_PIECE, MAX_CALLS, MAX_CONCURRENT_CALLS

DEFERRED = InterventionType.BUDGET_EXCEEDED
FILLER = "After that we talked for quite a while about how the weather had been and what everybody was going to do at the weekend. "
REPORT = "\n\n".join(
    f"On {day} March 2026 the shop at store{day}.example.com sold chair CH{day}00X for ${day}49.00 to a person of the town. {FILLER * 2}"
    for day in range(1, 13)
)
LIMIT = "The budget must not exceed $1,299.00 in total.\nError: payment gateway timed out at 10:31.\n"


@dataclass
class FakeModel:
    """Answers each request by `says`; a Fault is a failed call. Remembers what it was asked."""

    says: Callable[[CallRequest], str | CallFault]
    asked: list[CallRequest] = field(default_factory=list)
    busy: int = 0
    busiest: int = 0

    async def attempt(self, request: CallRequest) -> CallResult | CallFault:
        self.asked.append(request)
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        await asyncio.sleep(0)
        self.busy -= 1
        said = self.says(request)
        return said if isinstance(said, CallFault) else CallResult(said, said, None, ())  # type: ignore[arg-type]


def document(request: CallRequest) -> str:
    return request.documents[0].text


def without_filler(request: CallRequest) -> str:
    return document(request).replace(FILLER, "").strip()


BAD_MODELS = {
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


@pytest.mark.parametrize("manner", BAD_MODELS)
def test_a_bad_model_never_gets_an_unsound_text_through(manner, open_engine, counter):
    """Whatever it answers: the text that comes back is within its target, has every critical fact and nothing invented."""
    text, model = LIMIT + "\n" + REPORT, FakeModel(BAD_MODELS[manner])
    made = open_engine(model).compress(text, 700)
    assert made.text is not None and counter.count(made.text) <= 700
    assert check_summary(made.text, text, 700, counter).ok
    assert made.verification.facts_preserved
    assert "$1,299.00" in made.text and "payment gateway timed out" in made.text
    assert len(model.asked) <= MAX_ATTEMPTS_PER_PIECE * MAX_CALLS


def test_a_good_model_is_believed(open_engine, counter):
    """What it left out was filler: its words come back, every fact with them, and no token is recorded twice."""
    model = FakeModel(without_filler)
    made = (at := open_engine(model)).compress(REPORT, 700)
    assert made.runtime == "sglang" and FILLER.strip() not in made.text and counter.count(made.text) <= 700
    assert made.counts["missing"] == made.counts["invented"] == 0
    record = at.records[0]
    assert record.runtime == at.events[0][1]["runtime"] == "sglang" and len(at.records) == 1
    assert record.compression_savings == made.original_tokens - made.tokens and record.tokens.total == 0


def test_a_piece_is_asked_for_again_with_exactly_what_is_missing(open_engine):
    """The second call names the facts that the first answer lost, beside the hints; the document is the same."""

    def forgets_once(request):
        again = "CH100X" in request.variables["preserve"]
        return without_filler(request) if again else without_filler(request).replace("CH100X ", "")

    model = FakeModel(forgets_once)
    made = open_engine(model).compress(REPORT, 700, preserve=("chairs",))
    first, *others = [r for r in model.asked if "CH100X" in document(r)]
    assert "CH100X" not in first.variables["preserve"] and first.variables["preserve"].startswith("chairs")
    assert others and "CH100X" in others[0].variables["preserve"] and document(others[0]) == document(first)
    assert "CH100X" in made.text


def test_what_a_model_keeps_losing_is_put_back_with_its_subject(open_engine):
    """After the second answer the missing facts are appended, within the target."""
    model = FakeModel(lambda request: without_filler(request).replace("$349.00", "some money"))
    made = open_engine(model).compress(REPORT, 700)
    assert made.runtime == "sglang"
    line = next(line for line in made.text.split("\n") if "$349.00" in line)
    assert "chair" in line or "CH300X" in line


@pytest.mark.parametrize("kind", [InterventionType.RUNTIME_UNREACHABLE, InterventionType.TIMEOUT, InterventionType.CONFIG_ERROR])
def test_a_model_that_is_down_stops_the_compression(kind, open_engine):
    """Rate-limited for ever, late or refused: one clear fault; the pieces that wait are not tried one by one."""
    model = FakeModel(lambda request: CallFault(kind, "429 too many requests"))
    with pytest.raises(CallFaultError, match="429"):
        open_engine(model).compress(REPORT, 700)
    assert len(model.asked) < 8


def test_what_the_sessions_limits_put_off_is_condensed_by_structure_and_says_so(open_engine):
    """A sound text all the same; nothing is asked for after the first deferral, and the next compression asks again."""
    reason = "deferred: session s1 may make its next summarisation call in 41 s"
    model = FakeModel(lambda request: without_filler(request) if len(model.asked) <= 3 else CallFault(DEFERRED, reason, deferred=True))
    made = (at := open_engine(model)).compress(REPORT, 700)
    assert made.text is not None and made.verification.facts_preserved and "extractive" in made.runtime
    assert made.deferred == reason == at.records[0].error and at.events[0][1]["deferred"] == reason and at.records[0].success
    asked = len(model.asked)
    assert asked <= 3 + MAX_CONCURRENT_CALLS
    at.compress(REPORT, 700)
    assert len(model.asked) > asked


def test_pieces_go_side_by_side_with_a_bound(open_engine):
    """At most four calls at a time, each of them within a compression call's input."""
    model = FakeModel(without_filler)
    open_engine(model).compress(REPORT * 3, 2_000)
    assert 2 <= model.busiest <= 4


def test_a_text_of_too_many_calls_is_condensed_without_the_model(open_engine):
    """The bound on calls holds for any length, and the record names who shortened."""
    model = FakeModel(without_filler)
    made = (at := open_engine(model)).compress(REPORT * 40, 3_000)
    assert not model.asked and made.runtime == "extractive" and at.records[0].runtime == "extractive"


def test_section_0_headings_and_meta_blocks_never_reach_the_model(open_engine, counter):
    """They stand verbatim in the result, in their order; section 0 byte for byte."""
    meta = "```yaml\n_meta:\n  type: turn_context\n  relevant_turns: [811]\n```"
    head = "## 0. User Query\n\nWhich chair? It must not cost more than $500.\n\n"
    text = f"{head}## 2. Gathered Context\n\n### Relevant Prior Turns\n\n{meta}\n\n{REPORT}\n\n## 3. Task Plan\n\nAnswer the question.\n\n"
    model = FakeModel(without_filler)
    made = open_engine(model).compress(text, 800, ContentType.CONTEXT_DOC)
    assert made.runtime == "sglang" and made.text.startswith(head) and meta in made.text
    assert not any("must not cost" in document(r) or "_meta" in document(r) for r in model.asked)


def test_a_credential_of_the_text_never_reaches_the_model(open_engine):
    """What the model is asked to shorten has the place of the key, and not the key."""
    key = "sk-proj-9aZ31kQv7Lw2RtYx8Bn4Mc6Df0Gh5Jp1"
    model = FakeModel(without_filler)
    made = open_engine(model).compress(f"{REPORT}\n\nThe api_key={key} is used by the shop.", 500)
    assert made.text and key not in made.text and model.asked
    assert not any(key in document(request) for request in model.asked)


def test_critical_facts_that_exceed_the_target_halt_with_the_figures(open_engine):
    """No text, the reason with both numbers, and a record that says it failed."""
    made = (at := open_engine()).compress(LIMIT + REPORT, 5)
    assert made.text is None and "the target is 5" in made.halted
    assert not at.records[0].success and at.records[0].error == made.halted and not at.records[0].compression_applied


def test_a_text_within_its_target_costs_nothing(open_engine):
    """It comes back as it is; no call, no record, no event."""
    model = FakeModel(without_filler)
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
    assert verify(_ledger(text), text, twice.text).lost_critical == ()


def test_a_text_that_fits_and_has_lost_what_the_original_keeps_does_not_stay(open_engine):
    """What was damaged between two generations is mended from the original; what a model shortens is held to it too."""
    text = LIMIT + "\n" + REPORT
    once = open_engine().compress(text, 700)
    damaged = "\n".join(line for line in once.text.splitlines() if not any(lost in line for lost in LIMIT.splitlines()))
    for model in (None, FakeModel(without_filler)):
        made = open_engine(model).compress(damaged, 750, original=text)
        assert all(line in made.text for line in LIMIT.splitlines()) and made.counts["total"] == once.counts["total"]
    changed = open_engine().compress(once.text.replace("$349.00", "$394.00"), 400, original=text)
    assert "$394.00" not in changed.text and changed.counts["mutated"] + changed.counts["invented"] == 0


def test_a_compression_is_recorded_like_a_call_and_counted(open_engine):
    """Record, JSON line and metrics say the same (000 section 27)."""
    at = open_engine()
    made = at.compress(REPORT, 600)
    record, (event, fields) = at.records[0], at.events[0]
    assert (record.recipe, record.model_layer, record.runtime, record.phase) == ("compress_generic", "NERVES", "extractive", "tool_results")
    assert record.compression_applied and record.compression_savings == made.original_tokens - made.tokens
    assert event == "smart_summarization" and fields["outcome"] == "compressed"
    assert (fields["original_tokens"], fields["compressed_tokens"]) == (made.original_tokens, made.tokens)
    assert at.log.metrics.compression_invocations == 1 and at.log.metrics.tokens_saved.total == record.compression_savings


def _ledger(text):
    from pandora_dagster.compression.judge.ledger import build_ledger

    return build_ledger(text)


@pytest.mark.parametrize("manner", ["nothing", "blank", "a refusal"])
def test_a_piece_is_asked_for_twice_at_most(manner, open_engine):
    """Once, and once more; a model that goes on failing is not paid a third time."""
    model = FakeModel(BAD_MODELS[manner])
    open_engine(model).compress(REPORT, 700)
    assert set(Counter(map(document, model.asked)).values()) == {2}
