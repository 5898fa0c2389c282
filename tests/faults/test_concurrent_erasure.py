"""Processes that write what another erases: an archival, questions, a second erasure. In the end nothing of the user is anywhere."""

import shutil
import time
from pathlib import Path

import pytest

from tests.app.test_erasure_service import left_of_ben
from tests.app.two_user_store import BEN, RUBEN, erasure, furnished, opened
from tests.faults.processes import ended, pandora, started


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("prepared") / "store"
    furnished(root)
    app = opened(root)
    for key in app.turns.keys(None):
        (Path(app.turns.path(key)) / "hold.json").unlink(missing_ok=True)
    app.close()
    return root


@pytest.mark.parametrize("late_s", [0.0, 2.0])
@pytest.mark.parametrize("other", [("archive",), ("ask", "Is Zephyrine Quillfeather in?", "--user", "ben"), ("forget", "ben", "--yes")])
def test_whatever_runs_beside_it_leaves_nothing(prepared, tmp_path, other, late_s):
    """What comes too late is refused in one sentence; an erasure that met the other's files says so, and the next one ends it."""
    root = shutil.copytree(prepared, tmp_path / "store")
    first = started(root, *other)
    time.sleep(late_s)
    second = started(root, "forget", "ben", "--yes")
    _, _, err = ended(first)
    assert "Traceback" not in err, err
    code, _, err = ended(second)
    assert "Traceback" not in err, err
    if other[0] != "archive" and BEN in opened_users(root):
        assert pandora(root, "forget", "ben", "--yes")[0] == 0
    if code != 0 and erasure(root).find(BEN).has_data:
        code, _, err = pandora(root, "forget", "ben", "--yes")
        assert code == 0, err
    assert not left_of_ben(root)
    app = opened(root)
    assert app.turns.users() == (RUBEN,)
    app.indexes.rebuild()
    assert app.indexes.verify() == () and app.search.messages("oak desk", user=RUBEN, budget_tokens=300).results
    app.close()


def opened_users(root):
    app = opened(root)
    users = app.turns.users()
    app.close()
    return users
