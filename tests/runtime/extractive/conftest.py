"""A runtime with the shipped vocabulary, and one line to ask it."""

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.runtime.token_counter import TokenCounter
from tests.runtime.extractive.packs import make_pack

VOCABULARY = Path(__file__).parents[3] / "data" / "tokenizer" / "cl100k_base.tiktoken"


@pytest.fixture(scope="session")
def counter() -> TokenCounter:
    return TokenCounter(VOCABULARY)


@pytest.fixture
def runtime(counter: TokenCounter) -> ExtractiveRuntime:
    """A runtime whose clock moves two milliseconds at each look."""
    ticks = count()
    return ExtractiveRuntime(counter, lambda: datetime(2026, 1, 4, tzinfo=UTC) + timedelta(milliseconds=2 * next(ticks)))


@pytest.fixture
def ask(runtime: ExtractiveRuntime) -> Callable[..., Any]:
    """`ask(role, query, documents, ...)`: the parsed JSON of an answer, or its text; never over its limit."""

    def asked(role: str, query: str, documents: Mapping[str, str] | None = None, **options: Any) -> Any:
        pack = make_pack(role, query, documents, **options)
        answer = asyncio.run(runtime.complete(pack, timeout_s=1.0))
        assert answer.usage.output <= pack.max_output_tokens
        return json.loads(answer.text) if pack.output_format is OutputFormat.JSON else answer.text

    return asked
