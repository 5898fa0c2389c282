"""The import path `summarization_limiter` of specification 003: re-exports names of `compression`."""

from pandora_dagster.compression.levels.summarization_pipeline import truncate_entries
from pandora_dagster.compression.summarization_rate import SummarizationRateLimiter

__all__ = ["SummarizationRateLimiter", "truncate_entries"]
