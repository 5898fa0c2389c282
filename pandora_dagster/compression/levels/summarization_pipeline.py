"""When to summarize, with which prompts, and counts of the results. Calls no model, never waits."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from pandora_dagster.compression.levels.level_prompts import L2Summarizer, L3DigestBuilder, digest_prompt, empty_digest, items_in
from pandora_dagster.compression.levels.summarization_config import SummarizationConfig
from pandora_dagster.compression.summarization_rate import SummarizationRateLimiter

_MAX_ENTRY_CHARACTERS = 200


def truncate_entries(entries: list[str], max_total_chars: int = 2000) -> str:
    """The first 200 characters of each entry, joined by ` | `, cut to `max_total_chars` (specification 003, "truncate_entries").

    Nothing that is stored or sent to a model comes from it (decision 1, docs/decisions/01-never-blind-truncation.md).
    """
    joined = " | ".join(entry[:_MAX_ENTRY_CHARACTERS] for entry in entries if entry)
    return joined[: max(0, max_total_chars)]


class SummarizationPipeline:
    """The life of level 2 and 3 summaries (specification 003, "SummarizationPipeline"). Whoever calls the model counts its calls in
    `rate_limiter`.

    `count` measures a text for the compression ratio, which has no unit: characters unless a token counter is given.
    """

    def __init__(self, config: SummarizationConfig | None = None, *, count: Callable[[str], int] = len) -> None:
        self._config = config or SummarizationConfig()
        self._count = count
        self._summarizer = L2Summarizer()
        self._builder = L3DigestBuilder()
        limits = (self._config.max_calls_per_minute, self._config.max_calls_per_session, self._config.rate_limit_window_seconds)
        self.rate_limiter = SummarizationRateLimiter(*limits)
        """May be replaced, for one that remembers a session's calls."""
        self._summaries = self._digests = self._entries = self._fallbacks = self._ratios = 0
        self._ratio_sum = 0.0

    @property
    def config(self) -> SummarizationConfig:
        """The active configuration."""
        return self._config

    def should_summarize_l2(self, l1_entries_count: int) -> bool:
        """Whether there are enough entries for level 2."""
        return self._config.is_l2_due(l1_entries_count)

    def should_summarize_l3(self, l2_summaries_count: int) -> bool:
        """Whether there are enough summaries for level 3."""
        return self._config.is_l3_due(l2_summaries_count)

    def build_l2_prompts(self, entries: list[str]) -> list[str]:
        """One prompt per batch of entries; the newest `preserve_recent_n` are left out. Empty where no others are left."""
        limit = self._config.l2_max_summary_tokens
        older = self._config.without_recent(entries)
        return [self._summarizer.build_summary_prompt(list(batch), limit) for batch in self._config.l2_batches(older)]

    def process_l2_responses(self, prompts_and_responses: list[tuple[str, str]]) -> list[str]:
        """The clean summaries of (prompt, answer) pairs, in order; an empty answer gives none and counts for nothing."""
        read = [(prompt, self._summarizer.parse_summary_response(response)) for prompt, response in prompts_and_responses]
        for prompt, summary in read:
            if summary:
                self._note(prompt, summary)
        return [summary for _, summary in read if summary]

    def build_l3_prompt(self, summaries: list[str], context: str) -> str:
        """A prompt for a digest of `summaries`; "" where there are none."""
        return digest_prompt(summaries, context, max_tokens=self._config.l3_max_digest_tokens)

    def process_l3_response(self, response: str) -> dict[str, Any]:
        """The digest in an answer; the empty one where there is none, which counts for nothing."""
        digest = self._builder.parse_digest_response(response)
        self._digests += digest != empty_digest()
        return digest

    def summarize_or_truncate(self, entries: list[str], max_chars: int = 2000) -> str:
        """ "" where a call is allowed, else the entries cut to `max_chars` characters; no module of this package calls it (decision 1)."""
        if not entries or self.rate_limiter.can_call():
            return ""
        self._fallbacks += 1
        return truncate_entries(entries, max_chars)

    def get_stats(self) -> dict[str, Any]:
        """Counts so far; `compression_samples` is a number, `rate_limiter` and `config` are dictionaries."""
        return {
            "l2_summaries_generated": self._summaries,
            "l3_digests_generated": self._digests,
            "total_entries_summarized": self._entries,
            "average_compression_ratio": self._ratio_sum / self._ratios if self._ratios else 0.0,
            "compression_samples": self._ratios,
            "truncation_fallbacks": self._fallbacks,
            "rate_limiter": self.rate_limiter.get_stats(),
            "config": asdict(self._config),
        }

    def _note(self, prompt: str, summary: str) -> None:
        """Count a summary. What it summarises is read from its prompt, so one built before a restart counts as well."""
        body, number = items_in(prompt, "entries")
        self._summaries += 1
        self._entries += number
        ratio = self._summarizer.estimate_compression_ratio(self._count(body), self._count(summary))
        if ratio > 0:
            self._ratios += 1
            self._ratio_sum += ratio
