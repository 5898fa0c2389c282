"""What RETRIEVAL is offered and SYNTHESIS is given where there is more than fits: order, marks, links, thresholds."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.user.sources import Provenance
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from tests.governance.recipe_copies import copied_without_evidence
from tests.phases.gather.test_context_gatherer import gathered
from tests.phases.rig import ANALYSIS, SUMMARY, Rig, open_rig, plain
from tests.stores.user.test_source_files import research, visit

ANNA = user_id("anna")
WORDS = "Oak desks were compared for the long office wall. " * 40


def chosen(turns=(), **more):
    relevance = {str(n): {"relevance": how, "reason": "named"} for n, how in turns}
    match = {"matched": True, "topic": "commerce.laptop", "reuse_recommendation": "full"}
    others = {"relevant_memory_keys": [], "relevant_notes": [], "webpage_cache_needed": [], "confidence": 0.9}
    named = [n for n, _ in turns]
    return plain(relevant_turns=named, turn_relevance=relevance, research_cache_match=match, **{**others, **more})


def room(tmp_path, tokens):
    """A rig whose SYNTHESIS may read so many tokens, and that never compresses; scripted answers need no source."""
    copied_without_evidence(tmp_path)
    recipe = tmp_path / "recipes/pipeline/phase2_synthesis.yaml"
    recipe.write_text(recipe.read_text().replace("  input: 3800\n", f"  input: {tokens}\n"))
    made = open_rig(tmp_path / "store", recipes=tmp_path)
    return Rig(replace(made.app, dependencies=replace(made.app.dependencies, summarizer=None)), made.runtime)


ORDER = ("memory", "research", "visit", "note", "near", "far")
"""Memory before research, pages, notes, turns of high and turns of low relevance (004 section 7.3)."""


@pytest.mark.parametrize("kept", [2, 3, 4, 5, 6])
def test_what_has_no_room_goes_in_the_order_of_its_worth(tmp_path, kept):
    """Five things of about the same size, and room for some of them: the pack holds the first of the order, whatever else is there."""
    made = room(tmp_path, 300 + 480 * (kept - 1))
    app = made.app
    app.dependencies.memory.put(ANNA, MemoryEntry("desk", "memory says oak", 0.9, 1, "2026-01-04T14:30:00Z"))
    app.dependencies.sources.put(ANNA, research(webpage_cache=[], claims=[], summary=f"research {WORDS}"))
    app.dependencies.sources.put(ANNA, visit(extracted_data={"title": f"visit {WORDS}"}))
    folder = app.settings.root / "users/anna/notes"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "desk.md").write_text(f"note {WORDS}")
    for name in ("far", "near"):
        made.say(synthesizer=f"{name} {WORDS}")
        made.ask(name, session=name)
    memory = ["desk"]
    plan = chosen(((1, "low"), (2, "high")), relevant_memory_keys=memory, relevant_notes=["desk.md"], webpage_cache_needed=["visit_abc123"])
    made.say(retrieval=plan, context_synthesis=gathered())
    made.ask("which desk?", session="new")
    pack = made.runtime.of("context_synthesis")[-1].user
    assert tuple(name for name in ORDER if f"{name} {'says' if name == 'memory' else 'Oak'}" in pack) == ORDER[:kept]
    app.close()


def test_research_past_its_time_is_marked_where_it_is_read(rig):
    """SYNTHESIS sees `stale`; what is still within its time bears no such mark."""
    now = rig.app.dependencies.clock()
    for life, marked in ((-1, True), (5, False)):
        times = {"created_at": (now - timedelta(hours=10 - life)).isoformat(), "expires_at": (now + timedelta(hours=life)).isoformat()}
        rig.app.dependencies.sources.put(ANNA, research(webpage_cache=[], cache_key=f"of {life}", **times))
        rig.say(retrieval=chosen(), context_synthesis=gathered())
        rig.ask()
        result = json.loads(rig.runtime.of("context_synthesis")[-1].document("cached_intelligence").splitlines()[-1])
        assert result.get("stale", False) is marked


def headers(rig):
    return [json.loads(line)["visit_id"] for line in rig.runtime.of("retrieval")[-1].document("visit_headers").splitlines()]


@pytest.mark.parametrize("linked_by", ["turn", "research"])
def test_pages_of_the_turn_that_is_referred_to_are_offered_among_many(rig, linked_by):
    """004 section 6.2: by the turn that visited them or by the research of that turn; without a reference they have no room."""
    rig.say(summarizer=SUMMARY.replace('"has_research": false', '"has_research": true, "research_topic": "commerce.laptop"'))
    first = rig.ask("find laptops", session="old")
    added = Provenance(added_at="2026-01-04T14:30:00Z", by="a test", source_turn=first.number if linked_by == "turn" else None)
    for n in range(40):
        rig.app.dependencies.sources.put(
            ANNA, visit(visit_id=f"visit_{n}", url=f"https://shop.example/{n}", extracted_data={"title": "Page"})
        )
    wanted = visit(visit_id="visit_zz", url="https://shop.example/zz", visited_at="2025-01-01T00:00:00Z", extracted_data={"title": "Page"})
    rig.app.dependencies.sources.put(ANNA, wanted.model_copy(update={"provenance": added}))
    rig.app.dependencies.sources.put(ANNA, research(webpage_cache=["visit_zz"] if linked_by == "research" else []))
    rig.ask("which one was it?", session="new")
    assert "visit_zz" not in headers(rig)
    refers = {**json.loads(ANALYSIS), "content_reference": {"title": "the thing", "source_turn": first.number}}
    rig.say(query_analyzer=json.dumps(refers))
    rig.ask("which one was it?", session="new")
    assert "visit_zz" in headers(rig)
