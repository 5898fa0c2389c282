"""The wheel, installed where no checkout is: built from this repository, run in an empty folder."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built with the backend that is installed here; nothing is downloaded."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(REPOSITORY)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="session")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`pandora` in an empty environment that holds the wheel, and sees this one's third-party packages by plain path.

    The path is searched last and brings no `.pth` file with it, so an editable install of this checkout stays out.
    """
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=True)
    packages = next(home.glob("lib/python*/site-packages"))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--prefix", str(home), str(wheel)]
    subprocess.run([*install, "--disable-pip-version-check", "--ignore-installed"], check=True, capture_output=True, timeout=120)
    (packages / "third_party.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return home / "bin"


def run(program: Path, folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PANDORA_", "DAGSTER_", "PYTHON"))}
    arguments = [str(program / "python"), *command]
    return subprocess.run(arguments, cwd=folder, env=plain, capture_output=True, text=True, timeout=180, check=False)


PANDORA = ("-c", "from pandora_dagster.cli import main; main()")


def test_the_wheel_carries_what_is_shipped_and_nothing_else(wheel: Path) -> None:
    """Every recipe, prompt and shipped data file, byte for byte; nothing of a store that lies in data/."""
    with zipfile.ZipFile(wheel) as archive:
        inside = {name: archive.read(name) for name in archive.namelist() if "/shipped/" in name}
    shipped = [p for folder in ("recipes", "prompts", "data/example", "data/tokenizer") for p in (REPOSITORY / folder).rglob("*")]
    shipped += [REPOSITORY / "data" / "dagster.yaml", REPOSITORY / "data" / "runtime.yaml", REPOSITORY / "workspace.yaml"]
    expected = {f"pandora_dagster/shipped/{p.relative_to(REPOSITORY).as_posix()}": p.read_bytes() for p in shipped if p.is_file()}
    assert sorted(inside) == sorted(expected)
    assert inside == expected


def test_the_installed_package_is_the_wheels(program: Path, tmp_path: Path) -> None:
    """Python finds the installed package, and not this checkout."""
    found = run(program, tmp_path, "-c", "import pandora_dagster; print(pandora_dagster.__file__)")
    assert Path(found.stdout.strip()).is_relative_to(program.parent), found.stderr
    assert (program / "pandora").is_file()


def test_demo_and_ask_work_in_an_empty_folder(program: Path, tmp_path: Path) -> None:
    """`pandora demo` runs the whole job there, and `pandora ask` goes on over its store."""
    demo = run(program, tmp_path, *PANDORA, "demo")
    assert demo.returncode == 0, demo.stderr
    assert all(word in demo.stdout for word in ("turn_summary", "Answer", "Citations", "248"))
    asked = run(program, tmp_path, *PANDORA, "ask", "What happened with the scratched desk?", "--user", "example", "--json")
    output = json.loads(asked.stdout)
    assert (asked.returncode, output["state"]) == (0, "saved")
    assert all(Path(cited["path"]).is_relative_to(tmp_path / "data" / "panda-system-docs") for cited in output["citations"])
