"""A store with the shipped example in it, and `pandora` as a real process or inside this one."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pandora_dagster.app import open_app
from pandora_dagster.cli import main
from pandora_dagster.cli.program import command_line
from pandora_dagster.settings import load_settings

REPOSITORY = Path(__file__).resolve().parents[2]
Pandora = Callable[..., "subprocess.CompletedProcess[str]"]
Invoke = Callable[..., Result]


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's recorded turns; the tests of this folder only read it."""
    place = tmp_path_factory.mktemp("cli") / "store"
    app = open_app(load_settings({"PANDORA_ROOT": str(place)}))
    app.transfer.import_example()
    app.close()
    return place


@pytest.fixture
def process(tmp_path: Path) -> Pandora:
    """`pandora ARGUMENTS` as a process of its own, in an empty folder."""

    def run(*arguments: str, env: Mapping[str, str] | None = None, text: str = "") -> "subprocess.CompletedProcess[str]":
        environment = {**_plain_environment(), "PYTHONPATH": str(REPOSITORY), **(env or {})}
        command = [sys.executable, "-c", "from pandora_dagster.cli import main; main()", *arguments]
        return subprocess.run(command, env=environment, cwd=tmp_path, input=text, capture_output=True, text=True, timeout=120, check=False)

    return run


@pytest.fixture
def pandora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pandora:
    """The whole program inside this process, in an empty folder: what `process` gives, without a second of imports."""

    def run(*arguments: str, env: Mapping[str, str] | None = None, text: str = "") -> "subprocess.CompletedProcess[str]":
        streams = {name: TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True) for name in ("stdout", "stderr")}
        streams["stdin"] = TextIOWrapper(BytesIO(text.encode()), encoding="utf-8")
        code = 0
        with monkeypatch.context() as patched:
            for name in set(os.environ) - set(_plain_environment()):
                patched.delenv(name)
            for name, value in (env or {}).items():
                patched.setenv(name, value)
            patched.chdir(tmp_path)
            patched.setattr(sys, "argv", ["pandora", *arguments])
            for name, stream in streams.items():
                patched.setattr(sys, name, stream)
            try:
                main()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
        out, err = (streams[name].buffer.getvalue().decode() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(arguments, code, out, err)

    return run


def _plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PANDORA_", "DAGSTER_"))}


@pytest.fixture
def invoke(root: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """`pandora --root ROOT ARGUMENTS` inside this process."""
    for name in os.environ:
        if name.startswith("PANDORA_"):
            monkeypatch.delenv(name)
    return lambda *arguments: CliRunner().invoke(command_line, ["--root", str(root), *arguments], prog_name="pandora")
