"""A model that writes a private fact into a query or into the question of a call: it is not sent, and the turn records the refusal."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.settings import load_settings
from tests.phases.embedded import Recorder
from tests.phases.vocabulary import vocabulary
from tests.tools.egress.conftest import NAMES, Web, serving

ANNA = user_id("anna")
TOLD = (
    "Please note that my order ORD-77120 is late.",
    "My sister has diabetes and is pregnant, what may she eat?",
    "what does anna kowalska from my office do?",
    "李小龙最近住院了，他吃什么好？",
    "น้องสาวของฉันเป็นโรคเบาหวาน กินอะไรได้บ้าง",
)
"""What the user said in earlier turns."""
QUIET = "Which dryer is quiet?"
REFUSED = "privacy: the query has words of the user's memory or earlier turns"


class Careless(Recorder):
    """The embedded runtime, but for the writer of queries, and of the question of a call where one is given."""

    def __init__(self, *queries: str, question: str = "") -> None:
        super().__init__()
        self.queries, self.question = queries, question

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        if pack.role == "query_writer":
            answer: object = {"queries": self.queries, "reason": ""}
        elif pack.role == "coordinator" and self.question:
            answer = {"tool": "internet.research", "arguments": {"question": self.question}, "reasoning": ""}
        else:
            return await super().complete(pack, timeout_s=timeout_s, on_words=on_words)
        self.packs.append(pack)
        return ModelAnswer(json.dumps(answer), "stop", Usage(), self.name, self.model(pack.layer), 1.0)


@dataclass
class Asking:
    """A store of a user who has told `TOLD`, and what the search service was asked."""

    web: Web
    settings: dict[str, str]

    def ask(self, question: str, runtime: Recorder) -> str:
        """Section 4 of the turn; `runtime` plays it, and the embedded runtime those before, which search nothing."""
        with closing(self.opened(Recorder(), PANDORA_SEARCH="")) as app:
            app.dependencies.memory.put(ANNA, MemoryEntry("location", "Lund", 0.9, None, "2026-01-04T14:30:00Z", "fact"))
            for told in TOLD:
                app.run_turn(app.start(told, user="anna", session="s1"), on_report=lambda _: None)
        with closing(self.opened(runtime)) as app:
            key = app.start(question, user="anna", session="s2")
            app.run_turn(key, on_report=lambda _: None)
            return ContextDocument.parse(app.turns.load(key).context).body(4)

    def opened(self, runtime: Recorder, **changed: str) -> App:
        return open_app(load_settings(self.settings | changed), runtime=runtime, counter=vocabulary())

    def sent(self) -> list[str]:
        paths = [path for path in self.web.paths() if path.startswith("/search")]
        return list(dict.fromkeys(parse_qs(urlsplit(path).query)["q"][0] for path in paths))


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
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
        yield Asking(
            web,
            {
                "PANDORA_ROOT": str(tmp_path / "store"),
                "PANDORA_WEB": "on",
                "PANDORA_WEB_HOSTS": str(tmp_path / "hosts.json"),
                "PANDORA_WEB_DELAY": "0",
                "PANDORA_BROWSER": "off",
                "PANDORA_SEARCH": "searxng=http://b.test/search",
            },
        )


@pytest.mark.parametrize(
    "query",
    [
        "quiet dryer Lund",
        "quiet dryer for ORD-77120",
        "quiet dryer pregnant",
        "quiet dryer diabetes",
        "quiet dryer Kowalska",
        "quiet dryer anna kowalska",
        "quiet dryer 李小龙",
        "quiet dryer โรคเบาหวาน",
    ],
)
def test_a_query_with_a_private_fact_is_not_sent_and_the_question_is(asking: Asking, query: str) -> None:
    """`Lund` is in the memory, the rest in earlier turns, also in small letters and in scripts without blanks."""
    section = asking.ask(QUIET, Careless(query))
    assert REFUSED in section and asking.sent() == [QUIET]


def test_the_other_queries_are_sent(asking: Asking) -> None:
    section = asking.ask(QUIET, Careless("quiet dryer review price", "quiet dryer Lund", "dryer quiet decibel"))
    assert REFUSED in section and asking.sent() == ["quiet dryer review price", "dryer quiet decibel"]


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("Which dryer is quiet in Lund?", "quiet dryer Lund"),
        ("Which dryer is quiet for anna kowalska?", "quiet dryer kowalska"),
        ("李小龙用的烘干机安静吗？", "烘干机 安静 李小龙"),
    ],
)
def test_what_the_question_says_is_sent(asking: Asking, question: str, query: str) -> None:
    section = asking.ask(question, Careless(query))
    assert REFUSED not in section and asking.sent() == [query]


def test_no_private_fact_reaches_the_recipes_that_write_queries(asking: Asking) -> None:
    """A model that has read the whole turn writes the question of the call."""
    runtime = Careless("quiet dryer", question="Which dryer is quiet enough for a pregnant sister with diabetes in Lund?")
    section = asking.ask(QUIET, runtime)
    packs = [pack for pack in runtime.packs if pack.role in ("strategy", "query_writer", "query_rewriter")]
    assert {pack.query for pack in packs} == {QUIET}
    assert not any(word in pack.system + pack.user for pack in packs for word in ("diabetes", "pregnant", "Lund", "kowalska"))
    assert "the user's own words were researched" in section and asking.sent() == ["quiet dryer"]
