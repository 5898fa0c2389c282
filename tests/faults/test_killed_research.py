"""`pandora research run`, killed while a page is under way: the same command goes on, and no page that came is asked for again."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.faults.asked_pages import recorded_paths, repeated_paths
from tests.faults.processes import ended, started
from tests.tools.egress.conftest import NAMES, Web, serving

PAGES = 4
PAGE = """<!doctype html><html lang="en"><head><title>Vela lamp {number}</title></head><body><main><h1>Vela lamp</h1>
<p>Shop {number} sells the Vela lamp to riders who are out at night, in all weathers, with a charger and a clamp.</p>
<table><tr><th>Weight</th><td>210 g</td></tr><tr><th>Price</th><td>{price}.00 euros</td></tr></table></main></body></html>"""
QUESTION = "How much does the Vela lamp weigh?"


def serve_pages(web: Web, folder: Path) -> tuple[str, ...]:
    """Pages that come after a moment, each with a text of its own, and the options that lead to them."""
    for number in range(PAGES):
        body = PAGE.format(number=number, price=number + 40)
        web.page(f"/vela/{number}", body.encode())
        answer = web.pages[f"/vela/{number}"]
        web.pages[f"/vela/{number}"] = lambda handler, answer=answer: (time.sleep(0.4), answer(handler))[1]
    dials = {address: f"127.0.0.1:{web.port}" for answers in NAMES.values() for address in answers}
    (folder / "hosts.json").write_text(json.dumps({"resolver": NAMES, "dial": dials}))
    rows = [{"url": f"http://a.test/vela/{number}", "title": "Vela lamp", "content": "weight"} for number in range(PAGES)]
    (folder / "hits.json").write_text(json.dumps({"*": rows}))
    return ("--hosts", str(folder / "hosts.json"), "--provider", f"recorded={folder / 'hits.json'}", "--json")


def kill_run(root: Path, web: Web, options: tuple[str, ...], asked: int, settings: Mapping[str, str]) -> None:
    """Start the run, and kill it while it waits for the page number `asked`."""
    first = started(root, "research", "run", QUESTION, *options, settings=settings)
    deadline = time.monotonic() + 60
    while sum(path.startswith("/vela") for path in web.paths()) < asked:
        assert time.monotonic() < deadline and first.poll() is None
        time.sleep(0.02)
    first.kill()
    ended(first)


@pytest.mark.parametrize("killed_at", range(PAGES))
def test_a_killed_run_goes_on_without_a_second_visit(tmp_path: Path, killed_at: int) -> None:
    with serving(Web()) as web:
        options = serve_pages(web, tmp_path)
        root = tmp_path / "store"
        kill_run(root, web, options, killed_at + 1, {})
        before = web.paths()
        recorded = recorded_paths(root, before)
        code, out, err = ended(started(root, "research", "run", QUESTION, *options))
        assert code == 0, err
        run = json.loads(out)
        assert (run["outcome"], [claim["value"] for claim in run["claims"]]) == ("answered", ["210 g"])
        assert [visit["status"] for visit in run["visits"]] == ["read"] * PAGES
        assert repeated_paths(before, recorded, web.paths()) == [], (before, recorded, web.paths())
        assert set(web.paths()) == {"/robots.txt", *(f"/vela/{number}" for number in range(PAGES))}


def test_a_killed_run_goes_on_with_what_is_left_of_its_budget(tmp_path: Path) -> None:
    """Two requests are allowed and both were sent when the run was killed; it went on with two more."""
    with serving(Web()) as web:
        options, root, settings = serve_pages(web, tmp_path), tmp_path / "store", {"PANDORA_WEB_MAX_PAGES": "2"}
        kill_run(root, web, options, 2, settings)
        code, out, err = ended(started(root, "research", "run", QUESTION, *options, settings=settings))
        assert code == 0, err
        reasons = [visit["reason"] for visit in json.loads(out)["visits"]]
        assert reasons == ["", *["budget: the budget of 2 pages is used up"] * (PAGES - 1)]
        assert sum(path.startswith("/vela") for path in web.paths()) == 2
        assert list((root / "users" / "me" / "research_runs").iterdir()) == []
