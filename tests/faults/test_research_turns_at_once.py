"""Two turns that find something out at the same time on one host: its delay is kept, and it has one request at a time."""

import json
from itertools import pairwise
from pathlib import Path

from tests.faults.processes import ended, started
from tests.faults.test_killed_research_turn import PAGES, serve_pages
from tests.tools.egress.conftest import Web, serving

DELAY_S = 0.3


def test_two_turns_are_polite_together(tmp_path: Path) -> None:
    with serving(Web()) as web:
        settings = {**serve_pages(web, tmp_path), "PANDORA_WEB_DELAY": str(DELAY_S)}
        root = tmp_path / "store"
        asked = {"ann": "How much does the Vela lamp weigh?", "ben": "What does the Vela lamp cost?"}
        running = [started(root, "ask", text, "--user", user, "--json", settings=settings) for user, text in asked.items()]
        for process in running:
            code, out, err = ended(process)
            assert code == 0 and json.loads(out)["citations"], err
        times = web.times()
        assert len(times) == 2 * PAGES
        assert all(begin - end >= DELAY_S - 0.05 for (_, end), (begin, _) in pairwise(times))
