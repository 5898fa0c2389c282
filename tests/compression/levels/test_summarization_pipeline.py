"""The pipeline's triggers, prompts and statistics."""

import json

import pytest

from pandora_dagster.compression.levels.summarization_config import SummarizationConfig
from pandora_dagster.compression.levels.summarization_pipeline import SummarizationPipeline
from pandora_dagster.compression.summarization_rate import SummarizationRateLimiter

ENTRIES = [f"entry-{n}-" for n in range(20)]


@pytest.mark.parametrize(
    ("count", "l2", "l3"), [(0, False, False), (9, False, False), (10, False, True), (19, False, True), (20, True, True)]
)
def test_triggers(count: int, l2: bool, l3: bool) -> None:
    """Level 2 from 20 entries, level 3 from 10 summaries, the threshold included."""
    pipeline = SummarizationPipeline()
    assert (pipeline.should_summarize_l2(count), pipeline.should_summarize_l3(count)) == (l2, l3)


def test_a_changed_configuration_holds_at_once() -> None:
    """Triggers, batches and lengths are read at each use."""
    pipeline = SummarizationPipeline(config := SummarizationConfig())
    assert pipeline.config is config
    config.l2_trigger_entries, config.l2_batch_size, config.l2_max_summary_tokens, config.l3_max_digest_tokens = 3, 15, 77, 88
    prompts = pipeline.build_l2_prompts(ENTRIES)
    assert pipeline.should_summarize_l2(3) and len(prompts) == 1 and "at most 77 tokens" in prompts[0]
    assert "at most 88 tokens" in pipeline.build_l3_prompt(["one"], "task")


@pytest.mark.parametrize(
    ("entries", "recent", "batch", "prompts", "last"),
    [(20, 5, 5, 3, 14), (20, 0, 5, 4, 19), (20, -2, 5, 4, 19), (6, 5, 5, 1, 0), (5, 5, 5, 0, None), (3, 5, 5, 0, None), (0, 5, 5, 0, None)],
)
def test_recent_entries_stay_out(entries: int, recent: int, batch: int, prompts: int, last: int | None) -> None:
    """Only what is older than the newest n is summarised, all of it; nothing is left, nothing is built."""
    built = SummarizationPipeline(SummarizationConfig(preserve_recent_n=recent, l2_batch_size=batch)).build_l2_prompts(ENTRIES[:entries])
    assert len(built) == prompts
    assert [e for p in built for e in ENTRIES if e in p] == ENTRIES[: 0 if last is None else last + 1]


def test_statistics_count_what_was_summarised() -> None:
    """Entries and ratio come from the prompts themselves, also in a pipeline that did not build them; empty answers count for nothing."""
    prompts = SummarizationPipeline().build_l2_prompts([f"{'word ' * 50}{n}" for n in range(15)])
    pipeline = SummarizationPipeline(count=lambda text: len(text.split()))
    assert pipeline.process_l2_responses([(prompts[0], "Summary: ten words " + "x " * 7), (prompts[1], " "), ("strange", "kept")]) == [
        "ten words x x x x x x x",
        "kept",
    ]
    stats = pipeline.get_stats()
    assert (stats["l2_summaries_generated"], stats["total_entries_summarized"], stats["compression_samples"]) == (2, 5, 1)
    assert stats["average_compression_ratio"] == pytest.approx(5 * 52 / 9)


def test_a_new_pipeline_has_done_nothing() -> None:
    """All counts at zero, no ratio; configuration and limits are those given."""
    config = SummarizationConfig(max_calls_per_minute=3, max_calls_per_session=4, rate_limit_window_seconds=5.0)
    stats = SummarizationPipeline(config).get_stats()
    assert [value for value in stats.values() if not isinstance(value, dict)] == [0, 0, 0, 0.0, 0, 0]
    limits = stats["rate_limiter"]
    assert (limits["max_calls_per_minute"], limits["max_calls_per_session"], limits["window_seconds"]) == (3, 4, 5.0)
    assert stats["config"]["l2_batch_size"] == 5 and len(stats["config"]) == 9
    assert json.loads(json.dumps(stats)) == stats


def test_digests_are_counted_where_there_is_one() -> None:
    """A malformed answer gives the empty digest and counts for nothing."""
    pipeline = SummarizationPipeline()
    assert pipeline.process_l3_response("{")["tools_used"] == []
    assert pipeline.process_l3_response('{"tools_used": "pip"}')["tools_used"] == ["pip"]
    assert pipeline.get_stats()["l3_digests_generated"] == 1


def test_a_blocked_call_gives_the_cut_entries() -> None:
    """The limiter decides and may be replaced; an allowed call gives "", and so do no entries (003 "summarize_or_truncate")."""
    pipeline = SummarizationPipeline()
    assert pipeline.summarize_or_truncate(["one", "two"]) == ""
    pipeline.rate_limiter = SummarizationRateLimiter(max_calls_per_minute=0)
    assert pipeline.summarize_or_truncate(["one", "two"]) == "one | two"
    assert pipeline.summarize_or_truncate(["one", "two"], max_chars=4) == "one "
    assert pipeline.summarize_or_truncate([]) == ""
    assert pipeline.get_stats()["truncation_fallbacks"] == 2


def test_empty_in_empty_out() -> None:
    """003 "Error Handling": no method raises for nothing."""
    pipeline = SummarizationPipeline()
    assert (pipeline.build_l2_prompts([]), pipeline.process_l2_responses([]), pipeline.build_l3_prompt([], "")) == ([], [], "")
    assert not any(pipeline.process_l3_response("").values())
