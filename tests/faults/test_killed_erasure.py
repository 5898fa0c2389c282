"""An erasure killed anywhere: the next run finishes it, nothing is left in any file, and nobody else loses a byte.

PANDORA_TEST_KILLS names how often; 40 of itself.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.test_erasure_service import left_of_ben
from tests.app.two_user_store import BEN, RUBEN, erasure, furnished, of_others, opened

REPOSITORY = Path(__file__).parents[2]
KILLS = min(40, int(os.environ.get("PANDORA_TEST_KILLS", "40")))
SHARES = 4
SEED = 67


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("prepared") / "store"
    furnished(root)
    return root


@pytest.mark.parametrize("share", range(SHARES))
def test_an_erasure_killed_anywhere_is_finished_by_the_next(prepared, tmp_path, share):
    """Until then no turn of theirs begins; what the other user finds is what it was."""
    kills = max(1, KILLS // SHARES)
    command = [sys.executable, str(Path(__file__).with_name("killed_erasure.py")), str(prepared), str(tmp_path), str(kills)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([*command, str(SEED + share)], env=environment, capture_output=True, text=True, timeout=60 + 30 * kills)
    assert done.returncode == 0, done.stderr[-3000:]
    assert sum(line.endswith("killed") for line in done.stdout.splitlines()) >= kills - 1
    before = of_others(prepared)
    for root in (tmp_path / "whole", *(tmp_path / str(n) for n in range(kills))):
        assert of_others(root) == before
        if root.name != "whole":
            assert erasure(root).erase(BEN).proof.is_clean
        assert not left_of_ben(root) and not erasure(root).find(BEN).has_data
        app = opened(root)
        assert app.indexes.verify() == () and app.search.messages("oak desk", user=RUBEN, budget_tokens=300).results
        app.close()
