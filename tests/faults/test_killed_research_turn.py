"""A turn that finds something out, killed at a random moment: `pandora resume` ends it, and asks for no page a second time."""

import json
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.processes import ended, started
from tests.tools.egress.conftest import NAMES, Web, serving

PAGES = 3
PAGE = """<!doctype html><html lang="en"><head><title>Vela lamp</title></head><body><main><h1>Vela lamp</h1>
<p>Shop {number} sells the Vela lamp to riders who are out at night, in all weathers, with a charger and a clamp.</p>
<table><tr><th>Weight</th><td>210 g</td></tr><tr><th>Price</th><td>{price}.00 euros</td></tr></table></main></body></html>"""
QUESTION = "How much does the Vela lamp weigh?"
MOMENTS = 20


def serve_pages(web: Web, folder: Path) -> dict[str, str]:
    """Pages that come after a moment, and the settings that lead to them."""
    for number in range(PAGES):
        web.page(f"/vela/{number}", PAGE.format(number=number, price=number + 40).encode())
        answer = web.pages[f"/vela/{number}"]
        web.pages[f"/vela/{number}"] = lambda handler, answer=answer: (time.sleep(0.2), answer(handler))[1]
    dials = {address: f"127.0.0.1:{web.port}" for answers in NAMES.values() for address in answers}
    (folder / "hosts.json").write_text(json.dumps({"resolver": NAMES, "dial": dials}))
    rows = [{"url": f"http://a.test/vela/{number}", "title": "Vela lamp", "content": "weight"} for number in range(PAGES)]
    (folder / "hits.json").write_text(json.dumps({"*": rows}))
    return {
        "PANDORA_WEB": "on",
        "PANDORA_WEB_HOSTS": str(folder / "hosts.json"),
        "PANDORA_WEB_DELAY": "0",
        "PANDORA_BROWSER": "off",
        "PANDORA_SEARCH": f"recorded={folder / 'hits.json'}",
    }


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_a_killed_turn_goes_on_and_visits_no_page_twice(tmp_path: Path, moment: int) -> None:
    with serving(Web()) as web:
        env = serve_pages(web, tmp_path)
        root = tmp_path / "store"
        first = started(root, "ask", QUESTION, settings=env)
        deadline = time.monotonic() + 120
        while not web.begun and first.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(random.Random(moment).uniform(0.0, 2.0))  # an unkilled turn takes about 1.5 s from its first request to its answer
        first.kill()
        ended(first)
        came = web.paths()[-1:]
        code, out, err = ended(started(root, "resume", "1", "--json", settings=env))
        if code != 0:
            assert "nothing is left to do" in err, err
            code, out, err = ended(started(root, "show", "1", settings=env))
            assert "Weight 210 g" in out
        else:
            assert "Weight 210 g" in json.loads(out)["response"]
        asked = Counter(path for path in web.paths() if path.startswith("/vela"))
        assert len(asked) == PAGES and all(count == 1 for path, count in asked.items() if path not in came), asked
        code, out, err = ended(started(root, "research", "list", "--json", settings=env))
        assert [row["cache_key"] for row in json.loads(out)] == [QUESTION], err
        assert not (root / "users" / "me" / "research_runs" / "turn_000001").exists()


def test_a_killed_turn_goes_on_with_what_is_left_of_its_budget(tmp_path: Path) -> None:
    """Two requests are allowed and both were sent when the turn was killed; it went on with two more."""
    with serving(Web()) as web:
        env = {**serve_pages(web, tmp_path), "PANDORA_WEB_MAX_PAGES": "2"}
        root = tmp_path / "store"
        first = started(root, "ask", QUESTION, settings=env)
        deadline = time.monotonic() + 120
        while sum(path.startswith("/vela") for path in web.paths()) < 2:
            assert time.monotonic() < deadline and first.poll() is None
            time.sleep(0.01)
        first.kill()
        ended(first)
        code, out, err = ended(started(root, "resume", "1", "--json", settings=env))
        assert code == 0 and "Weight 210 g" in json.loads(out)["response"], err
        assert sum(path.startswith("/vela") for path in web.paths()) == 2
        code, out, err = ended(started(root, "show", "1", "--section", "4", settings=env))
        assert out.count("budget: the budget of 2 pages is used up") == 2, out
