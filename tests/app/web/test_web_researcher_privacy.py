"""A model that writes a private fact into a query: the query is not sent, and the turn records the refusal."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.app.web.web_researcher import WebResearcher
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.settings import load_settings
from pandora_dagster.tools.internet_research import InternetResearch
from tests.phases.embedded import Recorder
from tests.phases.vocabulary import vocabulary
from tests.tools.egress.conftest import NAMES, Web, serving

ANNA = user_id("anna")


class Careless(Recorder):
    """The embedded runtime, but for the writer of queries."""

    def __init__(self, query: str) -> None:
        super().__init__()
        self.query = query

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        if pack.role != "query_writer":
            return await super().complete(pack, timeout_s=timeout_s, on_words=on_words)
        answer = json.dumps({"queries": [self.query], "reason": ""})
        return ModelAnswer(answer, "stop", Usage(), self.name, self.model(pack.layer), 1.0)


@pytest.mark.parametrize(
    ("question", "query", "sent"),
    [
        ("Which dryer is quiet?", "quiet dryer Lund", False),
        ("Which dryer is quiet in Lund?", "quiet dryer Lund", True),
        ("Which dryer is quiet?", "quiet dryer for ORD-77120", False),
        ("Which dryer is quiet?", "dryer quiet decibel", True),
    ],
)
def test_a_query_with_a_private_fact_is_not_sent(tmp_path: Path, question: str, query: str, sent: bool) -> None:
    """`Lund` is in the memory, the order in an earlier turn; what the question says itself is sent."""
    with serving(Web()) as web:
        found = json.dumps({"results": [{"url": "http://a.test/dryer", "title": "Quiet dryer", "content": ""}]}).encode()
        web.page("a.test/dryer", b"<title>Quiet dryer</title><main><h1>Quiet dryer</h1><p>It is a dryer with a drum.</p></main>")
        for host in ("a.test", "b.test"):
            web.page(f"{host}/robots.txt", b"", status=404)
        pages = dict(web.pages)

        class Searching(dict):  # type: ignore[type-arg]
            def get(self, key: str, default: object = None) -> object:
                return super().get("search" if key.startswith(("b.test/search?", "/search?")) else key, default)

        web.page("search", found, Content_Type="application/json")
        web.pages = Searching(pages | {"search": web.pages["search"]})
        dials = {address: f"127.0.0.1:{web.port}" for answers in NAMES.values() for address in answers}
        (tmp_path / "hosts.json").write_text(json.dumps({"resolver": NAMES, "dial": dials}))
        settings = load_settings(
            {
                "PANDORA_ROOT": str(tmp_path / "store"),
                "PANDORA_WEB": "on",
                "PANDORA_WEB_HOSTS": str(tmp_path / "hosts.json"),
                "PANDORA_WEB_DELAY": "0",
                "PANDORA_BROWSER": "off",
                "PANDORA_SEARCH": "searxng=http://b.test/search",
            }
        )
        with closing(open_app(settings, runtime=Careless(query), counter=vocabulary())) as app:
            tool = app.dependencies.tools["internet.research"]
            assert isinstance(tool, InternetResearch) and isinstance(tool.researcher, WebResearcher)
            app.dependencies.memory.put(ANNA, MemoryEntry("location", "Lund", 0.9, None, "2026-01-04T14:30:00Z", "fact"))
            first = app.start("Please note that my order ORD-77120 is late.", user="anna", session="s1")
            app.run_turn(first, on_report=lambda _: None)
            key = app.start(question, user="anna", session="s2")
            app.run_turn(key, on_report=lambda _: None)
            section = ContextDocument.parse(app.turns.load(key).context).body(4)
    asked = [path for path in web.paths() if path.startswith("/search")]
    assert bool(asked) is sent
    assert ("privacy: the query has words of the user's memory or earlier turns" in section) is not sent, section
    assert sent or not any("Lund" in path or "77120" in path for path in web.paths())
