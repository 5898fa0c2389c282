"""SGLang's engine without a server: real batches in a process of its own, on the CPU with the tiny model."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.app.batch_service import BatchService
from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.model_calls import ModelAnswer
from pandora_dagster.errors import ModelError, ModelRejectedError, RuntimeUnreachableError
from pandora_dagster.runtime.offline_runtime import OfflineRuntime
from pandora_dagster.settings import load_settings
from tests.runtime.sglang_packs import endpoints, pack
from tests.sglang.real_servers import CONTEXT, ENVIRONMENT, MODEL, REPOSITORY

YES = {"output_schema": {"type": "object", "properties": {"answer": {"enum": ["yes", "no"]}}, "required": ["answer"]}}
OPTIONS = ["--device=cpu", "--attention-backend=torch_native", "--max-total-tokens=65536", "--max-running-requests=16"]
PROGRAM = [str(ENVIRONMENT / "bin" / "python"), str(REPOSITORY / "tests" / "sglang" / "server" / "offline.py")]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """One house for all tests: its engine takes half a minute to start."""
    launch = {"command": PROGRAM, "model_path": str(MODEL), "memory_fraction": 0.1, "options": OPTIONS, "start_s": 240}
    layers = {name: {"temperature": 1.0} for name in ("REFLEX", "NERVES", "MIND", "VOICE", "EYES")}
    served = endpoints("http://127.0.0.1:1/v1", layers=layers, context_length=CONTEXT, launch=launch)
    runtime = OfflineRuntime(served, python="python3", environ={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"})
    opened = open_app(load_settings({"PANDORA_ROOT": str(tmp_path_factory.mktemp("store"))}), runtime=runtime)
    yield opened
    opened.close()


def test_calls_are_answered_together_within_their_schemas(app: App) -> None:
    """Forty at once: each answer fits its schema, counts its tokens, names its runtime, and shares the prefix that was read before."""
    import asyncio

    async def work() -> list[ModelAnswer]:
        calls = (pack(call_id=f"c{n}", output_format=OutputFormat.JSON, temperature=1.0, **YES) for n in range(40))
        return await asyncio.gather(*(app.runtime.complete(one, timeout_s=120) for one in calls))

    answers = app.run(work())
    assert {json.loads(answer.text)["answer"] for answer in answers} <= {"yes", "no"}
    assert {(answer.runtime, answer.finish_reason) for answer in answers} == {("sglang-offline", "stop")}
    assert all(answer.usage.prompt > 10 and answer.usage.output > 0 for answer in answers) and answers[-1].usage.cached > 0
    assert isinstance(app.runtime, OfflineRuntime) and app.runtime.max_concurrent_calls() == 16


def test_the_prompt_is_counted_as_it_is_read(app: App) -> None:
    """The count that is reported before a call is the one that the answer's usage has."""
    one = pack(output_format=OutputFormat.JSON, temperature=1.0, **YES)
    counted = app.run(app.runtime.count(one))
    assert counted == app.run(app.runtime.complete(one, timeout_s=120)).usage.prompt


def test_what_the_engine_refuses_is_reported(app: App) -> None:
    """A prompt beyond the model's context is a refusal with a sentence; the engine goes on."""
    from dataclasses import replace

    long = pack()
    huge = replace(long, parts=(*long.parts[:-1], replace(long.parts[-1], text="chair " * 60_000)))
    with pytest.raises(ModelError) as caught:
        app.run(app.runtime.complete(huge, timeout_s=120))
    assert isinstance(caught.value, ModelRejectedError) or "abort" in str(caught.value), caught.value
    assert app.run(app.runtime.complete(pack(output_format=OutputFormat.JSON, **YES), timeout_s=120)).text


def test_a_batch_runs_without_any_server(app: App, tmp_path: Path) -> None:
    """Every query has its turn at the end: answered, or halted by its gates with an intervention; never for want of a server."""
    file = tmp_path / "q.jsonl"
    file.write_text("".join(json.dumps({"query": f"What did desk {n} cost?", "user": "ann"}) + "\n" for n in range(6)))
    run = BatchService(app).run_file(file)
    assert len(run.rows) == 6 and all(row.is_finished for row in run.rows)
    types = {app.interventions.show(row.intervention).type for row in run.rows if row.intervention}
    assert "runtime_unreachable" not in types and sum(row.tokens for row in run.rows) > 1_000


def test_an_engine_that_cannot_start_says_why(tmp_path: Path) -> None:
    """A wrong interpreter, or one without SGLang: one sentence with what it said last, and what to check."""
    for command, report in (
        (["/nonexistent/python"], "No such file"),
        (["python3", "-c", "raise SystemExit('no sglang here')"], "no sglang here"),
    ):
        served = endpoints("http://127.0.0.1:1/v1", launch={"command": command, "start_s": 60})
        app = open_app(
            load_settings({"PANDORA_ROOT": str(tmp_path)}),
            runtime=OfflineRuntime(served, python="python3", environ={"PATH": "/usr/bin:/bin"}),
        )
        with pytest.raises(RuntimeUnreachableError, match=report) as caught:
            app.run(app.runtime.complete(pack(), timeout_s=5))
        assert "PANDORA_SGLANG_PYTHON" in caught.value.hint
        app.close()
