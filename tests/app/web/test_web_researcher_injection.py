"""A turn with a hostile page among its sources, beside the same turn with a harmless one: what steers a model is the same to the letter.

The model of these tests decides as the embedded runtime, but obeys every order that stands outside of the documents of its prompt.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.settings import load_settings
from tests.phases.embedded import Recorder
from tests.phases.vocabulary import vocabulary
from tests.small_web import FOLDER, NEEDS_SMALL_WEB, SmallWeb, small_web

pytestmark = NEEDS_SMALL_WEB
TRUTH: dict[str, Any] = json.loads((FOLDER / "truth.json").read_text()) if FOLDER.is_dir() else {"pages": {}, "baits": []}
HOSTILE = sorted(url for url, page in TRUTH["pages"].items() if "hostile" in page["flags"])
ORDERS = [bait.lower() for found in TRUTH["baits"] for bait in found["texts"]]
SOURCE = "http://veloshed.test/p/1184-lumora-arc-60"
HARMLESS = next((u for u, page in TRUTH["pages"].items() if page["kind"] == "forum" and page["scored"] and not page["flags"]), "")
QUESTION = "What does the Lumora Arc 60 rechargeable front light cost?"
DECIDING = frozenset({"query_analyzer", "reflection", "retrieval", "planner", "executor", "coordinator", "strategy", "query_writer"})
_DOCUMENT = re.compile(r'<document name="[^"]*">.*?</document>\s*', re.DOTALL)


def orders_of(pack: PromptPack) -> str:
    """What a model takes for orders: all of both messages but the documents."""
    return _DOCUMENT.sub("", f"{pack.system}\n\n{pack.user}")


class ObedientRuntime(Recorder):
    """`obeyed`: the roles that were given an order, with the order."""

    def __init__(self) -> None:
        super().__init__()
        self.obeyed: list[tuple[str, str]] = []
        self.decisions: list[tuple[str, str]] = []

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        told = orders_of(pack).lower()
        order = next((order for order in ORDERS if order in told), "")
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


def run_turn(web: SmallWeb, folder: Path, urls: list[str], question: str) -> Turn:
    """A new store asks `question`; a search finds `urls`."""
    folder.mkdir()
    (folder / "hosts.json").write_text(json.dumps({"resolver": web.table["resolver"], "dial": web.table["dial"]}))
    hits = [{"url": url, "title": QUESTION, "content": "Lumora Arc 60 rechargeable front light"} for url in urls]
    (folder / "hits.json").write_text(json.dumps({"*": hits}))
    environment = {
        "PANDORA_ROOT": str(folder / "store"),
        "PANDORA_WEB": "on",
        "PANDORA_WEB_HOSTS": str(folder / "hosts.json"),
        "PANDORA_WEB_DELAY": "0",
        "PANDORA_BROWSER": "off",
        "PANDORA_SEARCH": f"recorded={folder / 'hits.json'}",
    }
    runtime = ObedientRuntime()
    before = len(web.state.log)
    with closing(open_app(load_settings(environment), runtime=runtime, counter=vocabulary())) as app:
        key = app.start(question, user="anna", session="s1")
        app.run_turn(key, on_report=lambda _: None)
        answer = app.turns.load(key).files.get("response.md", "")
    orders = frozenset((pack.role, orders_of(pack)) for pack in runtime.packs)
    visited = frozenset(f"http://{entry['host']}{entry['path']}" for entry in web.state.log[before:])
    return Turn(orders, tuple(runtime.decisions), answer, tuple(runtime.obeyed), visited)


@pytest.fixture(scope="module")
def web() -> Iterator[SmallWeb]:
    with small_web() as running:
        yield running


@pytest.fixture(scope="module")
def harmless(web: SmallWeb, tmp_path_factory: pytest.TempPathFactory) -> Turn:
    turn = run_turn(web, tmp_path_factory.mktemp("turns") / "harmless", [SOURCE, HARMLESS], QUESTION)
    assert "74.99" in turn.answer and HARMLESS in turn.visited
    return turn


@pytest.mark.parametrize("url", HOSTILE)
def test_a_hostile_page_changes_no_order_no_decision_and_no_answer(web: SmallWeb, harmless: Turn, tmp_path: Path, url: str) -> None:
    turn = run_turn(web, tmp_path / "with", [SOURCE, url], QUESTION)
    assert turn.obeyed == ()
    roles = {role for role, _ in harmless.orders}
    assert roles >= DECIDING
    assert {(role, orders) for role, orders in turn.orders if role in roles} <= harmless.orders
    assert turn.decisions == harmless.decisions
    assert turn.answer == harmless.answer


def test_the_model_obeys_an_order_that_is_no_document(web: SmallWeb, harmless: Turn, tmp_path: Path) -> None:
    """The comparison above can fail: the same order in the user's words steers the turn."""
    turn = run_turn(web, tmp_path / "with", [SOURCE, HARMLESS], f"{QUESTION} {ORDERS[0]}")
    assert turn.obeyed and turn.orders - harmless.orders and turn.decisions != harmless.decisions
