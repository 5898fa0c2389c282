"""Records as spans: the conventions' names, the call's own times, one trace a turn, and nothing of what was said."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import CallRecord, CallTokens, Usage
from pandora_dagster.phases.flow import turn_flow
from pandora_dagster.runtime.call_spans import CallSpans, is_exporter_configured
from tests.phases.rig import open_rig

REPOSITORY = Path(__file__).parents[2]
SECRET = "what nobody should read"
RECORD = CallRecord(
    call_id="call_1",
    timestamp="2026-01-04T14:30:00.250Z",
    recipe="planner_chat",
    recipe_version="abc",
    model_layer=ModelLayer.MIND,
    runtime="sglang",
    model="tiny",
    user_id="ann@example.org",
    session_id="day-1",
    turn_id="turn_000007",
    phase="task_plan",
    tokens=CallTokens(prompt=10, input=20, output=5, total=35, budget=100),
    latency_ms=1_500.0,
    success=True,
    finish_reason="stop",
    spent=Usage(prompt=40, output=6, cached=30),
    queue_ms=12.5,
    cost=0.001,
    error=SECRET,
)


def spans(*records: CallRecord) -> tuple[ReadableSpan, ...]:
    kept = InMemorySpanExporter()
    made = CallSpans(SimpleSpanProcessor(kept))
    for record in records:
        made.call(record)
    return kept.get_finished_spans()


def test_a_call_is_a_span_in_the_conventions_terms() -> None:
    """Operation, provider, model, tokens, conversation; start and end are the call's; the recipe's own under `pandora.`."""
    (span,) = spans(RECORD)
    fields = dict(span.attributes or {})
    assert span.name == "chat tiny" and span.kind.name == "CLIENT" and span.status.is_unset
    assert (span.start_time, span.end_time) == (1_767_537_000_250_000_000, 1_767_537_001_750_000_000)
    assert {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "sglang",
        "gen_ai.request.model": "tiny",
        "gen_ai.usage.input_tokens": 40,
        "gen_ai.usage.output_tokens": 6,
        "gen_ai.usage.cache_read.input_tokens": 30,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.conversation.id": "day-1",
        "pandora.recipe": "planner_chat",
        "pandora.queue_ms": 12.5,
    }.items() <= fields.items()


def test_a_failed_call_says_so_and_nothing_of_what_was_said() -> None:
    """Its error type is the gate that failed; neither the sentence nor the user's id leaves."""
    (span,) = spans(RECORD.model_copy(update={"success": False, "gates": {"timeout_ms": True, "schema_validation": False}}))
    assert span.status.status_code.name == "ERROR" and (span.attributes or {})["error.type"] == "schema_validation"
    assert SECRET not in span.to_json() and "ann@" not in span.to_json()


def test_calls_of_a_turn_are_one_trace() -> None:
    """Another turn, another revision and another user's turn of that number are others."""
    others = [{"turn_id": "turn_000008"}, {"revision": 1}, {"user_id": "bea"}]
    found = spans(RECORD, RECORD.model_copy(update={"call_id": "call_2"}), *(RECORD.model_copy(update=other) for other in others))
    traces = [span.context.trace_id for span in found if span.context]
    assert traces[0] == traces[1] and len(set(traces)) == 4
    assert len({span.context.span_id for span in found if span.context}) == 5


def test_a_turn_is_the_span_above_its_calls(tmp_path: Path) -> None:
    """One root from its first call to its last, every call its child, tokens summed; a halted one has failed. Nobody's words in it."""
    kept = InMemorySpanExporter()
    made = CallSpans(SimpleSpanProcessor(kept))
    rig = open_rig(tmp_path / "store")
    app = rig.app
    heard = replace(app.calls, listeners=(made.call,), turn_listeners=(made.turn,))
    app.dependencies.execution._log = heard  # type: ignore[attr-defined]
    deps = replace(app.dependencies, calls=heard)
    key = rig.start("which chair?")
    asyncio.run(turn_flow.run_turn(key, deps))
    rig.say(planner="no JSON")
    halted = rig.start("and the desk?")
    asyncio.run(turn_flow.run_turn(halted, deps))
    app.close()
    found = kept.get_finished_spans()
    roots = [span for span in found if span.parent is None]
    assert [span.name for span in roots] == ["invoke_agent pandora"] * 2 and [span.status.is_unset for span in roots] == [True, False]
    for root, turn in zip(roots, (key, halted), strict=True):
        children = [span for span in found if span.parent and span.parent.span_id == root.context.span_id]  # type: ignore[union-attr]
        fields = dict(root.attributes or {})
        assert (fields["pandora.turn"], fields["pandora.calls"]) == (turn.turn_id, len(children)) and len(children) > 2
        assert {child.context.trace_id for child in children if child.context} == {root.context.trace_id}  # type: ignore[union-attr]
        assert root.start_time == min(c.start_time or 0 for c in children) and root.end_time == max(c.end_time or 0 for c in children)
        assert fields["gen_ai.usage.input_tokens"] == sum(c.attributes["gen_ai.usage.input_tokens"] for c in children if c.attributes)  # type: ignore[misc]
        assert "chair" not in root.to_json() and "anna" not in root.to_json()
    assert len(roots) + len([s for s in found if s.parent]) == len(found)


@pytest.mark.parametrize(
    ("environ", "is_wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_it_is_on_where_an_exporter_is_configured(environ: dict[str, str], is_wanted: bool) -> None:
    """By OpenTelemetry's own variables."""
    assert is_exporter_configured(environ) is is_wanted


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A collector on a real socket, and what it was sent."""
    got: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", got
    server.shutdown()
    server.server_close()
    thread.join()


def test_spans_reach_a_collector_before_the_process_ends(collector: tuple[str, list[tuple[str, bytes]]]) -> None:
    """Sent in the background, and what is left at the end of the process."""
    address, got = collector
    code = (
        "import sys; from pandora_dagster.contracts.model_calls import CallRecord\n"
        "from pandora_dagster.runtime.call_spans import open_call_spans\n"
        "open_call_spans().call(CallRecord.model_validate_json(sys.stdin.read()))"
    )
    _process(code, {"OTEL_EXPORTER_OTLP_ENDPOINT": address}, RECORD.model_dump_json())
    ((path, body),) = got
    assert path == "/v1/traces" and b"chat tiny" in body and b"gen_ai.usage.input_tokens" in body


def test_it_costs_nothing_where_it_is_off(tmp_path: Path) -> None:
    """An open house without a configured exporter has not imported the package."""
    code = (
        "import sys; from pandora_dagster.settings import load_settings; from pandora_dagster.app import open_app\n"
        f"open_app(load_settings({json.dumps({'PANDORA_ROOT': str(tmp_path)})})).close(); sys.exit('opentelemetry.sdk' in sys.modules)"
    )
    _process(code, {}, "")


def _process(code: str, environ: dict[str, str], values: str) -> None:
    path = ":".join([str(REPOSITORY), *(p for p in sys.path if p)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=values,
        env={"PYTHONPATH": path, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
