"""The import path `context_summarizer` of specification 003: re-exports names of `compression`.

`_L2_SYSTEM`, `_L2_TEMPLATE` and `_L3_TEMPLATE` are read from `prompts/memory/` on first use: decision 24
(docs/decisions/24-malformed-digests.md).
"""

from pandora_dagster.compression.levels.level_prompts import DIGEST_KEYS as _DIGEST_KEYS
from pandora_dagster.compression.levels.level_prompts import EMPTY_DIGEST as _EMPTY_DIGEST
from pandora_dagster.compression.levels.level_prompts import LIST_LIMITS as _LIST_LIMITS
from pandora_dagster.compression.levels.level_prompts import L2Summarizer, L3DigestBuilder
from pandora_dagster.compression.levels.level_prompts import prompt_text as __getattr__
from pandora_dagster.compression.levels.summarization_config import SummarizationConfig, SummarizationLevel
from pandora_dagster.compression.levels.summarization_pipeline import SummarizationPipeline, truncate_entries
from pandora_dagster.compression.summarization_rate import SummarizationRateLimiter

__all__ = [
    "_DIGEST_KEYS",
    "_EMPTY_DIGEST",
    "_LIST_LIMITS",
    "L2Summarizer",
    "L3DigestBuilder",
    "SummarizationConfig",
    "SummarizationLevel",
    "SummarizationPipeline",
    "SummarizationRateLimiter",
    "__getattr__",
    "truncate_entries",
]
