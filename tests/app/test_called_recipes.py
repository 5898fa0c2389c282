"""Every shipped recipe is called by production code: by turns, research, reading, compression, archival and administration.

What counts is the recipe of a prompt pack that reaches a runtime, and of a compression that is recorded, not what a table names.
"""

import asyncio
import json
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.app.recipe_admin import called_recipes, open_recipe_admin, propose_lessons
from pandora_dagster.app.web.screenshot_reader import open_screenshot_reader
from pandora_dagster.compression.content_detection import detect_content_type
from pandora_dagster.contracts.compression_results import CompressionInput
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.model_calls import CallSite, PromptPack
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.contracts.web.page_doc import PageDoc, PageType, Zone, ZoneKind
from pandora_dagster.contracts.web.research_depth import Depth
from pandora_dagster.errors import FetchFailedError
from pandora_dagster.governance.recipe_failures import Failure, group_failures
from pandora_dagster.phases.steps.session_facts import give_consent
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.research.research_loop import RunLimits
from pandora_dagster.settings import load_settings
from tests.app.test_compression_service import TEXT
from tests.app.web.test_screenshot_reader import READ, SeeingServer, picture_page
from tests.archive.archived_store import archived
from tests.archive.level_store import levels, run_levels
from tests.fakes.model_runtimes import ScriptedRuntime
from tests.fakes.pictures import png
from tests.phases.embedded import Recorder
from tests.phases.rig import COMPLETE, command, open_rig, plain, plan, tool
from tests.phases.steps.test_conversation_summary import asked
from tests.phases.steps.test_session_facts import diff
from tests.phases.steps.test_statement_support import FACT, meaning
from tests.phases.steps.test_statement_support import ask as ask_about_a_statement
from tests.phases.vocabulary import vocabulary
from tests.research.research_pages import page
from tests.research.research_runs import RoleRuntime, Script, research

ANNA = user_id("anna")
QUESTION = "How much does the Vela 30 weigh?"
WEIGHT = "The Vela 30 has a weight of 138 g."
_NAMES = {"section_2_whole.md", "research.md", "page_doc.json", "tool_result_1.md", "turn_000001.md", "context.md"}
"""Documents as the program names them, one for each content type."""


def recipes_of(packs: Iterable[PromptPack]) -> set[str]:
    """`{category}/{name}` of the recipes of packs, which have their names."""
    loader = open_recipes()
    return {loader.path_of(name) for name in {pack.recipe for pack in packs}}


def lamp(host: str, *texts: str, page_type: PageType = PageType.PRODUCT, title: str = "Vela 30", **fields: str) -> PageDoc:
    return page(f"http://{host}.test/vela-30", title, *(texts or (WEIGHT,)), page_type=page_type, **fields)


def of_research(_: Path) -> set[str]:
    """Deep research over a page of each type, each second reading, and what is needed where nothing answers."""

    def doubtful(look_for: str) -> Callable[[PromptPack], Any]:
        return lambda _: {"reason": "", "decision": "retry", "look_for": look_for}

    weak = {"about_subject": True, "claims": [{"unit": 1, "value": "138 g", "need": 1, "worth": 0.2}]}
    packs: list[PromptPack] = []
    links = tuple(f"http://a.test/vela?page={number}" for number in (1, 2, 3))
    gone = {link: FetchFailedError("gone") for link in links[1:]}

    def run(pages: Iterable[PageDoc], script: Script, question: str = QUESTION, depth: Depth = Depth.DEEP) -> None:
        runtime = RoleRuntime(script=script)
        research(question, pages, runtime=runtime, limits=RunLimits(8, 60, depth), faults=gone)
        packs.extend(runtime.packs)

    types = [kind for kind in PageType if kind not in (PageType.LOGIN, PageType.CAPTCHA, PageType.ERROR, PageType.CONSENT)]
    run([lamp(kind.value, f"{WEIGHT} It is {kind.value}.", page_type=kind) for kind in types[:6]], {})
    run([lamp(kind.value, f"{WEIGHT} It is {kind.value}.", page_type=kind) for kind in types[6:]], {})
    for look_for in ("anything", "price", "specification", "availability", "review", "date"):
        run([lamp("a")], {"product_reader": lambda _: weak, "extraction_validator": doubtful(look_for)})
    low = Zone(kind=ZoneKind.MAIN_TEXT, text="It is blue.", confidence=0.3)
    odd = lamp("a", title="Work with us").model_copy(update={"zones": (*lamp("a").zones, low), "final_url": "http://a.test/jobs"})
    run([odd], {})
    listed = page(links[0], "Vela 30", WEIGHT, page_type=PageType.LIST).model_copy(update={"links": links})
    run([listed], {}, depth=Depth.STANDARD)
    both = [lamp("a", date="2021-01-01"), lamp("b", "The Vela 30 has a weight of 142 g.", date="2021-01-01")]
    run(both, {"claim_merger": lambda _: {"answers": [{"claims": [1]}, {"claims": [2]}], "reason": ""}})
    many = [lamp(host, f"The lamp of {host}.") for host in "abcdefghij"]
    choice = [{"number": number, "because": "", "worth": 0.5} for number in range(1, 11)]
    for question in (QUESTION, "What does the Vela 30 cost?"):
        run(many, {"result_selector": lambda _: {"visit": choice}}, question, Depth.STANDARD)
    run([page("http://lampshop.test/members", "Sign in", "Members see it.", page_type=PageType.LOGIN)], {}, "What is the deal at Lampshop?")
    return recipes_of(packs)


def of_turns(folder: Path) -> set[str]:
    """Turns of both modes, with tools that are judged, a long session, and facts that a user consented to keep."""
    with closing((rig := open_rig(folder / "store")).app):
        memory = rig.app.dependencies.memory
        memory.put(ANNA, MemoryEntry("place", "window", 0.9, None, "2026-01-04T14:30:00Z"))
        give_consent(rig.app.dependencies, ANNA)
        for session in range(3):  # over the fifty facts that a profile keeps
            facts = [f"My thing number {session}-{number} is here." for number in range(17)]
            rig.say(fact_keeper=diff(*facts))
            rig.ask(" ".join(facts), session=f"facts{session}")
        rig.say(fact_keeper=diff())
        for mode in ("chat", "code"):
            rig.ask(mode=mode, session=mode)
            rig.say(planner=plan("coordinator"), executor=[command(), COMPLETE])
            rig.say(coordinator=tool("memory.create", key="Seat", value="aisle"))
            rig.say(argument_filler=plain(arguments={"key": "seat", "value": "aisle", "kind": "fact"}))
            rig.ask("I sit at the aisle until Friday.", mode=mode, session=mode)
            rig.say(planner=plan("synthesis"))
        rig.say(planner=plan("coordinator"), executor=[command(), command(), command(), COMPLETE])
        rig.say(coordinator=[tool("memory.query", query=text) for text in ("sofa price", "price sofa", "price of the sofa")])
        rig.ask()
        for call in (tool("memory.forget", query="where I sit"), tool("doc.search", query="xyzzy")):
            rig.say(planner=plan("coordinator"), executor=[command(), COMPLETE], coordinator=call)
            rig.ask("Forget where I sit.")
        rig.say(planner=plan("synthesis"))
        ask_about_a_statement(rig, "Ada paid for the ordered desk Lofta 140 [1].", f"{FACT} [1]", judged=[meaning("changed")])
        return recipes_of(rig.runtime.packs)


def of_embedded_turns(folder: Path) -> set[str]:
    """A session long enough for its summary, archived with narrative and digest."""
    runtime = Recorder()
    with closing(open_app(load_settings({"PANDORA_ROOT": str(folder / "store")}), runtime=runtime, counter=vocabulary())) as app:
        app.transfer.import_example()
        archived(app)
        run_levels(levels(app))
        asked(app, "Please note: the rug must cost at most 50 euros.")
        return recipes_of(runtime.packs)


def of_compression(folder: Path) -> set[str]:
    """Sections of each kind that go over their budget."""
    with closing(open_app(load_settings({"PANDORA_ROOT": str(folder / "store")}), counter=vocabulary())) as app:
        for name in sorted(_NAMES):
            content = CompressionInput(TEXT, name, detect_content_type(name, TEXT))
            assert app.dependencies.summarizer is not None
            asyncio.run(app.dependencies.summarizer.fit_section(2, content, site=CallSite("tool_results", "anna")))
        app.calls.index.index_files(app.calls.files.paths("anna", report=pytest.fail))
        return {app.recipes.path_of(record.recipe) for record in app.calls.index.records()}


def of_pictures(folder: Path) -> set[str]:
    server = SeeingServer(READ)
    with closing(open_app(load_settings({"PANDORA_ROOT": str(folder / "store")}), runtime=server)) as app:
        app.run(open_screenshot_reader(app).read(picture_page(), png(280, 140), CallSite("visit", ANNA)))
    return recipes_of(server.packs)


def of_administration(folder: Path) -> set[str]:
    settings = load_settings({"PANDORA_ROOT": str(folder / "store")})
    runtime = ScriptedRuntime({"failure_lesson": json.dumps({"lessons": []})})
    failed = group_failures([Failure("synthesizer_chat", "v1", "corrected", "2026-01-01", message="429 euros, not 389")])
    propose_lessons(settings, open_recipe_admin(settings), "pipeline/phase5_synthesizer_chat", failed, runtime=runtime)
    return recipes_of(runtime.packs)


WAYS = (of_research, of_turns, of_embedded_turns, of_compression, of_pictures, of_administration)


@pytest.mark.stored
def test_every_shipped_recipe_is_called_on_a_path_that_this_walks(tmp_path: Path) -> None:
    called = {way.__name__: way(tmp_path / way.__name__) for way in WAYS}
    loader = open_recipes()
    assert set(loader.names()) - set().union(*called.values()) == set()
    assert set().union(*called.values()) <= set(called_recipes(loader))
