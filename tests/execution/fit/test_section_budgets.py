"""The soft levels and section 4's enforcement: when they begin, what they leave, and that they lose nothing."""

import asyncio
from datetime import UTC, datetime

import pytest

from pandora_dagster.contracts.compression_results import CompressionInput
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.model_calls import CallSite
from pandora_dagster.errors import HaltError
from pandora_dagster.execution.call_faults import CallFault
from pandora_dagster.execution.fit.compression_log import CompressionLog
from pandora_dagster.execution.fit.section_budgets import DOCUMENT_LIMIT, DOCUMENT_TARGET, SectionBudgets, SoftLimits
from pandora_dagster.execution.fit.summarization_engine import SummarizationEngine
from pandora_dagster.phases.flow.phase_table import MEANING_RECIPE
from pandora_dagster.recipes.recipe_loader import open_recipes
from tests.execution.conftest import FakeStores

SITE = CallSite("tool_results", "anna", "s1")
FILLER = "We all talked about how nice the weather had been and what everybody was going to do at the weekend with their families."


def now() -> datetime:
    return datetime(2026, 1, 4, tzinfo=UTC)


def text(tokens: int) -> str:
    """About `tokens` tokens of facts and filler."""
    return "\n\n".join(
        f"The shop at store{n}.example.com sold chair number CH{n}00X for ${n}49.00. {FILLER}" for n in range(1, tokens // 52 + 1)
    )


@pytest.fixture
def budgets(counter):
    """`budgets(limits, model=...)` with the interventions it opens."""

    def build(limits=SoftLimits(), model=None):  # noqa: B008 - a frozen value
        stores = FakeStores()
        log = CompressionLog(stores, now, lambda: "c", lambda event, **fields: None)
        engine = SummarizationEngine(
            recipes=open_recipes(),
            counter=counter,
            clock=lambda: datetime(2026, 1, 4, tzinfo=UTC),
            log=log,
            model=model,
            meaning=MEANING_RECIPE,
        )
        budgets = SectionBudgets(engine, counter, stores, log, limits)
        budgets.stores = stores
        return budgets

    return build


def content(body: str, name: str = "section_2_whole.md") -> CompressionInput:
    return CompressionInput(body, name, ContentType.GENERIC)


def test_level_1_begins_over_the_sections_budget_and_leaves_headroom(budgets, counter):
    """Section 2 over 2,000: down to the threshold of it; under it: unchanged."""
    settled = asyncio.run(budgets().fit_section(2, content(text(3_000)), site=SITE))
    assert settled.report and counter.count(settled.text) <= 1_800
    assert settled.report.tokens_before > 2_000 and settled.report.counts["mutated"] == settled.report.counts["invented"] == 0
    assert asyncio.run(budgets().fit_section(2, content(text(1_900)), site=SITE)).report is None


@pytest.mark.parametrize(
    ("limits", "compressed"), [(SoftLimits(), True), (SoftLimits(min_savings=5_000), False), (SoftLimits(threshold=1.0), True)]
)
def test_the_soft_settings_guide_level_1(limits, compressed, budgets, counter):
    """MIN_COMPRESSION_SAVINGS decides whether, COMPRESSION_THRESHOLD how far."""
    settled = asyncio.run(budgets(limits).fit_section(2, content(text(3_000)), site=SITE))
    assert bool(settled.report) == compressed
    assert not settled.report or settled.report.target == int(2_000 * limits.threshold)


@pytest.mark.parametrize(("number", "budget"), [(1, 300), (2, 2_000), (3, 800), (5, 2_000), (6, 500)])
def test_a_section_over_its_budget_is_compressed_or_told(number, budget, budgets, counter):
    """000's two rules for every section alike: compressed over its budget, not for less than MIN_COMPRESSION_SAVINGS; then it says so."""
    made = budgets()
    small = asyncio.run(made.fit_section(number, content("word" + " word" * (budget + 29)), site=SITE))
    assert small.report is None and f"{budget + 30} tokens are 30 over its budget of {budget}" in small.halted
    assert f"would save {budget + 30 - int(budget * 0.9)}, under MIN_COMPRESSION_SAVINGS of 500" in small.halted
    assert len(made.stores.records) == 1 and made.stores.records[-1].gates == {"within_budget": False}
    large = asyncio.run(made.fit_section(number, content(text(budget + 1_000)), site=SITE))
    assert large.report and counter.count(large.text) <= budget * 0.9
    within = asyncio.run(made.fit_section(number, content("word" + " word" * (budget - 1)), site=SITE))
    assert within.report is None and within.halted == ""


def test_without_a_least_saving_compression_starts_at_the_threshold(budgets, counter):
    """COMPRESSION_THRESHOLD: over 90 % of its budget a section is full."""
    made = budgets(SoftLimits(min_savings=0))
    settled = asyncio.run(made.fit_section(2, content(text(2_150)), site=SITE))
    assert 1_800 < settled.report.tokens_before < 2_000 and settled.report.tokens_after <= 1_800


@pytest.mark.parametrize("number", [0, 4])
def test_level_1_leaves_the_words_and_section_4_alone(number, budgets):
    """Section 0 never, section 4 is kept in its budget while it is written."""
    body = text(6_000)
    assert asyncio.run(budgets().fit_section(number, content(body), site=SITE)).text == body


def test_what_stands_verbatim_in_a_section_stays(budgets):
    """Headings, `_meta` and the sources that citations lead to survive; only the text between is shortened."""
    meta = "```yaml\n_meta:\n  type: turn_context\n  relevant_turns: [811]\n```"
    sources = "### Source References\n\n- [1] `turns/turn_000811/context.md` - A chair was sold."
    body = f"### Relevant Prior Turns\n\n{meta}\n\n{text(3_000)}\n\n{sources}"
    settled = asyncio.run(budgets().fit_section(2, content(body), site=SITE))
    assert settled.report and settled.text.startswith(f"### Relevant Prior Turns\n\n{meta}\n\n") and settled.text.endswith(sources)


def test_level_2_takes_the_largest_first_and_the_latest_last(budgets, counter):
    """Over 8,600: down to 7,500 by the largest section; the newest stays while others suffice."""
    sections = {2: content(text(5_500)), 3: content(text(900)), 4: content(text(4_000), "section_4_whole.md")}
    total = sum(counter.count(c.text) for c in sections.values())
    assert total > DOCUMENT_LIMIT
    done = asyncio.run(budgets().fit_document(sections, total=total, latest=4, site=SITE))
    assert set(done) == {2}
    assert total - sum(s.report.tokens_before - s.report.tokens_after for s in done.values()) <= DOCUMENT_TARGET
    assert asyncio.run(budgets().fit_document(sections, total=DOCUMENT_LIMIT, latest=4, site=SITE)) == {}


def test_section_4_makes_room_for_the_newest_result(budgets, counter):
    """Existing 2,400 and 600 more: the older ones go to 1,500, each with its facts; small ones stay whole."""
    older = [content(text(2_200), "toolresults.md"), content(text(200), "toolresults.md")]
    shrunk = asyncio.run(budgets().fit_older_results(older, text(600), surrounding_tokens=60, site=SITE))
    assert shrunk[1].text == older[1].text and shrunk[0].report
    assert sum(counter.count(s.text) for s in shrunk) + 60 <= 1_500


@pytest.mark.parametrize(("stands", "comes"), [(1_000, 400), (1_400, 2_000), (1_600, 500)])
def test_section_4_is_left_where_there_is_room_or_nothing_to_win(stands, comes, budgets):
    """Under the budget, or with 1,500 already, or near it with too little to save."""
    older = [content(text(stands), "toolresults.md")]
    assert asyncio.run(budgets().fit_older_results(older, text(comes), surrounding_tokens=0, site=SITE))[0].text == older[0].text


def test_a_result_over_the_whole_budget_is_compressed_with_a_way_to_the_original(budgets, counter):
    """DECISIONS 4: the newest stays whole unless it alone exceeds 2,500."""
    large = CompressionInput(text(6_000), "toolresults.md", ContentType.TOOL_RESULT)
    shrunk = asyncio.run(budgets().fit_newest_result(large, site=SITE))
    assert counter.count(shrunk.text) <= 2_500 and "toolresults.md" in shrunk.text
    small = CompressionInput(text(2_000), "toolresults.md", ContentType.TOOL_RESULT)
    assert asyncio.run(budgets().fit_newest_result(small, site=SITE)).text == small.text


def test_a_text_of_which_not_one_unit_fits_stays_whole_and_says_so(budgets):
    """The soft levels cut nothing: the reason comes back, the overflow is counted."""
    codes = "Codes " + " ".join(f"{n * 2654435761 % 2**32:08x}" for n in range(200)) + "."
    made = budgets()
    settled = asyncio.run(made.fit_section(1, content(codes), site=SITE))
    assert settled.text == codes and "not one unit fits" in settled.halted and made.stores.records[-1].gates == {"within_budget": False}


def test_a_model_that_is_down_halts_with_one_intervention(budgets):
    """No silent change of who compresses: the turn stops, and the intervention says why."""

    class Down:
        async def attempt(self, request):
            from pandora_dagster.contracts.enums import InterventionType

            return CallFault(InterventionType.RUNTIME_UNREACHABLE, "connection refused")

    made = budgets(model=Down())
    with pytest.raises(HaltError, match="connection refused"):
        asyncio.run(made.fit_section(2, content(text(3_000)), site=SITE))
    assert [i.type for i in made.stores.opened] == ["runtime_unreachable"]
