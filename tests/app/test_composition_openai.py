"""The `openai` runtime as a user sets it up: by three variables or a runtime file of four lines, seen by `doctor` and a whole turn."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.app.composition import open_counter, open_runtime
from pandora_dagster.app.health import Finding
from pandora_dagster.app.servers.layer_health import check_servers
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.runtime.openai.openai_runtime import OpenAIRuntime
from pandora_dagster.runtime.serving.serving_folder import ServingFolder
from pandora_dagster.runtime.sglang.runtime_file import single_server_endpoints
from pandora_dagster.settings import Settings, load_settings
from pandora_dagster.stores.calls.call_index import CALL_SCHEMA, DuckCallIndex
from pandora_dagster.stores.calls.token_ratio_file import TokenRatioFile
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from tests.runtime.openai_servers import FakeOpenAI, cloud, llama_cpp, ollama, on_a_thread, plain_answer, vllm

OLLAMA = "http://127.0.0.1:11434/v1"


def settings(root: Path, **variables: str) -> Settings:
    named = {f"PANDORA_OPENAI_{name.upper()}": value for name, value in variables.items()}
    return load_settings({"PANDORA_ROOT": str(root), "PANDORA_RUNTIME": "openai", **named})


def opened(root: Path, **variables: str) -> OpenAIRuntime:
    given = settings(root, **variables)
    runtime = open_runtime(given, open_counter())
    assert isinstance(runtime, OpenAIRuntime)
    return runtime


def test_two_variables_are_enough(tmp_path: Path) -> None:
    """Every layer is on the one server, one call at a time on this machine; the context is assumed until the server says it."""
    runtime = opened(tmp_path, base_url=OLLAMA, model="qwen3:4b")
    servers = {runtime.endpoints[layer].server for layer in ModelLayer}
    assert len(servers) == 1 and runtime.model(ModelLayer.EYES) == "qwen3:4b" and runtime.context_limit(ModelLayer.MIND) == 4_096
    assert servers.pop().max_connections == 1
    remote = opened(tmp_path, base_url="https://models.example.org/v1", model="m", api_key_env="MY_KEY", context="32768")
    server = remote.endpoints[ModelLayer.MIND].server
    assert (server.max_connections, server.api_key_env, server.context_length) == (None, "MY_KEY", 32_768)


def test_a_runtime_file_of_four_lines(tmp_path: Path) -> None:
    """One server and no layers: every layer uses it, with its usual temperature."""
    lines = "preset: mine\npresets:\n  mine:\n    servers: {all: {base_url: 'http://127.0.0.1:11434/v1', model: 'qwen3:4b'}}\n"
    (tmp_path / "runtime.yaml").write_text(lines)
    runtime = opened(tmp_path)
    assert {runtime.model(layer) for layer in ModelLayer} == {"qwen3:4b"}
    assert (runtime.temperature(ModelLayer.REFLEX), runtime.temperature(ModelLayer.VOICE)) == (0.0, 0.7)


FAULTS: dict[str, tuple[dict[str, str], str]] = {
    "nothing": ({}, "no server is named: expected PANDORA_OPENAI_BASE_URL or "),
    "no model": ({"base_url": OLLAMA}, "^PANDORA_OPENAI_MODEL: "),
    "no /v1": ({"base_url": "http://127.0.0.1:11434", "model": "m"}, "^PANDORA_OPENAI_BASE_URL: .*does not end in /v1"),
    "a short context": ({"base_url": OLLAMA, "model": "m", "context": "100"}, "^PANDORA_OPENAI_CONTEXT: "),
    "the key itself": ({"base_url": OLLAMA, "model": "m", "api_key_env": "sk-secret"}, "^PANDORA_OPENAI_API_KEY_ENV: expected the name"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_wrong_setting_is_named(case: str, tmp_path: Path) -> None:
    """One sentence with the variable; a key that was put in place of its name is not repeated."""
    variables, message = FAULTS[case]
    with pytest.raises(ConfigurationError, match=message) as caught:
        opened(tmp_path, **variables)
    assert "sk-secret" not in str(caught.value)


def findings(root: Path, server: FakeOpenAI, *, context: int = 0) -> dict[str, Finding]:
    async def work() -> tuple[Finding, ...]:
        async with server:
            runtime = OpenAIRuntime(single_server_endpoints(server.base_url, "tiny", api_key_env="", context=context), keys={})
            calls = DuckCallIndex(DuckDBFile(root / "indexes" / "call_index.duckdb", CALL_SCHEMA))
            try:
                return await check_servers(runtime, open_recipes(), TokenRatioFile(root), calls, ServingFolder(root))
            finally:
                await runtime.aclose()

    return {finding.part: finding for finding in asyncio.run(work())}


def test_doctor_says_what_takes_the_place_of_what_is_absent(tmp_path: Path) -> None:
    """A row for each absent feature with what is done instead; none of them is a fault."""
    found = findings(tmp_path, cloud(reports_usage=False), context=16_384)
    instead = {part.partition(": ")[2]: f.remedy for part, f in found.items() if ": " in part}
    assert all(finding.ok for finding in found.values())
    assert instead == {
        "usage": "Instead: output tokens are counted here.",
        "usage of streams": "Instead: output tokens are counted here.",
        "strict JSON schema": "Instead: the schema without the guarantee; each answer is validated.",
        "thinking off by template": "Instead: thoughts are removed from answers; they take output tokens.",
        "temperature": "Instead: the temperature of the server.",
        "max_tokens": "Instead: the field max_completion_tokens.",
        "token counts": "Instead: prompts are planned with the ratio that answers show.",
        "queue length and priorities": "Instead: calls wait here, at most 1 are under way.",
    }
    assert found["server openai"].says == "structured output"


def test_doctor_finds_a_schema_that_is_ignored(tmp_path: Path) -> None:
    """The server takes the field and does not keep to it: every answer is validated here."""
    ignored = findings(tmp_path, vllm(says=lambda _: "Yes, it is."))["server openai: structured output"]
    assert ignored.ok and "'Yes, it is.'" in ignored.says and ignored.remedy.startswith("Instead: each answer is validated")


def test_doctor_on_a_small_context(tmp_path: Path) -> None:
    """Recipes that fit with less are no fault; one whose prompt does not fit is, and is named."""
    enough = findings(tmp_path, vllm())
    assert all(finding.ok for finding in enough.values())
    assert enough["layer VOICE"].remedy.startswith("It works, with shorter inputs and answers: the largest recipe budget is 10000.")
    small = findings(tmp_path, vllm(), context=4_096)
    assert [part for part, finding in small.items() if not finding.ok] == ["layer MIND"]
    assert small["layer MIND"].says.endswith("largest recipe budget 12000: pipeline/phase4_coordinator_code cannot run")
    assert "the server does not say its context: 4096 assumed" in findings(tmp_path, cloud())["layer REFLEX"].says


@pytest.mark.parametrize("make", [ollama, llama_cpp])
def test_a_turn_on_a_small_context(make: Callable[..., FakeOpenAI], tmp_path: Path) -> None:
    """A whole turn on 4,096 tokens: the server, which refuses a prompt that leaves its answer no place, refuses none."""
    with on_a_thread(make(says=plain_answer, context=4_096)) as server:
        app = open_app(settings(tmp_path, base_url=server.base_url, model="tiny", context="4096"))
        try:
            key = app.start("Hello there")
            app.run_turn(key, on_report=lambda _: None)
            answer = app.answer_of(key)
        finally:
            app.close()
    assert answer.response == "Hello! How can I help you?" and len(server.asked) == len(server.requests) > 5
    assert 1_500 in {body["max_tokens"] for body in server.asked}, "half of the synthesizer's 3,000"
