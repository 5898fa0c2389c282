"""`pandora research run` over a web on loopback and a recorded provider."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.research.research_record import topic_of
from pandora_dagster.settings import load_settings
from tests.app.web.topic_store import QUESTION as QUESTION_PRICE
from tests.app.web.topic_store import TOPIC, research, serve_price, web_settings
from tests.cli.conftest import Pandora
from tests.tools.egress.conftest import NAMES, Web, serving

QUESTION = "How much does the Vela lamp weigh?"
PAGE = """<!doctype html><html lang="en"><head><title>Vela lamp</title></head><body><main><h1>Vela lamp</h1>
<p>The Vela lamp shines for twelve hours on one charge and is made for long nights on dark roads.</p>
<table><tr><th>Weight</th><td>210 g</td></tr><tr><th>Battery</th><td>3,200 mAh</td></tr></table>
<p style="display:none">Weight: 1 g</p></main></body></html>"""
HITS = [
    {"url": f"http://{place}", "title": "Vela lamp", "content": "weight"} for place in ("a.test/vela", "b.test/barred", "inside.test/vela")
]


@pytest.fixture
def web() -> Iterator[Web]:
    with serving(Web()) as answering:
        answering.page("a.test/vela", PAGE.encode())
        answering.page("b.test/robots.txt", b"User-agent: *\nDisallow: /barred", Content_Type="text/plain")
        yield answering


@pytest.fixture
def options(web: Web, tmp_path: Path) -> tuple[str, ...]:
    dials = {address: f"127.0.0.1:{web.port}" for answers in NAMES.values() for address in answers}
    (tmp_path / "hosts.json").write_text(json.dumps({"resolver": NAMES, "dial": dials}))
    (tmp_path / "hits.json").write_text(json.dumps({"*": HITS}))
    return ("--hosts", str(tmp_path / "hosts.json"), "--provider", f"recorded={tmp_path / 'hits.json'}")


def test_nothing_is_sent_unless_the_web_is_switched_on(pandora: Pandora, web: Web, options: tuple[str, ...]) -> None:
    off = pandora("research", "run", QUESTION, *options[2:])
    assert off.returncode == 2 and "PANDORA_WEB: off" in off.stderr and web.begun == []


def test_a_claim_has_its_words_and_its_page_and_every_address_its_reason(pandora: Pandora, web: Web, options: tuple[str, ...]) -> None:
    told = pandora("research", "run", QUESTION, *options)
    assert told.returncode == 0, told.stderr
    assert "**Answered.**" in told.stdout and "> Weight 210 g" in told.stdout and "<http://a.test/vela>" in told.stdout
    assert "1 g\n" not in told.stdout.replace("210 g\n", "")
    assert (
        "- refused <http://b.test/barred>: robots: robots.txt" in told.stdout
        and "- refused <http://inside.test/vela>: address:" in told.stdout
    )
    assert "visit http://a.test/vela" in told.stderr
    (row,) = json.loads(pandora("visit", "list", "--json").stdout)
    assert row["url"] == "http://a.test/vela"
    (record,) = json.loads(pandora("research", "list", "--json").stdout)
    assert (record["topic"], record["cache_key"], record["expired"]) == (topic_of("Vela", QUESTION), QUESTION, False)
    run = json.loads(pandora("research", "run", QUESTION, *options, "--json").stdout)
    assert (run["outcome"], [c["value"] for c in run["claims"]]) == ("answered", ["210 g"])
    assert [visit["status"] for visit in run["visits"]] == ["read", "refused", "refused"]


def test_lines_are_answered_in_order_and_cost_only_themselves(pandora: Pandora, web: Web, options: tuple[str, ...], tmp_path: Path) -> None:
    rows = [{"id": "a", "question": QUESTION}, {"id": "b"}, {"id": "c", "question": "Who founded Vela?"}, {"id": "d", "question": ""}]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "not JSON\n")
    told = pandora("research", "run", "--jsonl", str(tmp_path / "q.jsonl"), *options)
    first, second, third, fourth, fifth = map(json.loads, told.stdout.splitlines())
    claim = {"claim": "Vela lamp: Weight 210 g", "value": "210 g", "url": "http://a.test/vela", "quote": "Weight 210 g"}
    assert first == {"id": "a", "outcome": "answered", "claims": [claim]}
    assert third == {"id": "c", "outcome": "not found", "claims": []}
    assert "q.jsonl:2" in second["failed"] and fourth["id"] == "d" and "q.jsonl:5" in fifth["failed"]
    assert told.returncode == 1 and web.paths().count("/vela") == 1


@pytest.mark.parametrize("provider", ["searxng", "searxng=ftp://x/", "searxng=http://u:p@x/", "other=1", "recorded=/none.json"])
def test_a_wrong_provider_is_named(pandora: Pandora, options: tuple[str, ...], provider: str) -> None:
    told = pandora("research", "run", QUESTION, *options[:2], "--provider", provider)
    assert told.returncode == 2 and told.stdout == "" and ("pandora: search provider '" in told.stderr or "none.json" in told.stderr)


def test_the_providers_of_the_settings_are_used_unless_the_line_names_others(
    pandora: Pandora, web: Web, options: tuple[str, ...], tmp_path: Path
) -> None:
    hosts, recorded = options[:2], options[3]
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "lamp.txt").write_text("Vela lamp\n\nThe Vela lamp weighs 215 g.\n")
    for env, place in (
        ({"PANDORA_SEARCH": recorded}, hosts),
        ({"PANDORA_SEARCH": recorded, "PANDORA_WEB": "on", "PANDORA_WEB_HOSTS": options[1]}, ()),
        ({"PANDORA_SEARCH": f"folder={tmp_path / 'notes'}"}, (*hosts, "--provider", recorded)),
    ):
        run = json.loads(pandora("research", "run", QUESTION, *place, "--json", env=env).stdout)
        assert [search["provider"] for search in run["searches"]] == ["recorded"] * len(run["searches"])
        assert [claim["value"] for claim in run["claims"]] == ["210 g"]
    folder = {"PANDORA_SEARCH": f"{recorded},folder={tmp_path / 'notes'}"}
    run = json.loads(pandora("research", "run", QUESTION, "--json", env=folder).stdout)
    assert {search["provider"] for search in run["searches"]} == {"folder"}


def test_no_usable_provider_is_one_sentence_with_the_setting(pandora: Pandora) -> None:
    told = pandora("research", "run", QUESTION)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith("pandora: PANDORA_SEARCH: not set, and no --provider is given: expected searxng=URL, folder=DIR")
    off = pandora("research", "run", QUESTION, env={"PANDORA_SEARCH": "searxng=http://localhost:8888"})
    assert off.stderr.startswith("pandora: PANDORA_WEB: off: no provider of PANDORA_SEARCH (searxng=http://localhost:8888) may be used")


def test_a_page_that_was_read_is_asked_for_with_its_conditions(pandora: Pandora, web: Web, tmp_path: Path) -> None:
    """304 has no body: the stored page answers."""
    env = web_settings(web, tmp_path)
    web.page("a.test/vela", PAGE.replace("Weight", "Price").replace("210 g", "43.00 euros").encode(), ETag='"v1"')
    research(pandora, env)
    full, conditions = web.pages["a.test/vela"], list[str | None]()

    def unchanged(handler: BaseHTTPRequestHandler) -> None:
        conditions.append(handler.headers["If-None-Match"])
        if conditions[-1] != '"v1"':
            full(handler)
            return
        handler.send_response(304)
        handler.end_headers()

    web.pages["a.test/vela"] = unchanged
    told = pandora("research", "run", QUESTION_PRICE, "--provider", env["PANDORA_SEARCH"], "--json", env=env)
    run = json.loads(told.stdout)
    assert conditions == ['"v1"'] and [claim["value"] for claim in run["claims"]] == ["43.00 euros"], told.stderr
    assert len(json.loads(pandora("visit", "list", "--json", env=env).stdout)) == 2


@pytest.mark.parametrize("out", ["the host", "the search"])
def test_stored_research_answers_with_its_age_where_pages_cannot_be_read(pandora: Pandora, web: Web, tmp_path: Path, out: str) -> None:
    env = web_settings(web, tmp_path)
    serve_price(web, "43.00")
    research(pandora, env)
    web.page("a.test/vela", b"", status=500)
    search = env["PANDORA_SEARCH"] if out == "the host" else "searxng=http://127.0.0.1:9/search"
    told = pandora("research", "run", QUESTION_PRICE, "--provider", search, "--json", env=env)
    run = json.loads(told.stdout)
    assert (run["outcome"], [claim["quote"] for claim in run["claims"]]) == ("answered", ["Price 43.00 euros"]), told.stderr
    assert re.match(
        r"answered from research of .*, 0.0 hours old, expires in 6.0 hours, since pages could not be read now: ", run["notices"][0]
    )
    unknown = pandora("research", "run", "How much does the Orion pump cost?", "--provider", search, "--json", env=env)
    assert json.loads(unknown.stdout)["outcome"] == "not found"


def test_records_that_an_earlier_version_stored_under_one_topic_are_both_found(pandora: Pandora, web: Web, tmp_path: Path) -> None:
    """Every question about a thing had its name as the topic, and only the newest record of a topic was read."""
    env = web_settings(web, tmp_path)
    serve_price(web, "43.00")
    research(pandora, env)
    with closing(open_app(load_settings(env))) as app:
        anna, sources = user_id("anna"), app.dependencies.sources
        record = sources.research(anna, TOPIC)
        sources.put(anna, record.model_copy(update={"topic": "web.vela"}))
        newer = {"cache_key": "What is the Vela lamp?", "created_at": "2099-01-01T00:00:00Z", "expires_at": "2099-01-02T00:00:00Z"}
        sources.put(anna, record.model_copy(update={"topic": "web.vela", **newer}))
    for file in (tmp_path / "store" / "users" / "anna" / "research_cache").glob("*.json"):
        if TOPIC in file.read_text():
            file.unlink()
    assert pandora("index", "rebuild", env=env).returncode == 0
    web.page("a.test/vela", b"", status=500)
    told = pandora("research", "run", QUESTION_PRICE, "--provider", env["PANDORA_SEARCH"], "--json", env=env)
    assert [claim["quote"] for claim in json.loads(told.stdout)["claims"]] == ["Price 43.00 euros"]


def test_topics_show_what_a_refresh_would_do(pandora: Pandora, web: Web, tmp_path: Path) -> None:
    """Off by default; on, a topic whose price expires within the day is due. Nothing is sent, and no topic of another user is listed."""
    env = web_settings(web, tmp_path)
    serve_price(web, "43.00")
    research(pandora, env)
    research(pandora, env, question="What does the Vela lamp cost?")
    asked = len(web.begun)
    told = pandora("research", "topics", "--json", env=env)
    _, topic = json.loads(told.stdout)
    assert (topic["topic"], topic["records"], topic["claims"], topic["quotes"], topic["refresh"]) == (TOPIC, 1, 1, 1, "due")
    assert "researches 2 topics again, with at most 24 pages" in told.stderr
    off = pandora("research", "topics", env={**env, "PANDORA_RESEARCH_REFRESH": "off"})
    assert TOPIC in off.stdout and off.stderr.startswith("PANDORA_RESEARCH_REFRESH: off: no topic is refreshed")
    of_ben = pandora("research", "topics", "--user", "ben", env=env)
    assert of_ben.stdout == "" and "no research is cached" in of_ben.stderr and len(web.begun) == asked


@pytest.mark.parametrize("value", ["yes, all", "Web.Vela", "web.vela,"])
def test_a_wrong_setting_of_the_refresh_is_named(pandora: Pandora, web: Web, tmp_path: Path, value: str) -> None:
    told = pandora("research", "topics", env=web_settings(web, tmp_path, PANDORA_RESEARCH_REFRESH=value))
    assert told.returncode == 2 and "PANDORA_RESEARCH_REFRESH" in told.stderr and "expected off, all, or topics" in told.stderr
