"""003's import path `summarization_limiter`: names only, everything behind them lives in `compression`."""

from pandora_dagster.compression.levels.summarization_pipeline import truncate_entries
from pandora_dagster.compression.summarization_rate import SummarizationRateLimiter

__all__ = ["SummarizationRateLimiter", "truncate_entries"]
