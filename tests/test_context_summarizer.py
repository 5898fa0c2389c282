"""The documented face of the summarizer (003): its names, its defaults, its examples, its speed, and who does not use it."""

import ast
import dataclasses
import inspect
import json
import subprocess
import sys
import time
from enum import IntEnum
from pathlib import Path

import pytest

from pandora_dagster import context_summarizer, summarization_limiter
from pandora_dagster.context_summarizer import (
    _DIGEST_KEYS,
    _EMPTY_DIGEST,
    _L2_SYSTEM,
    _L2_TEMPLATE,
    _L3_TEMPLATE,
    _LIST_LIMITS,
    L2Summarizer,
    L3DigestBuilder,
    SummarizationConfig,
    SummarizationLevel,
    SummarizationPipeline,
)
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.summarization_limiter import SummarizationRateLimiter, truncate_entries

PACKAGE = Path(context_summarizer.__file__).parent
FACES = (PACKAGE / "context_summarizer.py", PACKAGE / "summarization_limiter.py")
DIGEST = {
    "key_decisions": ["Flask framework", "JWT auth"],
    "tools_used": ["pip"],
    "errors_encountered": ["ModuleNotFoundError for flask: installed with pip"],
    "progress_toward_goal": "60%",
    "open_questions": ["Which database?"],
}


def test_levels() -> None:
    """003 "Enums": four levels that are integers."""
    assert issubclass(SummarizationLevel, IntEnum)
    assert {level.name: level.value for level in SummarizationLevel} == {"L0_RAW": 0, "L1_KEYWORDS": 1, "L2_SUMMARY": 2, "L3_DIGEST": 3}
    assert SummarizationLevel.L1_KEYWORDS < SummarizationLevel.L3_DIGEST


def test_configuration_defaults() -> None:
    """003 "Configuration": nine attributes in order with their types and defaults, open to change."""
    fields = [(f.name, f.type, f.default) for f in dataclasses.fields(SummarizationConfig)]
    assert fields == [
        ("l2_trigger_entries", int, 20),
        ("l3_trigger_summaries", int, 10),
        ("l2_max_summary_tokens", int, 200),
        ("l3_max_digest_tokens", int, 500),
        ("l2_batch_size", int, 5),
        ("preserve_recent_n", int, 5),
        ("max_calls_per_minute", int, 10),
        ("max_calls_per_session", int, 200),
        ("rate_limit_window_seconds", float, 60.0),
    ]
    config = SummarizationConfig()
    config.l2_batch_size = 3
    assert config != SummarizationConfig()


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        (L2Summarizer.build_summary_prompt, ["entries", ("max_tokens", 200)]),
        (L2Summarizer.parse_summary_response, ["response"]),
        (L2Summarizer.build_batch_summary_prompt, ["entries", ("batch_size", 5)]),
        (L2Summarizer.estimate_compression_ratio, ["original_tokens", "summary_tokens"]),
        (L3DigestBuilder.build_digest_prompt, ["summaries", "task_context"]),
        (L3DigestBuilder.parse_digest_response, ["response"]),
        (L3DigestBuilder.merge_digests, ["old_digest", "new_digest"]),
        (SummarizationPipeline.__init__, [("config", None)]),
        (SummarizationPipeline.should_summarize_l2, ["l1_entries_count"]),
        (SummarizationPipeline.should_summarize_l3, ["l2_summaries_count"]),
        (SummarizationPipeline.build_l2_prompts, ["entries"]),
        (SummarizationPipeline.process_l2_responses, ["prompts_and_responses"]),
        (SummarizationPipeline.build_l3_prompt, ["summaries", "context"]),
        (SummarizationPipeline.process_l3_response, ["response"]),
        (SummarizationPipeline.summarize_or_truncate, ["entries", ("max_chars", 2000)]),
        (SummarizationPipeline.get_stats, []),
        (
            SummarizationRateLimiter.__init__,
            [("max_calls_per_minute", 10), ("max_calls_per_session", 200), ("window_seconds", 60.0)],
        ),
        (SummarizationRateLimiter.can_call, [("now", None)]),
        (SummarizationRateLimiter.record_call, [("now", None)]),
        (SummarizationRateLimiter.record_rate_limit_error, [("now", None)]),
        (SummarizationRateLimiter.backoff_seconds, []),
        (SummarizationRateLimiter.reset_backoff, []),
        (SummarizationRateLimiter.get_stats, []),
    ],
)
def test_signatures(method: object, parameters: list[object]) -> None:
    """Names, order and defaults of every documented method; what is ours beyond them is keyword-only."""
    found = [p for p in inspect.signature(method).parameters.values() if p.name != "self" and p.kind is not p.KEYWORD_ONLY]  # type: ignore[arg-type]
    assert [p.name if p.default is p.empty else (p.name, p.default) for p in found] == parameters


def test_truncation_signature() -> None:
    """003 "truncate_entries": the function's parameters and default."""
    found = inspect.signature(truncate_entries).parameters
    assert list(found) == ["entries", "max_total_chars"] and found["max_total_chars"].default == 2000


def test_constants() -> None:
    """003 "Module Constants": three texts, the keys, the empty digest and the caps."""
    assert isinstance(_L2_SYSTEM, str) and isinstance(_DIGEST_KEYS, frozenset)
    assert "{{entries}}" in _L2_TEMPLATE and "{{max_tokens}}" in _L2_TEMPLATE
    assert all(slot in _L3_TEMPLATE for slot in ("{{summaries}}", "{{task_context}}", "{{max_tokens}}", *_DIGEST_KEYS))
    assert _LIST_LIMITS == {"key_decisions": 20, "tools_used": 30, "errors_encountered": 15, "open_questions": 10}
    assert {*_LIST_LIMITS, "progress_toward_goal"} == _DIGEST_KEYS == set(_EMPTY_DIGEST)
    assert not any(_EMPTY_DIGEST.values())


def test_an_unknown_constant_is_an_attribute_error() -> None:
    """What the module does not have it does not have; nothing is read for it."""
    assert not hasattr(context_summarizer, "_L4_TEMPLATE")
    with pytest.raises(AttributeError, match="'_L4_TEMPLATE': expected one of _L2_SYSTEM"):
        _ = context_summarizer._L4_TEMPLATE


def test_reexports() -> None:
    """003 "Re-exported": limiter and truncation are the same objects under both paths."""
    for name in ("SummarizationRateLimiter", "truncate_entries"):
        assert getattr(context_summarizer, name) is getattr(summarization_limiter, name)
    assert set(summarization_limiter.__all__) == {"SummarizationRateLimiter", "truncate_entries"}


def test_configuration_example() -> None:
    """003's example of SummarizationConfig: what is named changes, the rest keeps its default."""
    config = SummarizationConfig(
        l2_trigger_entries=15,
        l3_trigger_summaries=8,
        l2_batch_size=3,
        preserve_recent_n=3,
        max_calls_per_minute=5,
    )
    assert dataclasses.astuple(config) == (15, 8, 200, 500, 3, 3, 5, 200, 60.0)


def test_level_2_example() -> None:
    """003's example of L2Summarizer: one prompt, three batches of two, an answer without its preamble."""
    summarizer = L2Summarizer()

    entries = [
        "User asked to build a REST API for inventory management.",
        "Agent chose Flask framework, created app.py with /items endpoint.",
        "Error: ModuleNotFoundError for flask. Installed with pip.",
        "Tests passed. Added /items/{id} GET endpoint.",
        "User requested pagination support.",
    ]

    prompt = summarizer.build_summary_prompt(entries, max_tokens=150)
    assert all(entry in prompt for entry in entries) and "at most 150 tokens" in prompt

    prompts = summarizer.build_batch_summary_prompt(entries, batch_size=2)
    assert len(prompts) == 3
    assert [sum(entry in p for entry in entries) for p in prompts] == [2, 2, 1]

    raw_response = "Here is a concise summary: The agent built a REST API..."
    clean = summarizer.parse_summary_response(raw_response)
    assert clean == "The agent built a REST API..."


def test_level_3_example() -> None:
    """003's example of L3DigestBuilder: a prompt, a parsed answer, a merge across sessions."""
    builder = L3DigestBuilder()

    summaries = [
        "Built REST API with Flask. Fixed import error. Added pagination.",
        "Implemented authentication with JWT. Added rate limiting middleware.",
    ]

    prompt = builder.build_digest_prompt(summaries, task_context="Build a production API")
    assert all(text in prompt for text in (*summaries, "Build a production API"))

    assert builder.parse_digest_response(json.dumps(DIGEST)) == DIGEST
    response = '{"key_decisions": ["Flask framework", "JWT auth"], "tools_used": ["pip"], ...}'
    assert builder.parse_digest_response(response) == _EMPTY_DIGEST  # as printed, with its dots, it is malformed

    old = {"key_decisions": ["Flask framework"], "tools_used": ["pip"]}
    new = {"key_decisions": ["Added Redis cache"], "tools_used": ["docker"]}
    merged = builder.merge_digests(old, new)
    assert merged == _EMPTY_DIGEST | {"key_decisions": ["Flask framework", "Added Redis cache"], "tools_used": ["pip", "docker"]}


def summarized(pipeline: SummarizationPipeline) -> tuple[str, list[str]]:
    """003's example of SummarizationPipeline with a model that answers each prompt: (what stands for the entries, summaries)."""
    entries = [f"Step {n}: endpoint {n} of the inventory API was written and its tests passed" for n in range(1, 16)]
    compressed, summaries = "", list[str]()
    if pipeline.should_summarize_l2(len(entries)):
        fallback = pipeline.summarize_or_truncate(entries)
        if fallback:
            compressed = fallback
        else:
            prompts = pipeline.build_l2_prompts(entries)
            responses = [f"Summary: batch {n} done." for n, _ in enumerate(prompts, start=1)]
            summaries = pipeline.process_l2_responses(list(zip(prompts, responses, strict=True)))
            if pipeline.should_summarize_l3(len(summaries)):
                assert pipeline.build_l3_prompt(summaries, "Build REST API")
                assert pipeline.process_l3_response(json.dumps(DIGEST)) == DIGEST
    return compressed, summaries


def test_pipeline_example() -> None:
    """15 entries, 2 of them recent: 13 in batches of 3 are 5 summaries; the statistics say so, with all eight keys."""
    pipeline = SummarizationPipeline(SummarizationConfig(l2_trigger_entries=10, l2_batch_size=3, preserve_recent_n=2))
    assert summarized(pipeline) == ("", [f"batch {n} done." for n in range(1, 6)])
    stats = pipeline.get_stats()
    assert (stats["l2_summaries_generated"], stats["l3_digests_generated"], stats["total_entries_summarized"]) == (5, 0, 13)
    assert stats["compression_samples"] == 5 and stats["average_compression_ratio"] > 5
    assert list(stats) == [
        "l2_summaries_generated",
        "l3_digests_generated",
        "total_entries_summarized",
        "average_compression_ratio",
        "compression_samples",
        "truncation_fallbacks",
        "rate_limiter",
        "config",
    ]


def test_pipeline_example_up_to_level_3() -> None:
    """The same with a level 3 that five summaries reach."""
    pipeline = SummarizationPipeline(
        SummarizationConfig(l2_trigger_entries=10, l2_batch_size=3, preserve_recent_n=2, l3_trigger_summaries=5)
    )
    summarized(pipeline)
    assert pipeline.get_stats()["l3_digests_generated"] == 1


def test_pipeline_example_rate_limited() -> None:
    """The same with no call left: entries cut to 2,000 characters, and no summary."""
    pipeline = SummarizationPipeline(SummarizationConfig(l2_trigger_entries=10, max_calls_per_session=0))
    compressed, summaries = summarized(pipeline)
    assert compressed.startswith("Step 1: endpoint 1 of") and " | Step 2:" in compressed and summaries == []
    assert pipeline.get_stats()["truncation_fallbacks"] == 1


def test_a_prompt_is_built_in_under_a_millisecond() -> None:
    """003 "Performance Notes": the median of fifty builds from full batches, after the files were read."""
    summarizer, builder = L2Summarizer(), L3DigestBuilder()
    entries = ["The parser failed on line 7 of orders.csv and was fixed by quoting. " * 20] * 5
    for build in (lambda: summarizer.build_summary_prompt(entries), lambda: builder.build_digest_prompt(entries * 2, "Load the orders")):
        build()
        times = []
        for _ in range(50):
            began = time.thread_time()
            build()
            times.append(time.thread_time() - began)
        assert sorted(times)[25] < 0.001


def test_nothing_is_opened_after_the_first_use() -> None:
    """003 "Performance Notes": no I/O; in a process of its own an audit hook refuses every file once the texts are read."""
    program = """
import sys
from pandora_dagster import context_summarizer as c
def work():
    pipeline = c.SummarizationPipeline()
    prompts = pipeline.build_l2_prompts([f"entry {n}" for n in range(20)])
    summaries = pipeline.process_l2_responses([(p, "Summary: done") for p in prompts])
    pipeline.build_l3_prompt(summaries, "task")
    pipeline.process_l3_response('{"tools_used": "pip"}')
    pipeline.rate_limiter.record_call()
    return pipeline.get_stats(), c._L2_SYSTEM
work()
def refuse(event, args):
    if event in ("open", "os.listdir", "socket.connect", "subprocess.Popen"):
        raise AssertionError(event)
sys.addaudithook(refuse)
sys.stdout.write(str(work()[0]["total_entries_summarized"]))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("15", "")


def test_importing_reads_no_prompt() -> None:
    """The texts are read on first use, not at import (DECISIONS 24)."""
    program = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from pandora_dagster import context_summarizer
before = sum("/prompts/memory/" in name for name in opened)
context_summarizer._L2_SYSTEM
sys.stdout.write(f"{before} {sum('/prompts/memory/' in name for name in opened)}")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("0 1", "")


def test_the_recipes_and_the_api_share_their_prompts() -> None:
    """What a recipe sends is what the API builds: the same files, the same caps, the same keys."""
    loader = open_recipes()
    summary, digest = loader.load("memory/l2_summary"), loader.load("memory/l3_digest")
    system, template, _ = [text.strip() for _, text in summary.prompts]  # the third holds worked calls for the recipe's base model
    assert [system, template] == [_L2_SYSTEM, _L2_TEMPLATE.split("\n\n<document")[0]]
    assert [text.strip() for _, text in digest.prompts] == [_L3_TEMPLATE.split("\n\n<document")[0]]
    schema = digest.recipe.output_schema
    assert schema is not None and set(schema["required"]) == set(schema["properties"]) == _DIGEST_KEYS
    assert {name: node["maxItems"] for name, node in schema["properties"].items() if "maxItems" in node} == _LIST_LIMITS


@pytest.mark.parametrize("face", FACES, ids=lambda p: p.stem)
def test_a_face_holds_no_logic(face: Path) -> None:
    """Imports, a docstring and `__all__`, nothing else."""
    nodes = ast.parse(face.read_text()).body
    kinds = [type(node) for node in nodes[1:]]
    assert ast.get_docstring(ast.Module(nodes, [])) and set(kinds[:-1]) == {ast.ImportFrom} and kinds[-1] is ast.Assign


def test_no_other_room_uses_the_truncation() -> None:
    """DECISIONS 1: nothing stored or sent comes from it, since only the API's own two modules and its faces know it."""
    names = {"truncate_entries", "summarize_or_truncate", "truncation", "context_summarizer", "summarization_limiter"}
    users = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            expected = {getattr(node, "id", ""), getattr(node, "attr", ""), *_imported(node)}
            if expected & names:
                users.add(file.relative_to(PACKAGE).as_posix())
    assert users == {"compression/levels/summarization_pipeline.py", "context_summarizer.py", "summarization_limiter.py"}


def _imported(node: ast.AST) -> set[str]:
    if isinstance(node, ast.ImportFrom):
        return {*(node.module or "").split("."), *(alias.name for alias in node.names)}
    return {part for alias in node.names for part in alias.name.split(".")} if isinstance(node, ast.Import) else set()
