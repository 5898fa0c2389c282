"""Turns around a runtime that answers as a test tells it, over a whole application or over stores in memory."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.turns import Turn, TurnRow
from pandora_dagster.documents.citations import cited_labels
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.settings import load_settings
from tests.fakes.model_runtimes import Reply, ScriptedRuntime
from tests.phases.light_rig import LightApp, open_light_app
from tests.phases.vocabulary import vocabulary


def plain(**values: Any) -> str:
    """A JSON answer; `reasoning` is filled in."""
    return json.dumps({"reasoning": "so", **values})


def cites_all(pack: PromptPack) -> str:
    """An answer that cites everything that was given."""
    return "Here it is" + "".join(f" [{s.label}]" for s in pack.sources) + "."


def gathers_all(pack: PromptPack) -> str:
    """Section 2 from everything that was loaded."""
    turns = [int(s.turn_id.removeprefix("turn_")) for s in pack.sources if s.turn_id]
    prior = [{"turn": n, "relevance": "high", "summary": f"said in turn {n}", "key_facts": ["a fact"]} for n in turns]
    return json.dumps({"session_preferences": {}, "prior_turns": prior, "source_references": []})


ANALYSIS = plain(
    resolved_query="the query", query_type="informational", intent="query", entities=[], reference_resolution={"status": "not_needed"}
)
PROCEED = plain(decision="PROCEED", confidence=0.9)
CLARIFY = plain(decision="CLARIFY", confidence=0.9, question="Which chair do you mean?")


def approves(pack: PromptPack) -> str:
    """The verdict on an answer whose citations were all checked."""
    checked = list(cited_labels(ContextDocument.parse(pack.document("context.md")).body(5)))
    return plain(checked_citations=checked, issues=[], decision="APPROVE", confidence=0.95)


APPROVE = approves
SUMMARY = plain(summary="They talked about a chair.", topics=["chair", "order"], intent="query", has_research=False).replace(
    '"reasoning": "so", ', ""
)
NO_CHANGE = json.dumps({"upsert": [], "delete": []})
COMPLETE = plain(action="COMPLETE", command="")


def retrieval(*turns: int, keys: tuple[str, ...] = (), confidence: float = 0.9) -> str:
    relevance = {str(n): {"relevance": "high", "reason": "named"} for n in turns}
    return plain(relevant_turns=list(turns), turn_relevance=relevance, relevant_memory_keys=list(keys), confidence=confidence)


def plan(next_step: str, **more: Any) -> str:
    return plain(next_step=next_step, confidence=0.9, tasks=[], **more)


def command(text: str = "look it up") -> str:
    return plain(action="COMMAND", command=text)


def tool(name: str, **arguments: Any) -> str:
    return plain(tool=name, arguments=arguments)


def verdict(decision: str, *issues: str, confidence: float = 0.9) -> str:
    return plain(checked_citations=[], issues=list(issues), decision=decision, confidence=confidence)


USUAL: Mapping[str, Reply] = {
    "query_analyzer": ANALYSIS,
    "reflection": PROCEED,
    "retrieval": retrieval(),
    "context_synthesis": gathers_all,
    "planner": plan("synthesis"),
    "executor": COMPLETE,
    "synthesizer": cites_all,
    "validator": APPROVE,
    "summarizer": SUMMARY,
    "fact_keeper": NO_CHANGE,
    "profile_keeper": NO_CHANGE,
    "fact_conflict": json.dumps({"reason": "so", "replaces": None}),
    "fact_expiry": json.dumps({"until": None}),
    "memory_query": json.dumps({"entries": []}),
    "forget_request": json.dumps({"entries": []}),
    "doc_search_query": json.dumps({"queries": []}),
    "argument_filler": plain(arguments={}),
    "loop_detector": json.dumps({"reason": "so", "repeats": False}),
}


def scripted_runtime() -> ScriptedRuntime:
    """A runtime that answers each role as usual until a test tells it otherwise."""
    return ScriptedRuntime(USUAL)


@dataclass
class Rig:
    """An application, its scripted runtime, and short ways to look at what a turn stored."""

    app: App | LightApp
    runtime: ScriptedRuntime

    def say(self, **by_role: Reply | list[Reply]) -> None:
        """From now on these roles answer so."""
        for role, says in by_role.items():
            self.runtime.script[role] = list(says) if isinstance(says, list) else [says]

    def start(self, query: str = "which chair?", *, user: str = "anna", session: str = "s1", mode: str = "chat") -> TurnKey:
        return self.app.start(query, user=user, session=session, mode=mode)

    def run(self, key: TurnKey) -> list[PhaseReport]:
        """Run what is left of a turn; the reports of the phases that ran."""
        reports: list[PhaseReport] = []
        self.app.run_turn(key, on_report=reports.append)
        return reports

    def ask(self, query: str = "which chair?", **where: str) -> TurnKey:
        """A whole turn, as far as it goes."""
        key = self.start(query, **where)
        self.run(key)
        return key

    def turn(self, key: TurnKey) -> Turn:
        return self.app.turns.load(key)

    def section(self, key: TurnKey, number: int) -> str:
        return ContextDocument.parse(self.turn(key).context).body(number)

    def row(self, key: TurnKey) -> TurnRow:
        return next(r for r in self.app.dependencies.index.rows(key.user) if r.number == key.number)

    def halted(self, key: TurnKey) -> Intervention:
        """The intervention at which the turn stands."""
        manifest = self.app.turns.manifest(key)
        assert manifest.state == "halted" and manifest.intervention
        return self.app.interventions.show(manifest.intervention)


def open_rig(root: Path, *, recipes: Path | None = None) -> Rig:
    """A rig of a whole application over the store `root`."""
    given = {"PANDORA_ROOT": str(root)} | ({"PANDORA_RECIPES": str(recipes)} if recipes else {})
    runtime = scripted_runtime()
    return Rig(open_app(load_settings(given), runtime=runtime, counter=vocabulary()), runtime)


def open_light_rig(**environment: str) -> Rig:
    """A rig over stores in memory; `environment`: settings by their environment variables."""
    runtime = scripted_runtime()
    return Rig(open_light_app(runtime, **environment), runtime)
