"""`pandora research run`, killed: its checkpoint is swept after its retention by a later `ask`; that of a run that goes on is not."""

import os
import time
from pathlib import Path

from tests.faults.processes import ended, started
from tests.faults.test_killed_research_turn import QUESTION, serve_pages
from tests.tools.egress.conftest import Web, serving

OLD_S = 91 * 86_400


def age(folder: Path) -> None:
    """As if the files had not changed for longer than PANDORA_KEEP_PACKS_DAYS."""
    for path in folder.iterdir():
        os.utime(path, (time.time() - OLD_S, time.time() - OLD_S))


def swept(root: Path) -> None:
    """A later question, which deletes what has expired; it researches nothing."""
    (root / ".vault_swept").unlink(missing_ok=True)
    code, _, err = ended(started(root, "ask", "Hello"))
    assert code == 0, err


def test_the_checkpoint_of_a_killed_run_is_swept_and_that_of_a_running_one_is_not(tmp_path: Path) -> None:
    with serving(Web()) as web:
        settings, root = serve_pages(web, tmp_path), tmp_path / "store"
        pages = dict(web.pages)
        waits = [True]
        for path, answer in pages.items():
            web.pages[path] = lambda handler, answer=answer: (_wait(waits), answer(handler))[1]
        options = ("research", "run", QUESTION, "--provider", settings["PANDORA_SEARCH"])
        running = started(root, *options, settings=settings)
        runs = root / "users" / "me" / "research_runs"
        deadline = time.monotonic() + 60
        while not [path for path in web.paths() if path.startswith("/vela")]:
            assert time.monotonic() < deadline and running.poll() is None
            time.sleep(0.02)
        age(runs)
        swept(root)
        assert len(list(runs.glob("*.json"))) == 1, "the run goes on"
        running.kill()
        ended(running)
        swept(root)
        assert not runs.exists()
        waits.clear()
        code, out, err = ended(started(root, *options, settings=settings))
        assert code == 0 and "210 g" in out, err
        assert not list(runs.glob("*"))


def _wait(waits: list[bool]) -> None:
    """Answer no page while the test waits."""
    deadline = time.monotonic() + 60
    while waits and time.monotonic() < deadline:
        time.sleep(0.02)
