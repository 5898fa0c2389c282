"""One run of a tool inside a turn: deadline, cancellation, permissions, artifacts, progress and size."""

import asyncio
import json
import time
from base64 import b64decode
from dataclasses import replace
from hashlib import sha256

import pytest

from pandora_dagster.contracts.model_calls import InputDocument, Source
from pandora_dagster.contracts.phase_outputs import SearchWords
from pandora_dagster.contracts.ports.tool import STORE_PERMISSIONS, ToolArtifact, ToolOutcome, ToolPermission, ToolProgress
from pandora_dagster.errors import DocumentError
from pandora_dagster.phases.steps.tool_recipes import DOC_SEARCH_QUERY
from tests.fakes.tools import ScriptedTool
from tests.phases.rig import COMPLETE, Rig, command, plan, tool

FOUND = ToolOutcome(True, "Desk [source 1]", "{}", (Source("", "page.md"),))


class Listener:
    """Receives answers and the progress of tools."""

    def __init__(self):
        self.progress = []

    def on_text(self, text): ...

    def on_withdrawal(self, reason): ...

    def on_tool_progress(self, progress):
        self.progress.append(progress)


class Counted:
    """Metrics by name and tool."""

    def __init__(self):
        self.counts = {}

    def count(self, name, amount=1.0, **labels):
        key = name, labels["tool"]
        self.counts[key] = self.counts.get(key, 0) + amount


@pytest.fixture
def asking(rig):
    """`asking(act, **fields of the spec)`: the key of a turn that ran the tool once, the tool, and the rig."""

    def ask(act, *, listener=None, permissions_granted=STORE_PERMISSIONS, metrics=None, **fields):
        made = ScriptedTool(act, **fields)
        given = {"tool_permissions": permissions_granted, "listener": listener, "metrics": metrics}
        deps = replace(rig.app.dependencies, tools={"doc.search": made}, **given)
        with_tool = Rig(replace(rig.app, dependencies=deps), rig.runtime)
        with_tool.say(planner=plan("coordinator"), executor=[command(), COMPLETE], coordinator=tool("doc.search", query="desks"))
        return with_tool.ask(), made, with_tool

    return ask


async def sleeps(run):
    await asyncio.sleep(60)
    return FOUND


async def ignores_cancellation(run):
    until = time.monotonic() + 4
    while time.monotonic() < until:
        try:
            await asyncio.sleep(4)
        except asyncio.CancelledError:
            continue
    return FOUND


async def cancels_itself(run):
    raise asyncio.CancelledError


async def finds(run):
    return FOUND


@pytest.mark.parametrize("act", [sleeps, ignores_cancellation])
def test_a_late_tool_is_a_result_and_does_not_hang_the_turn(asking, act):
    """Its run is marked as cancelled, the turn goes on, and section 4 has the reason."""
    key, made, rig = asking(act, deadline_s=0.05)
    assert "**Error:** doc.search: no result within 0.05 s: the tool was stopped" in rig.section(key, 4)
    assert rig.turn(key).manifest.state == "saved" and made.runs[0].cancelled.is_set() and made.runs[0].deadline_s == 0.05


def test_a_cancelled_tool_is_a_result(asking):
    key, _, rig = asking(cancels_itself)
    assert "**Error:** doc.search: the tool was cancelled before it had a result" in rig.section(key, 4)
    assert rig.turn(key).manifest.state == "saved"


def test_a_cancelled_turn_ends_its_tool(asking, rig):
    """The cancellation of the turn reaches the tool and is raised again."""
    ended = []

    async def cancels_the_turn(run):
        turn.cancel()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(run.cancelled.is_set())

    turn = None

    async def act(run):
        nonlocal turn
        turn = next(t for t in asyncio.all_tasks() if t is not asyncio.current_task())
        return await cancels_the_turn(run)

    with pytest.raises(asyncio.CancelledError):
        asking(act)
    assert ended == [True]


@pytest.mark.parametrize(("granted", "refused"), [(STORE_PERMISSIONS, True), (STORE_PERMISSIONS | {ToolPermission.NETWORK}, False)])
def test_a_permission_that_is_not_granted_refuses_the_tool(asking, granted, refused):
    """The tool does not run, is not offered to the model, and the result has the reason."""
    permissions = frozenset({ToolPermission.NETWORK})
    key, made, rig = asking(finds, permissions=permissions, permissions_granted=granted)
    says = "**Error:** doc.search: refused: it needs the permission network; granted are read_store, write_store"
    assert (says in rig.section(key, 4)) is refused and bool(made.runs) is not refused
    assert ("doc.search" in rig.runtime.of("coordinator")[0].document("tools")) is not refused


def test_artifacts_are_files_of_the_turn(asking):
    """Bytes with name, media type and hash; section 4 names the file."""
    image = ToolArtifact("page-1.png", "image/png", bytes(range(256)))

    async def draws(run):
        return replace(FOUND, artifacts=(image, image))

    key, _, rig = asking(draws)
    stored = json.loads(rig.turn(key).files["artifact_1_1_page-1_png.json"])
    assert b64decode(stored.pop("base64")) == image.data
    assert stored == {"name": "page-1.png", "media_type": "image/png", "tool": "doc.search", "sha256": sha256(image.data).hexdigest()}
    assert "artifact_1_2_page-1_png.json" in rig.turn(key).files and "**File:** `artifact_1_1_page-1_png.json`" in rig.section(key, 4)


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("../turn.json", "image/png"), ("A.png", "image/png"), ("a", "image/png"), ("a/b.png", "image/png"), ("a.png", "png")],
)
def test_an_artifact_has_a_plain_name_and_a_media_type(name, media_type):
    with pytest.raises(DocumentError, match="expected"):
        ToolArtifact(name, media_type, b"")


def test_progress_reaches_a_listener(asking):
    """One line each, under the tool's name; nothing after the run."""

    async def reports(run):
        run.report("page 1\nof 2", 0.5)
        runs.append(run)
        return FOUND

    runs, listener = [], Listener()
    asking(reports, listener=listener)
    runs[0].report("late", 1.0)
    assert listener.progress == [ToolProgress("doc.search", "page 1 of 2", 0.5)]


def test_progress_without_a_listener_is_ignored(asking):
    async def reports(run):
        run.report("page 1", None)
        return FOUND

    key, _, rig = asking(reports)
    assert "Desk [1]" in rig.section(key, 4)


def test_a_result_over_its_size_is_an_error(asking):
    key, _, rig = asking(finds, max_result_bytes=10)
    assert "**Error:** doc.search: the result has 17 bytes: expected at most 10" in rig.section(key, 4)


async def asks_twice(run):
    documents = (InputDocument("searched", "desks"),)
    for _ in range(2):
        await run.ask(DOC_SEARCH_QUERY, documents, SearchWords)
    return replace(FOUND, pages=2, page_bytes=1_500)


def test_the_cost_of_a_run_is_recorded_shown_and_counted(asking):
    """In the report and in the metrics; section 4, which is evidence for answers, has none of it."""
    metrics = Counted()
    key, _, rig = asking(asks_twice, metrics=metrics)
    (row,) = _tool_report(rig, key)["facts"]["tool_costs"]
    tokens = row["tokens"]
    assert row["tool"] == "doc.search" and row["seconds"] >= 0 and tokens > 0
    assert (row["pages"], row["page_bytes"], row["calls"]) == (2, 1_500, 2)
    assert "1,500" not in rig.section(key, 4)
    assert metrics.counts["pandora_tool_pages_total", "doc.search"] == 2 and metrics.counts["pandora_tool_seconds_count", "doc.search"] == 1
    assert metrics.counts["pandora_tool_tokens_total", "doc.search"] == tokens


def test_a_tool_asks_no_recipe_over_its_limit(asking):
    """The second call of the run is not made; the turn goes on with the reason."""
    key, _, rig = asking(asks_twice, max_tokens=1)
    assert "expected at most 1 in one run" in rig.section(key, 4) and rig.turn(key).manifest.state == "saved"
    (row,) = _tool_report(rig, key)["facts"]["tool_costs"]
    assert row["calls"] == 1


def test_a_run_without_pages_and_calls_shows_no_cost(asking):
    key, _, rig = asking(finds)
    assert _tool_report(rig, key)["facts"]["tool_costs"][0].keys() == {"tool", "seconds"}


def _tool_report(rig, key):
    return next(record.report for record in rig.turn(key).manifest.phases if record.phase == "tool_results")
