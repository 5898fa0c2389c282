"""The end of every run names what it did not run."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SKIPPING = """import pytest

@pytest.mark.parametrize("n", range(3))
@pytest.mark.skipif(True, reason="no lamp is here")
def test_lamp(n): ...

def test_other():
    pytest.skip("no other is here")

def test_third(): ...
"""


def test_a_run_says_how_many_tests_it_skipped_for_which_reason(tmp_path: Path) -> None:
    (tmp_path / "test_lamps.py").write_text(SKIPPING)
    options = ("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "tests.conftest", "--rootdir", str(tmp_path))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options, str(tmp_path)], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "NOT RUN: 3 skipped: no lamp is here\nNOT RUN: 1 skipped: no other is here\n" in run.stdout
