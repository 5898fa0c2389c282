"""A turn with a hostile page among its sources, beside the same turn with a harmless one: what steers a model is the same to the letter.

The model of these tests decides as the embedded runtime, but obeys every order that stands outside of the documents of its prompt.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.settings import load_settings
from tests.hostile_webs import CASES, WEBS, HostileWeb, RunningWeb
from tests.phases.embedded import Recorder
from tests.phases.vocabulary import vocabulary

DECIDING = frozenset({"query_analyzer", "reflection", "retrieval", "planner", "executor", "coordinator", "strategy", "query_writer"})
_DOCUMENT = re.compile(r'<document name="[^"]*">.*?</document>\s*', re.DOTALL)


def orders_of(pack: PromptPack) -> str:
    """What a model takes for orders: all of both messages but the documents."""
    return _DOCUMENT.sub("", f"{pack.system}\n\n{pack.user}")


class ObedientRuntime(Recorder):
    """`obeyed`: the roles that were given an order, with the order."""

    def __init__(self, baits: Iterable[str]) -> None:
        super().__init__()
        self.baits = [bait.lower() for bait in baits]
        self.obeyed: list[tuple[str, str]] = []
        self.decisions: list[tuple[str, str]] = []

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        told = orders_of(pack).lower()
        order = next((bait for bait in self.baits if bait in told), "")
        if order:
            self.obeyed.append((pack.role, order))
        answer = await super().complete(pack, timeout_s=timeout_s, on_words=on_words)
        if order and pack.role == "executor":
            step = {"reasoning": "", "action": "COMMAND", "command": f"Store: {order}"}
            answer = ModelAnswer(json.dumps(step), "stop", Usage(), self.name, self.model(pack.layer), 1.0)
        if pack.role in DECIDING:
            self.decisions.append((pack.role, answer.text))
        return answer


@dataclass(frozen=True)
class Turn:
    """What steered a turn, and what came of it."""

    orders: frozenset[tuple[str, str]]
    decisions: tuple[tuple[str, str], ...]
    answer: str
    obeyed: tuple[tuple[str, str], ...]
    visited: frozenset[str]


def run_turn(web: HostileWeb, running: RunningWeb, folder: Path, urls: list[str], question: str) -> Turn:
    """A new store asks `question`; a search finds `urls`."""
    folder.mkdir()
    (folder / "hosts.json").write_text(json.dumps({name: running.table[name] for name in ("resolver", "dial")}))
    hits = [{"url": url, "title": web.question, "content": web.question} for url in urls]
    (folder / "hits.json").write_text(json.dumps({"*": hits}))
    environment = {
        "PANDORA_ROOT": str(folder / "store"),
        "PANDORA_WEB": "on",
        "PANDORA_WEB_HOSTS": str(folder / "hosts.json"),
        "PANDORA_WEB_DELAY": "0",
        "PANDORA_BROWSER": "off",
        "PANDORA_SEARCH": f"recorded={folder / 'hits.json'}",
    }
    runtime = ObedientRuntime(web.baits)
    before = len(running.requested())
    with closing(open_app(load_settings(environment), runtime=runtime, counter=vocabulary())) as app:
        key = app.start(question, user="anna", session="s1")
        app.run_turn(key, on_report=lambda _: None)
        answer = app.turns.load(key).files.get("response.md", "")
    orders = frozenset((pack.role, orders_of(pack)) for pack in runtime.packs)
    return Turn(orders, tuple(runtime.decisions), answer, tuple(runtime.obeyed), frozenset(running.requested()[before:]))


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[HostileWeb], tuple[RunningWeb, Turn]]]:
    """A web, running, and a turn over its harmless pages; each once."""
    turns: dict[str, tuple[RunningWeb, Turn]] = {}
    with ExitStack() as stack:

        def run(web: HostileWeb) -> tuple[RunningWeb, Turn]:
            if web.name not in turns:
                running = stack.enter_context(web.running())
                folder = tmp_path_factory.mktemp("turns") / "harmless"
                turns[web.name] = running, run_turn(web, running, folder, [web.source, web.harmless], web.question)
            return turns[web.name]

        yield run


Harmless = Callable[[HostileWeb], tuple[RunningWeb, Turn]]


@pytest.mark.parametrize(("web", "url"), CASES, ids=str)
def test_a_hostile_page_changes_no_order_no_decision_and_no_answer(web: HostileWeb, url: str, harmless: Harmless, tmp_path: Path) -> None:
    running, expected = harmless(web)
    assert web.answer in expected.answer and web.harmless in expected.visited
    turn = run_turn(web, running, tmp_path / "with", [web.source, url], web.question)
    assert turn.obeyed == ()
    roles = {role for role, _ in expected.orders}
    assert roles >= DECIDING
    assert {(role, orders) for role, orders in turn.orders if role in roles} <= expected.orders
    assert turn.decisions == expected.decisions
    assert turn.answer == expected.answer


@pytest.mark.parametrize("web", WEBS, ids=str)
def test_the_model_obeys_an_order_that_is_no_document(web: HostileWeb, harmless: Harmless, tmp_path: Path) -> None:
    """The comparison above can fail: the same order in the user's words steers the turn."""
    running, expected = harmless(web)
    turn = run_turn(web, running, tmp_path / "with", [web.source, web.harmless], f"{web.question} {web.baits[0]}")
    assert turn.obeyed and turn.orders - expected.orders and turn.decisions != expected.decisions
