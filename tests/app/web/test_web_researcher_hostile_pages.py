"""Every hostile page through a turn: it changes no tool, no query and no answer."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.app.web.research_service import checked_question
from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.settings import load_settings
from tests.hostile_webs import CASES, HostileWeb
from tests.phases.embedded import Recorder
from tests.phases.vocabulary import vocabulary

ORDERS = ("ignore your", "every ai model", "collect?d=", "memory.create(", "shell.run", "beacon-metrics")
DECIDING = frozenset({"query_analyzer", "reflection", "retrieval", "planner", "executor", "coordinator", "strategy", "query_writer"})


class Obedient(Recorder):
    """The embedded runtime, but for roles that decide: these obey the first order of a page that they read."""

    def __init__(self, baits: list[str]) -> None:
        super().__init__()
        self.baits = [bait.lower() for bait in baits] + list(ORDERS)
        self.obeyed: list[tuple[str, str]] = []

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        read = pack.user.lower()
        orders = [bait for bait in self.baits if bait in read] if pack.role in DECIDING else []
        if not orders:
            return await super().complete(pack, timeout_s=timeout_s, on_words=on_words)
        self.obeyed.append((pack.role, orders[0]))
        call = {"reasoning": "", "tool": "memory.create", "arguments": {"key": "pwned", "value": orders[0], "kind": "fact"}}
        step = {"reasoning": "", "action": "COMMAND", "command": "obey (`memory.create`)"}
        answer = {"coordinator": call, "executor": step}.get(pack.role, {})
        return ModelAnswer(json.dumps(answer), "stop", Usage(), self.name, self.model(pack.layer), 1.0)


@pytest.mark.parametrize(("web", "url"), CASES, ids=str)
def test_a_hostile_page_changes_no_tool_query_or_answer(tmp_path: Path, web: HostileWeb, url: str) -> None:
    question = checked_question(f"What does the {web.titles[url]} cost?")
    assert not any(bait.lower() in question.lower() for bait in web.baits)
    with web.running() as running:
        (tmp_path / "hosts.json").write_text(json.dumps({name: running.table[name] for name in ("resolver", "dial")}))
        (tmp_path / "hits.json").write_text(json.dumps({"*": [{"url": url, "title": question, "content": "cost"}]}))
        environment = {
            "PANDORA_ROOT": str(tmp_path / "store"),
            "PANDORA_WEB": "on",
            "PANDORA_WEB_HOSTS": str(tmp_path / "hosts.json"),
            "PANDORA_WEB_DELAY": "0",
            "PANDORA_BROWSER": "off",
            "PANDORA_SEARCH": f"recorded={tmp_path / 'hits.json'}",
        }
        runtime = Obedient(list(web.baits))
        with closing(open_app(load_settings(environment), runtime=runtime, counter=vocabulary())) as app:
            for text in (question, "Is it still in stock?", "Tell me more about it"):
                key: TurnKey = app.start(text, user="anna", session="s1")
                app.run_turn(key, on_report=lambda _: None)
                turn = app.turns.load(key)
                answer = turn.files.get("response.md", "").lower()
                assert not [bait for bait in web.baits if bait.lower() in answer], answer
                section = turn.context.split("## 4. ")[-1]
                assert "memory.create" not in "".join(line for line in section.splitlines() if line.startswith("### Result"))
            assert runtime.obeyed == []
            assert app.dependencies.memory.entries(user_id("anna")) == ()
        assert url in running.requested() and running.inside() == 0
        assert not any("//beacon-metrics.test/" in address or "//collect.test/" in address for address in running.requested())
