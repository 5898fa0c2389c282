"""One bad item in a store costs only itself: each command goes on with the others, names it, and ends with a sentence."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pandora_dagster.app import open_app
from pandora_dagster.cli.program import command_line
from pandora_dagster.errors import PandoraError
from pandora_dagster.settings import load_settings

_BAD, _USER = "users/example/turns/turn_000002", "users/example"
DAMAGED_TURNS: dict[str, tuple[str, bytes]] = {
    "a manifest that is nested": ("turn.json", b"[" * 5_000),
    "a manifest of other bytes": ("turn.json", b"\xff\xfe"),
    "an empty manifest": ("turn.json", b""),
    "a manifest of other fields": ("turn.json", b'{"a": 1}'),
    "a context of other bytes": ("context.md", b"\xff\xfe"),
    "a context without sections": ("context.md", b"no sections"),
}
OTHER_ITEMS: dict[str, tuple[str, bytes]] = {
    "a note of other bytes": ("notes/bad.md", b"\xff\xfe"),
    "a note with a tag": ("notes/bad.md", b"---\ntags: !!int ''\n---\n# A\n"),
    "a file in place of a turn": ("turns/turn_000099", b""),
    "a folder that is no turn": ("turns/turn_000098/context.md", b"# A"),
    "a session record": ("sessions/complaint/session.json", b"{"),
}
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("example") / "store"
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    app.transfer.import_example()
    app.close()
    return root


@pytest.fixture
def root(example: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(example, tmp_path / "store"))


@pytest.fixture
def run(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in [name for name in os.environ if name.startswith("PANDORA_")]:
        monkeypatch.delenv(name)

    def run_command(*arguments: str) -> Result:
        result = CliRunner().invoke(command_line, ["--root", str(root), *arguments], prog_name="pandora", input="")
        assert result.exception is None or isinstance(result.exception, (SystemExit, PandoraError)), (arguments, result.exception)
        return result

    return run_command


def _plant(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _check_sound_turns(run: Run) -> None:
    """What does not need the bad item: a question, its neighbours, search, lineage, memory."""
    asked = run("ask", "Which desk did we order?", "--user", "example", "--json")
    assert asked.exit_code == 0 and json.loads(asked.stdout)["state"] == "saved", asked.output
    for command in (
        ("show", "example:turn_000003"),
        ("turns", "--user", "example"),
        ("search", "chair", "--user", "example"),
        ("lineage", "example:turn_000003"),
        ("memory", "list", "--user", "example"),
        ("interventions", "list"),
    ):
        assert run(*command).exit_code == 0, command


@pytest.mark.parametrize("name", DAMAGED_TURNS)
def test_a_damaged_turn_costs_only_itself(run: Run, root: Path, name: str) -> None:
    """A question whose retrieval found such a turn halted."""
    file, data = DAMAGED_TURNS[name]
    _plant(root / _BAD / file, data)
    _check_sound_turns(run)
    for command in (("index", "verify"), ("export", "--user", "example"), ("archive", "--older-than", "1d"), ("index", "rebuild")):
        done = run(*command)
        assert done.exit_code == 1 and "turn_000002" in done.output, command
    assert "turn_000004" in run("search", "chair", "--user", "example").output
    turns = {turn["turn_id"]: turn["state"] for turn in json.loads(run("turns", "--user", "example", "--json").stdout)}
    assert turns["turn_000003"] == "archived" and turns.get("turn_000002") != "archived"


@pytest.mark.parametrize("name", OTHER_ITEMS)
def test_another_bad_item_costs_only_itself(run: Run, root: Path, name: str) -> None:
    file, data = OTHER_ITEMS[name]
    _plant(root / _USER / file, data)
    _check_sound_turns(run)
    for command in (
        ("index", "verify"),
        ("index", "rebuild"),
        ("archive", "--older-than", "1d"),
        ("export", "--user", "example"),
        ("digest",),
    ):
        assert run(*command).exit_code in (0, 1, 2), command
    turns = {turn["turn_id"]: turn["state"] for turn in json.loads(run("turns", "--user", "example", "--json").stdout)}
    assert turns["turn_000001"] == turns["turn_000004"] == "archived"
    assert '"id": "chair"' in run("export", "--user", "example").stdout


@pytest.mark.parametrize("page", ["preferences.md", "facts.md"])
def test_a_damaged_memory_page_is_named_with_its_line(run: Run, root: Path, page: str) -> None:
    """A damaged page costs its own entries: the turn is answered without them, `doctor` names the line, and the other commands go on."""
    _plant(root / _USER / page, b"# P\n\n```yaml\na: *b\n```\n")
    assert run("ask", "Which desk did we order?", "--user", "example", "--json").exit_code == 0
    health = run("doctor", "--json")
    assert health.exit_code == 1 and f"{page}:4: a: an alias" in health.output
    assert run("show", "example:turn_000003").exit_code == run("search", "chair", "--user", "example").exit_code == 0
