"""The asset of research topics over a real store and a web on loopback, its checks, and the schedule that refreshes."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pandora_dagster.app import open_app
from pandora_dagster.defs import resources
from pandora_dagster.defs.resources import ResearchResource
from pandora_dagster.defs.topic_assets import ASSET, JOB, REFRESH_JOB, SCHEDULE, refresh_schedule, topics_asset
from pandora_dagster.settings import load_settings
from tests.app.web.topic_store import QUESTION, TOPIC, research, serve_price, web_settings
from tests.cli.conftest import Pandora, pandora
from tests.tools.egress.conftest import Web, serving

__all__ = ["pandora"]
NIGHT = datetime(2026, 11, 28, 4, tzinfo=UTC)


@pytest.fixture
def web() -> Iterator[Web]:
    with serving(Web()) as answering:
        serve_price(answering, "43.00")
        yield answering


@pytest.fixture
def env(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings of a store, which the resource of Dagster reads from the environment."""
    for name in [name for name in os.environ if name.startswith(("PANDORA_", "DAGSTER_"))]:
        monkeypatch.delenv(name)
    settings = web_settings(web, tmp_path)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return settings


@contextmanager
def opened_resource() -> Iterator[dict[str, Any]]:
    """The resource of the asset, over an application that is closed at the end."""
    with closing(open_app(load_settings(os.environ))) as app, pytest.MonkeyPatch.context() as patched:
        patched.setattr(resources, "cached_app", lambda *_: app)
        yield {"research": ResearchResource(root="", runtime="")}


def ran(instance: dg.DagsterInstance, *, refresh: bool = False) -> tuple[dict[str, Any], dict[str, dg.AssetCheckEvaluation]]:
    """The metadata of the asset and the evaluations of its checks."""
    config = {"ops": {ASSET: {"config": {"refresh": refresh}}}}
    with opened_resource() as opened:
        graph = dg.Definitions(assets=[topics_asset()], jobs=[REFRESH_JOB], resources=opened)
        result = graph.resolve_job_def(JOB).execute_in_process(run_config=config, instance=instance)
    (event,) = result.asset_materializations_for_node(ASSET)
    return dict(event.metadata), {check.check_name: check for check in result.get_asset_check_evaluations()}


def rows(table: Any) -> list[dict[str, Any]]:
    return [dict(record.data) for record in table.value.records]


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    (tmp_path / "home").mkdir()
    with dg.instance_for_test(temp_dir=str(tmp_path / "home")) as opened:
        yield opened


def test_the_asset_lists_topics_and_claims_and_sends_nothing(
    pandora: Pandora, web: Web, env: dict[str, str], instance: dg.DagsterInstance
) -> None:
    research(pandora, env)
    research(pandora, env, question="What does the Vela lamp cost?")
    research(pandora, env, "--user", "ben", question="What is the price of the Vela lamp?")
    asked = len(web.begun)
    metadata, checks = ran(instance)
    _, topic = rows(metadata["topics"])
    assert (topic["topic"], topic["question"], topic["records"], topic["refresh"]) == (TOPIC, QUESTION, 1, "due")
    _, claim = rows(metadata["claims"])
    assert (claim["value"], claim["address"], claim["fault"]) == ("43.00 euros", "http://a.test/vela", "")
    assert {name: check.passed for name, check in checks.items()} == {
        "records_readable": True,
        "quotes_verbatim": True,
        "refresh_complete": True,
    }
    assert len(web.begun) == asked and "ben" not in str(metadata)


def test_a_page_without_the_quote_fails_its_check(pandora: Pandora, env: dict[str, str], instance: dg.DagsterInstance) -> None:
    research(pandora, env)
    (page,) = (Path(env["PANDORA_ROOT"]) / "users" / "anna" / "webpage_cache").glob("*/page_doc.json")
    page.write_text(page.read_text().replace("43.00", "34.00"))
    metadata, checks = ran(instance)
    assert not checks["quotes_verbatim"].passed and f"{TOPIC}: the visible text of visit_" in str(checks["quotes_verbatim"].description)
    assert metadata["quotes_at_fault"].value == 1 and checks["records_readable"].passed


def test_a_damaged_record_fails_its_check(pandora: Pandora, env: dict[str, str], instance: dg.DagsterInstance) -> None:
    research(pandora, env)
    (record,) = (Path(env["PANDORA_ROOT"]) / "users" / "anna" / "research_cache").glob("*.json")
    record.write_text(record.read_text()[:50])
    metadata, checks = ran(instance)
    assert not checks["records_readable"].passed and rows(metadata["topics"])[0]["refresh"] == "unreadable"


def test_a_run_with_refresh_renews_due_topics(pandora: Pandora, web: Web, env: dict[str, str], instance: dg.DagsterInstance) -> None:
    research(pandora, env)
    serve_price(web, "39.00")
    metadata, checks = ran(instance, refresh=True)
    assert rows(metadata["refreshed"]) == [{"topic": TOPIC, "outcome": "refreshed", "pages": 1, "reason": ""}]
    assert rows(metadata["claims"])[0]["value"] == "39.00 euros" and checks["refresh_complete"].passed


def test_a_refresh_that_fails_keeps_the_record_and_fails_its_check(
    pandora: Pandora, web: Web, env: dict[str, str], instance: dg.DagsterInstance
) -> None:
    research(pandora, env)
    web.page("a.test/vela", b"", status=500)
    metadata, checks = ran(instance, refresh=True)
    assert rows(metadata["claims"])[0]["value"] == "43.00 euros"
    assert not checks["refresh_complete"].passed and f"{TOPIC}: kept: not found; " in str(checks["refresh_complete"].description)


def test_an_erasure_deletes_what_the_asset_recorded(pandora: Pandora, env: dict[str, str], instance: dg.DagsterInstance) -> None:
    research(pandora, env)
    ran(instance)
    assert any(b"Vela" in path.read_bytes() for path in Path(instance.root_directory).rglob("*") if path.is_file())
    home = {**env, "DAGSTER_HOME": instance.root_directory}
    told = pandora("forget", "anna", "--yes", env=home)
    assert told.returncode == 0, told.stderr
    assert not any(b"Vela" in path.read_bytes() for path in Path(instance.root_directory).rglob("*") if path.is_file())


def test_the_schedule_is_off_unless_the_user_switches_it_on(env: dict[str, str]) -> None:
    off = load_settings({name: value for name, value in env.items() if name != "PANDORA_RESEARCH_REFRESH"})
    assert refresh_schedule(off).default_status is dg.DefaultScheduleStatus.STOPPED
    assert refresh_schedule(load_settings(env)).default_status is dg.DefaultScheduleStatus.RUNNING


def tick() -> dg.RunRequest | str:
    """The run that the schedule asks for at night, or why there is none."""
    schedule = refresh_schedule(load_settings(os.environ))
    with dg.instance_for_test() as instance, opened_resource() as opened:
        graph = dg.Definitions(assets=[topics_asset()], jobs=[REFRESH_JOB], schedules=[schedule], resources=opened)
        context = dg.build_schedule_context(
            instance=instance, scheduled_execution_time=NIGHT, repository_def=graph.get_repository_def(), resources=graph.resources
        )
        data = graph.resolve_schedule_def(SCHEDULE).evaluate_tick(context)
    return data.run_requests[0] if data.run_requests else str(data.skip_message)


def test_a_night_with_a_due_topic_has_one_run_that_refreshes(pandora: Pandora, env: dict[str, str]) -> None:
    assert tick() == "no topic is about to expire"
    research(pandora, env)
    request = tick()
    assert isinstance(request, dg.RunRequest)
    assert (request.run_key, request.run_config["ops"]) == ("2026-11-28", {ASSET: {"config": {"refresh": True}}})


@pytest.mark.parametrize("missing", ["PANDORA_WEB", "PANDORA_SEARCH", "PANDORA_RESEARCH_REFRESH"])
def test_a_night_without_the_web_or_a_provider_has_no_run_and_says_why(
    pandora: Pandora, env: dict[str, str], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    research(pandora, env)
    monkeypatch.delenv(missing)
    reason = tick()
    assert isinstance(reason, str) and reason.startswith(f"{missing}: ") and "no topic is refreshed" in reason
