"""Questions that only a picture answers: a model of the layer EYES reads the screenshot, in turns and in research, in the real browser."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.app.composition import open_counter, utc_now
from pandora_dagster.app.web.research_service import Researcher, open_providers
from pandora_dagster.app.web.screenshot_reader import open_screenshot_reader
from pandora_dagster.app.web.web_service import open_visit_store
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.contracts.web.research_depth import Depth
from pandora_dagster.contracts.web.research_run import ResearchRun
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.settings import load_settings
from tests.cli.conftest import Pandora
from tests.fakes.pictures import png
from tests.tools.egress.conftest import NAMES, Web

QUESTION = "How much does the Arc lamp weigh?"
PAGE = b"<title>Arc lamp</title><body><img src=/lamp.png width=300 height=200></body>"
SEEN = {"blocks": [{"kind": "title", "text": "Arc lamp"}, {"kind": "product_info", "text": "Weight: 210 g"}]}
ANNA = user_id("anna")


class KilledError(BaseException):
    """The process ends here."""


@dataclass
class SeeingRuntime(ExtractiveRuntime):
    """The embedded runtime, with a model that reads pictures. `killed_at`: the role in whose call the process ends."""

    killed_at: str = ""
    pictures: list[PromptPack] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(open_counter(), utc_now)

    def picture_fault(self, layer: ModelLayer) -> str:
        return ""

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        if pack.role == self.killed_at:
            raise KilledError
        if pack.role != "screenshot_reader":
            return await super().complete(pack, timeout_s=timeout_s, on_words=on_words)
        self.pictures.append(pack)
        return ModelAnswer(json.dumps(SEEN), "stop", Usage(prompt=900, output=30), self.name, "eyes", 1.0)


@pytest.fixture
def env(web: Web, tmp_path: Path) -> dict[str, str]:
    web.page("/lamp", PAGE)
    web.page("/lamp.png", png(60, 40), Content_Type="image/png")
    dials = {address: f"127.0.0.1:{web.port}" for answers in NAMES.values() for address in answers}
    (tmp_path / "hosts.json").write_text(json.dumps({"resolver": NAMES, "dial": dials}))
    (tmp_path / "hits.json").write_text(json.dumps({"*": [{"url": "http://a.test/lamp", "title": "Arc lamp", "content": "weight"}]}))
    return {
        "PANDORA_ROOT": str(tmp_path / "store"),
        "PANDORA_USER": "anna",
        "PANDORA_WEB": "on",
        "PANDORA_WEB_HOSTS": str(tmp_path / "hosts.json"),
        "PANDORA_WEB_DELAY": "0",
        "PANDORA_SEARCH": f"recorded={tmp_path / 'hits.json'}",
    }


@contextmanager
def opened(env: dict[str, str], runtime: SeeingRuntime) -> Iterator[App]:
    with closing(open_app(load_settings(env), runtime=runtime)) as app:
        yield app


def researched(app: App, question: str = QUESTION) -> ResearchRun:
    """The run of `pandora research run QUESTION`."""
    settings, deps = app.settings, app.dependencies
    providers = open_providers(settings, [settings.search], None, deps.clock)
    visits, eyes = open_visit_store(app, ANNA), open_screenshot_reader(app)
    return app.run(
        Researcher(settings, ANNA, providers, None, visits, Depth.STANDARD, 0, deps.clock, deps.execution, eyes).research(
            question, lambda line: None
        )
    )


def test_a_turn_answers_from_a_picture(env: dict[str, str]) -> None:
    """The call is one of the turn: in its ledger, and in the cost of its tool."""
    runtime = SeeingRuntime()
    with opened(env, runtime) as app:
        key = app.start(QUESTION)
        app.run_turn(key, on_report=lambda report: None)
        turn = app.turns.load(key)
        calls = [record for record in app.calls.of_turn(key, 0) if record.recipe == "screenshot_reader"]
    assert turn.files["response.md"] == 'Arc lamp: "Weight: 210 g" [1]\n' and "<http://a.test/lamp>" in turn.context
    assert [(call.phase, call.turn_id, call.model, call.success) for call in calls] == [("tool_results", "turn_000001", "eyes", True)]
    facts = next(phase.report["facts"] for phase in turn.manifest.phases if phase.phase == "tool_results")
    assert facts["tool_costs"][0]["tool"] == "internet.research" and facts["tool_costs"][0]["tokens"] >= 930
    assert len(runtime.pictures) == 1


def test_research_answers_from_a_picture(env: dict[str, str]) -> None:
    with opened(env, SeeingRuntime()) as app:
        run = researched(app)
    assert run.outcome == "answered" and [(claim.quote, claim.url) for claim in run.claims] == [("Weight: 210 g", "http://a.test/lamp")]


def test_a_turn_that_was_killed_reads_no_picture_again(env: dict[str, str], web: Web) -> None:
    """The visit is in the checkpoint with what its picture says."""
    runtime = SeeingRuntime(killed_at="claim_extractor")
    with opened(env, runtime) as app:
        key = app.start(QUESTION)
        with pytest.raises(KilledError):
            app.run_turn(key, on_report=lambda report: None)
    assert len(runtime.pictures) == 1
    after = SeeingRuntime()
    with opened(env, after) as app:
        app.run_turn(key, on_report=lambda report: None)
        answer = app.turns.load(key).files["response.md"]
    assert "Weight: 210 g" in answer and after.pictures == [] and web.paths().count("/lamp") == 1


def test_without_a_model_that_reads_pictures_the_reason_is_recorded(env: dict[str, str], pandora: Pandora) -> None:
    reason = "http://a.test/lamp: its picture was not read: the embedded runtime reads no pictures: configure the layer EYES"
    assert pandora("ask", QUESTION, env=env).returncode == 0
    assert f"**Notice:** {reason}" in pandora("show", "1", "--section", "4", env=env).stdout
    done = pandora("research", "run", QUESTION, "--provider", env["PANDORA_SEARCH"], env=env)
    assert done.returncode == 0 and reason in " ".join(done.stdout.split()), done.stdout
