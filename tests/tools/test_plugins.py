"""A package of somebody else, built and installed as its guide says: its tool and its search provider are used where settings name them."""

import asyncio
import json
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.contracts.ports.tool import ToolRun
from pandora_dagster.settings import load_settings
from pandora_dagster.tools.plugins import open_plugin_provider, open_plugin_tools
from tests.cli.conftest import Pandora
from tests.cli.conftest import pandora as pandora  # a fixture
from tests.phases.rig import COMPLETE, Rig, command, plan, scripted_runtime, tool
from tests.phases.vocabulary import vocabulary

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "add-a-tool.md"


FAULTY = """
from dataclasses import replace
from types import SimpleNamespace
from office_tools import Rooms
from pandora_dagster.contracts.ports.tool import ToolPermission


def tool(**changes):
    return SimpleNamespace(spec=replace(Rooms.spec, **changes), run=Rooms().run)


def taken():
    return tool(name="doc.search")


def starts():
    return tool(permissions=frozenset({ToolPermission.PROCESS}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that pip installed the guide's package into."""
    source, target = tmp_path_factory.mktemp("office"), tmp_path_factory.mktemp("site")
    guide = GUIDE.read_text(encoding="utf-8")
    for name in ("pyproject.toml", "office_tools.py"):
        block = re.search(rf"`{re.escape(name)}`:\n\n```\w+\n(.*?)```", guide, re.DOTALL)
        assert block, name
        (source / name).write_text(block[1], encoding="utf-8")
    faulty = ['broken = "office_missing:open"', 'number = "builtins:int"', 'taken = "faulty_tools:taken"', 'starts = "faulty_tools:starts"']
    project = (source / "pyproject.toml").read_text().replace('rooms = "', "\n".join((*faulty, 'rooms = "')))
    (source / "pyproject.toml").write_text(project + '\n[tool.hatch.build.targets.wheel]\ninclude = ["*.py"]\n')
    (source / "faulty_tools.py").write_text(FAULTY)
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        target,
        source,
    ]
    subprocess.run(command, check=True)
    return target


@pytest.fixture
def site(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [str(installed), *sys.path])
    return installed


def test_a_named_tool_is_offered_to_turns(pandora: Pandora, site: Path, tmp_path: Path) -> None:
    """Without the setting nothing of the package is there; with it, `tools list` shows it, and a run answers with its source."""
    env = {"PANDORA_ROOT": str(tmp_path / "store")}
    assert "office.rooms" not in pandora("tools", "list", "--json", env=env).stdout
    rows = json.loads(pandora("tools", "list", "--json", env={**env, "PANDORA_TOOLS": "rooms"}).stdout)
    assert [row["offered"] for row in rows if row["name"] == "office.rooms"] == [True]
    (tool,) = open_plugin_tools(["rooms"], is_web_open=False, report=pytest.fail)
    outcome = asyncio.run(tool.run(ToolRun({"room": "Elm"}, TurnKey(user_id("anna"), 1), 5)))
    assert outcome.ok and outcome.text == "Elm holds 4 people. [source 1]" and outcome.sources == (Source("", "rooms", "Meeting rooms"),)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere", "no installed package has this entry point"),
        ("broken", "No module named 'office_missing'"),
        ("number", "int: expected a Tool with `spec` and `run`"),
        ("taken", "tool name 'doc.search'"),
        ("starts", "needs process"),
    ],
)
def test_a_faulty_tool_costs_only_itself(pandora: Pandora, site: Path, tmp_path: Path, name: str, reason: str) -> None:
    """One sentence names it and what is wrong; the other tools and the command go on."""
    told = pandora("tools", "list", env={"PANDORA_ROOT": str(tmp_path / "store"), "PANDORA_TOOLS": f"{name},rooms"})
    assert told.returncode == 0 and "office.rooms" in told.stdout
    (line,) = [line for line in told.stderr.splitlines() if "PANDORA_TOOLS" in line]
    assert f"PANDORA_TOOLS: {name}: not offered" in line and reason in line


def test_a_search_provider_answers_by_its_name(site: Path, tmp_path: Path) -> None:
    """The place behind the name is its own; a name that no package has is no provider."""
    (tmp_path / "list.txt").write_text("http://a.test/1 First\nhttp://a.test/2 Second\n")
    provider = open_plugin_provider("shelf", str(tmp_path / "list.txt"))
    assert provider and [hit.title for hit in provider.search("x", page=1, language="").hits] == ["First", "Second"]
    assert open_plugin_provider("nothing", "x") is None


def test_research_refuses_an_unknown_provider(pandora: Pandora, tmp_path: Path) -> None:
    told = pandora("research", "run", "Which?", "--provider", "nothing=x", env={"PANDORA_ROOT": str(tmp_path / "s"), "PANDORA_WEB": "on"})
    assert told.returncode == 2 and "'nothing=x': expected searxng=URL, folder=DIR, recorded=FILE, or an installed provider" in told.stderr


def test_a_turn_of_a_model_calls_a_named_tool(site: Path, tmp_path: Path) -> None:
    """The Planner reads its description, the Coordinator calls it, section 4 has its result, and the answer cites its source."""
    settings = load_settings({"PANDORA_ROOT": str(tmp_path / "store"), "PANDORA_TOOLS": "rooms"})
    runtime = scripted_runtime()
    rig = Rig(open_app(settings, runtime=runtime, counter=vocabulary()), runtime)
    rig.say(planner=plan("coordinator"), executor=[command(), COMPLETE], coordinator=tool("office.rooms", room="Oak"))
    with closing(rig.app):
        key = rig.ask("How many people fit into the room Oak?")
        assert "Oak holds 12 people. [1]" in rig.section(key, 4) and "[1]" in rig.section(key, 5)
        offered = {pack.role: pack.document("tools") for pack in rig.runtime.packs if pack.document("tools")}
        assert all("How many people a meeting room holds" in offered[role] for role in ("planner", "executor", "coordinator"))
        assert rig.turn(key).manifest.state == "saved"


def test_the_embedded_runtime_calls_no_named_tool(pandora: Pandora, site: Path, tmp_path: Path) -> None:
    env = {"PANDORA_ROOT": str(tmp_path / "store"), "PANDORA_TOOLS": "rooms"}
    assert pandora("ask", "How many people fit into the room Oak?", env=env).returncode == 0
    assert "office.rooms" not in pandora("show", "1", "--section", "4", env=env).stdout
