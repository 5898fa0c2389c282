"""Level 2: prompts for narrative summaries, and what a model answered without its preamble. Calls no model (003 "L2Summarizer")."""

import re
from collections.abc import Sequence

from pandora_dagster.compression.levels.config import SummarizationConfig
from pandora_dagster.compression.levels.texts import filled, number_items

_DEFAULTS = SummarizationConfig()
_MARKS = r"[#*_ \t]{0,8}"
_KIND = r"(?:(?:brief|concise|short|final|narrative|clean)\s){0,2}"
_PREAMBLE = re.compile(
    rf"(?:{_MARKS}(?:sure|certainly|of course|okay|ok)\b[,.!:]{{0,2}}\s{{0,4}})?"
    rf"{_MARKS}(?:here(?:['’]s|\sis|\scomes)\s[^:.\n]{{0,60}}\bsummary\b[^:.\n]{{0,60}}:"
    rf"|(?:(?:the|a|my)\s)?{_KIND}summary(?:\s(?:follows|is|is as follows|below))?\s{{0,2}}:)(?:\*\*|__)?"
    rf"|#{{1,6}} (?:the\s)?{_KIND}summary[ \t]*(?=\n|$)",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\A```[a-z]{0,10}[ \t]*\n((?:(?!```).)*)\n```\Z", re.DOTALL)


class L2Summarizer:
    """Builds prompts for level 2 and reads their answers; keeps nothing between calls (003 "L2Summarizer")."""

    def build_summary_prompt(self, entries: list[str], max_tokens: int = _DEFAULTS.l2_max_summary_tokens) -> str:
        """A prompt that asks for one narrative of `entries` in at most `max_tokens` tokens; "" where there are none."""
        if not entries:
            return ""
        return filled("_L2_TEMPLATE", entries=number_items(entries), max_tokens=str(max_tokens))

    def parse_summary_response(self, response: str) -> str:
        """The summary without preamble ("Here is a summary:", "Summary:") and without a fence around it; "" for an empty answer."""
        text = response.strip()
        while (shorter := _unwrapped(text)) != text:
            text = shorter
        return text

    def build_batch_summary_prompt(self, entries: list[str], batch_size: int = _DEFAULTS.l2_batch_size) -> list[str]:
        """One prompt per `batch_size` entries, in order; a batch has at least one entry. The last one may be smaller."""
        return [self.build_summary_prompt(batch) for batch in batches(entries, batch_size)]

    def estimate_compression_ratio(self, original_tokens: int, summary_tokens: int) -> float:
        """Original over summary; 0.0 where the summary has no token."""
        return original_tokens / summary_tokens if summary_tokens > 0 else 0.0


def batches(entries: Sequence[str], size: int) -> list[list[str]]:
    """`entries` in order, `size` at a time, at least one."""
    step = max(1, size)
    return [list(entries[at : at + step]) for at in range(0, len(entries), step)]


def _unwrapped(text: str) -> str:
    """`text` without one preamble and one fence around the rest."""
    preamble = _PREAMBLE.match(text)
    rest = text[preamble.end() :].strip() if preamble else text
    fence = _FENCE.match(rest)
    return fence[1].strip() if fence else rest
