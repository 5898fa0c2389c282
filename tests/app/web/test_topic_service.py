"""Topics of cached research: what is listed of them, when their quotes are proved, what a refresh renews and what it keeps."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.app.web.topic_service import RefreshOutcome, TopicRefresh, TopicService
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.research.research_record import topic_of
from pandora_dagster.research.research_topics import RefreshState
from pandora_dagster.settings import load_settings
from tests.app.web.test_web_researcher_privacy import Careless
from tests.app.web.topic_store import QUESTION, TOPIC, research, serve_price, web_settings
from tests.cli.conftest import Pandora
from tests.phases.vocabulary import vocabulary
from tests.tools.egress.conftest import Web, serving

ANNA = user_id("anna")


@pytest.fixture
def web() -> Iterator[Web]:
    with serving(Web()) as answering:
        serve_price(answering, "43.00")
        yield answering


@pytest.fixture
def env(web: Web, tmp_path: Path) -> dict[str, str]:
    return web_settings(web, tmp_path)


@contextmanager
def opened(env: dict[str, str]) -> Iterator[tuple[App, TopicService]]:
    with closing(open_app(load_settings(env))) as app:
        yield app, TopicService(app, ANNA)


def refreshed(env: dict[str, str]) -> tuple[TopicRefresh, ...]:
    with opened(env) as (_, service):
        return service.refresh(lambda _: None)


def values(env: dict[str, str]) -> list[str]:
    """The values of the claims of anna's topics."""
    with opened(env) as (_, service):
        return [c.evidence.value for row in service.topics() for c in row.topic.claims if c.evidence]


def pages_of(web: Web) -> list[str]:
    return [path for path in web.paths() if path != "/robots.txt"]


def test_a_topic_is_its_newest_record_and_of_one_user(pandora: Pandora, env: dict[str, str]) -> None:
    research(pandora, env)
    research(pandora, env, question=QUESTION.lower().replace("vela", "Vela"))
    research(pandora, env, "--user", "ben", question="What is the price of the Vela lamp?")
    with opened(env) as (app, service):
        (row,) = service.topics()
        assert (row.topic.topic, row.topic.question, row.topic.records) == (TOPIC, "how much does the Vela lamp cost?", 2)
        assert (len(row.topic.claims), row.quotes, row.state, row.expired) == (1, 1, RefreshState.DUE, False)
        (of_ben,) = TopicService(app, user_id("ben")).topics()
        assert of_ben.topic.question == "What is the price of the Vela lamp?"
        assert "only topics of PANDORA_USER" in TopicService(app, user_id("ben")).refusal


def test_another_question_about_the_same_thing_is_another_topic(pandora: Pandora, env: dict[str, str]) -> None:
    """Both were one topic, of which only the newest record was found."""
    other = "What does the Vela lamp cost?"
    research(pandora, env)
    research(pandora, env, question=other)
    with opened(env) as (_, service):
        assert {row.topic.question: (row.topic.topic, row.topic.records) for row in service.topics()} == {
            QUESTION: (TOPIC, 1),
            other: (topic_of("Vela", other), 1),
        }
    with opened({**env, "PANDORA_RESEARCH_REFRESH": "web.vela"}) as (_, service):
        assert {row.state for row in service.topics()} == {RefreshState.DUE}


def test_a_refresh_renews_the_record_of_the_topic(pandora: Pandora, web: Web, env: dict[str, str]) -> None:
    research(pandora, env)
    serve_price(web, "39.00")
    assert refreshed(env) == (TopicRefresh(TOPIC, RefreshOutcome.REFRESHED, 1),)
    with opened(env) as (_, service):
        (row,) = service.topics()
        assert row.topic.records == 1 and row.topic.question == QUESTION and row.topic.provenance
        assert row.topic.provenance.by == "research_topics" and row.state is RefreshState.DUE
    assert values(env) == ["39.00 euros"] and pages_of(web).count("/vela") == 2


@pytest.mark.parametrize("body", ["gone", "moved"])
def test_a_refresh_that_finds_nothing_keeps_the_record(pandora: Pandora, web: Web, env: dict[str, str], body: str) -> None:
    """The server fails, or its page no longer says it."""
    research(pandora, env)
    if body == "gone":
        web.page("a.test/vela", b"", status=500)
    else:
        web.page("a.test/vela", b"<title>Vela lamp</title><main><h1>Vela lamp</h1><p>The Vela lamp is sold no more.</p></main>")
    (kept,) = refreshed(env)
    assert (kept.outcome, kept.pages) == (RefreshOutcome.KEPT, 1) and kept.reason.startswith("not found")
    assert ("the server answers 500" in kept.reason) == (body == "gone")
    assert values(env) == ["43.00 euros"]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"PANDORA_RESEARCH_REFRESH": "off"}, "PANDORA_RESEARCH_REFRESH: off: no topic is refreshed"),
        ({"PANDORA_WEB": "off"}, "PANDORA_WEB: off: no topic is refreshed"),
        ({"PANDORA_SEARCH": ""}, "PANDORA_SEARCH: none: no topic is refreshed"),
    ],
)
def test_a_refresh_that_may_not_run_says_why_and_does_nothing(
    pandora: Pandora, web: Web, env: dict[str, str], changed: dict[str, str], sentence: str
) -> None:
    research(pandora, env)
    asked = len(web.begun)
    with opened({**env, **changed}) as (_, service):
        with pytest.raises(ConfigurationError, match=sentence):
            service.refresh(lambda _: None)
        assert service.refusal.startswith(sentence)
    assert len(web.begun) == asked and values(env) == ["43.00 euros"]


def test_only_named_topics_are_refreshed_and_only_those_that_expire(pandora: Pandora, web: Web, env: dict[str, str]) -> None:
    research(pandora, env)
    web.page("a.test/vela", b"<title>Orion pump</title><main><h1>Orion pump</h1><p>The Orion pump weighs 310 g.</p></main>")
    research(pandora, env, question="How much does the Orion pump weigh?")
    orion = topic_of("Orion", "How much does the Orion pump weigh?")
    for named, states in {
        TOPIC: {TOPIC: RefreshState.DUE, orion: RefreshState.NOT_NAMED},
        "all": {TOPIC: RefreshState.DUE, orion: RefreshState.FRESH},
    }.items():
        with opened({**env, "PANDORA_RESEARCH_REFRESH": named}) as (_, service):
            assert {row.topic.topic: row.state for row in service.topics()} == states


def test_a_topic_waits_where_the_pages_of_a_refresh_are_used_up(pandora: Pandora, web: Web, env: dict[str, str]) -> None:
    research(pandora, env)
    web.page("a.test/vela", b"<title>Orion pump</title><main><h1>Orion pump</h1><p>The price of the Orion pump is 31.00 euros.</p></main>")
    research(pandora, env, question="How much does the Orion pump cost?")
    first, second = refreshed({**env, "PANDORA_RESEARCH_REFRESH_PAGES": "8"})
    assert first.topic == TOPIC and first.pages == 1
    assert (second.outcome, second.pages) == (RefreshOutcome.WAITS, 0) and "used up" in second.reason


def test_a_record_of_a_user_is_listed_and_not_refreshed(pandora: Pandora, web: Web, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(
        '{"topic": "commerce.lamp", "cache_key": "lamps", "created_at": "2026-01-04T13:15:00Z", "expires_at": "2026-01-05T13:15:00Z",'
        ' "quality_score": 0.8, "summary": "Lamps."}'
    )
    assert pandora("research", "add", str(tmp_path / "r.json"), env=env).returncode == 0
    assert refreshed(env) == () and web.begun == []
    with opened(env) as (_, service):
        (row,) = service.topics()
        assert (row.state, row.expired, row.quotes) == (RefreshState.NO_QUESTION, True, 0)


def test_a_quote_that_its_stored_page_does_not_have_is_found(pandora: Pandora, env: dict[str, str], tmp_path: Path) -> None:
    research(pandora, env)
    with opened(env) as (_, service):
        assert [verdict.fault for verdict in service.verify_quotes()] == [""]
    (page,) = (tmp_path / "store" / "users" / "anna" / "webpage_cache").glob("*/page_doc.json")
    page.write_text(page.read_text().replace("43.00", "34.00"))
    with opened(env) as (_, service):
        (verdict,) = service.verify_quotes()
        assert verdict.topic == TOPIC and "does not have the words" in verdict.fault
    page.unlink()
    with opened(env) as (_, service):
        assert "page_doc.json" in service.verify_quotes()[0].fault


def test_a_refresh_keeps_the_privacy_of_the_turn_that_asked(pandora: Pandora, web: Web, env: dict[str, str], tmp_path: Path) -> None:
    """The town is in the memory and not in the question; a model writes it into the query, which alone would have a result."""
    assert '"Price 43.00 euros"' in pandora("ask", QUESTION, env=env).stdout
    asked = len(web.begun)
    hits = json.loads((tmp_path / "hits.json").read_text())
    (tmp_path / "hits.json").write_text(json.dumps({"Vela lamp cost Lund": hits["*"]}))
    with closing(open_app(load_settings(env), runtime=Careless("Vela lamp cost Lund"), counter=vocabulary())) as app:
        app.dependencies.memory.put(ANNA, MemoryEntry("location", "Lund", 0.9, None, "2026-01-04T14:30:00Z", "fact"))
        (kept,) = TopicService(app, ANNA).refresh(lambda _: None)
    assert kept.outcome is RefreshOutcome.KEPT and "privacy" in kept.reason and "Lund" not in kept.reason
    assert len(web.begun) == asked
