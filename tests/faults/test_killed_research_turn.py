"""A turn that finds something out, killed in each twentieth of its time: `pandora resume` ends it, and asks for no page a second time."""

import json
import random
import time
from pathlib import Path

import pytest

from tests.faults.asked_pages import recorded_paths, repeated_paths
from tests.faults.processes import ended, started
from tests.fork_server import ForkedProcess
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


def test_only_a_request_under_way_without_a_record_may_be_repeated() -> None:
    before = ["/robots.txt", "/vela/0", "/vela/1"]
    once = [*before, "/vela/1", "/vela/2"]
    assert repeated_paths(before, {"/vela/0"}, once) == []
    assert repeated_paths(before, {"/vela/0"}, [*once, "/vela/1"]) == ["/vela/1"]
    assert repeated_paths(before, {"/vela/0", "/vela/1"}, once) == ["/vela/1"]
    assert repeated_paths(before, {"/vela/0"}, [*once, "/vela/0"]) == ["/vela/0"]


def wait_for_request(web: Web, turn: ForkedProcess) -> None:
    deadline = time.monotonic() + 120
    while not web.begun and turn.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def seconds_of_turn(tmp_path_factory: pytest.TempPathFactory) -> float:
    """The time from the first request of a turn that is not killed to its end, on this machine."""
    with serving(Web()) as web:
        folder = tmp_path_factory.mktemp("unkilled")
        turn = started(folder / "store", "ask", QUESTION, settings=serve_pages(web, folder))
        wait_for_request(web, turn)
        began = time.monotonic()
        assert ended(turn)[0] == 0
        return time.monotonic() - began


def kill_turn(web: Web, folder: Path, share: float, seconds: float) -> Path:
    """The store of a turn that was killed after a share of its time. One that ended before was faster, and is run again."""
    for attempt in range(5):
        web.begun.clear()
        web.ended.clear()
        root = folder / f"store{attempt}"
        turn = started(root, "ask", QUESTION, settings=serve_pages(web, folder))
        wait_for_request(web, turn)
        began = time.monotonic()
        while turn.poll() is None and time.monotonic() - began < share * seconds:
            time.sleep(0.005)
        if turn.poll() is None:
            turn.kill()
            ended(turn)
            web.times()  # the request under way has ended
            return root
        seconds = time.monotonic() - began
        ended(turn)
    raise AssertionError("each turn ended before it was killed")


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_a_killed_turn_goes_on_and_visits_no_page_twice(tmp_path: Path, moment: int, seconds_of_turn: float) -> None:
    with serving(Web()) as web:
        share = (moment + random.Random(moment).random()) / MOMENTS
        root = kill_turn(web, tmp_path, share, seconds_of_turn)
        before, env = web.paths(), serve_pages(web, tmp_path)
        recorded = recorded_paths(root, before)
        code, out, err = ended(started(root, "resume", "1", "--json", settings=env))
        if code != 0:
            assert "nothing is left to do" in err, err
            code, out, err = ended(started(root, "show", "1", settings=env))
            assert "Weight 210 g" in out
        else:
            assert "Weight 210 g" in json.loads(out)["response"]
        asked = web.paths()
        assert repeated_paths(before, recorded, asked) == [], (before, recorded, asked)
        assert set(asked) == {"/robots.txt", *(f"/vela/{number}" for number in range(PAGES))}
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
