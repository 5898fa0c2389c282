"""Phase 2's other sources: their headers, their strict loading, what selection leaves out, and the gates."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.documents.citations import source_references
from pandora_dagster.documents.meta import subsection_metas
from pandora_dagster.phases.gather.context_gatherer import SUPPLEMENTARY_TOKENS
from pandora_dagster.phases.gather.note_source import NOTE_HEADER_TOKENS, NOTE_TOKENS
from pandora_dagster.phases.gather.research_source import RESEARCH_TOKENS, TOP_CLAIMS
from pandora_dagster.phases.gather.visit_source import VISIT_HEADER_TOKENS, VISIT_TOKENS
from tests.phases.rig import plain, retrieval
from tests.stores.user.test_source_files import research, visit

pytestmark = pytest.mark.stored

ANNA = user_id("anna")


def chosen(*, notes=(), topic=None, visits=()):
    match = {"matched": topic is not None, "topic": topic, "reuse_recommendation": "full" if topic else "none"}
    return plain(
        relevant_turns=[],
        turn_relevance={},
        relevant_memory_keys=[],
        relevant_notes=list(notes),
        research_cache_match=match,
        webpage_cache_needed=list(visits),
        confidence=0.9,
    )


def gathered(*, notes=(), cached=None, visits=(), preferences=None):
    return json.dumps(
        {
            "session_preferences": preferences or {},
            "prior_turns": [],
            "cached_research": cached,
            "visit_data": list(visits),
            "forever_knowledge": [{"note": name, "content": content} for name, content in notes],
            "source_references": [],
        }
    )


@pytest.fixture
def sources(rig):
    """The rig's store of research and visits."""
    return rig.app.dependencies.sources


def write_note(rig, name, text):
    path = Path(rig.app.settings.root) / "users/anna/notes" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def lines(rig, name):
    return [json.loads(line) for line in rig.runtime.of("retrieval")[-1].document(name).splitlines()]


def report(rig, key, phase="gathered_context"):
    return next(p.report for p in rig.turn(key).manifest.phases if p.phase == phase)


def test_headers_of_all_sources_are_offered(rig, sources):
    """As the recipe's documents, in the formats of docs/reference/call-documents.md."""
    sources.put(ANNA, research())
    for visit_id in ("visit_abc123", "visit_def456"):
        sources.put(ANNA, visit(visit_id=visit_id))
    write_note(rig, "a/laptops.md", "---\ntags: [gear]\n---\n# Laptops I like")
    rig.ask("which laptop?")
    (topic,) = lines(rig, "research_headers")
    assert (topic["topic"], topic["quality_score"], topic["expired"], topic["visits"]) == (
        "commerce.laptop",
        0.88,
        True,
        ["visit_abc123", "visit_def456"],
    )
    assert {h["visit_id"]: h["topic"] for h in lines(rig, "visit_headers")} == dict.fromkeys(
        ("visit_abc123", "visit_def456"), "commerce.laptop"
    )
    assert lines(rig, "note_headers") == [{"note": "a/laptops.md", "title": "Laptops I like", "tags": ["gear"]}]


def test_each_kind_of_header_keeps_to_its_tokens_and_prefers_what_bears(rig, sources):
    """Many entries: the ones that share words with the query are offered, and how the others fared is reported."""
    for n in range(40):
        sources.put(ANNA, visit(visit_id=f"visit_{n}", url=f"https://example.org/page-{n}", extracted_data={"title": f"Rose {n}"}))
        write_note(rig, f"n{n}.md", f"# Rose number {n}\n\nwords")
    sources.put(ANNA, visit(visit_id="visit_lamp", url="https://example.org/lamp", extracted_data={"title": "Walnut lamp"}))
    write_note(rig, "zz_lamp.md", "# Walnut lamp")
    key = rig.ask("which walnut lamp?")
    for name, tokens in (("visit_headers", VISIT_HEADER_TOKENS), ("note_headers", NOTE_HEADER_TOKENS)):
        text = rig.runtime.of("retrieval")[-1].document(name)
        assert "lamp" in text and rig.app.dependencies.counter.count(text) <= tokens
    assert [h["note"] for h in lines(rig, "note_headers")] == ["zz_lamp.md"]
    assert sum(name.startswith("visit visit_") for name in report(rig, key, "retrieval_plan")["facts"]["headers_left_out"]) > 20


def test_a_note_that_a_matching_note_links_to_is_offered(rig):
    """A wiki link lends a part of its note's score."""
    for n in range(30):
        write_note(rig, f"n{n}.md", "nothing of it")
    write_note(rig, "lamps.md", "# Walnut lamps\n\nsee [[Suppliers/Makers|who makes them]]")
    write_note(rig, "Suppliers/makers.md", "Ann and Ben")
    rig.ask("which walnut lamp?")
    assert {h["note"] for h in lines(rig, "note_headers")} == {"lamps.md", "Suppliers/makers.md"}


def test_a_note_is_offered_with_the_passage_that_leads_to_it(rig):
    """Its header says nothing of it; of a long passage the part is shown that shares the query's words."""
    write_note(
        rig, "House.md", "# House\n\nThe roof was mended.\n\n" + "We talked about the weather. " * 30 + "The boiler is a model of 2019."
    )
    rig.ask("which model is our boiler?")
    (header,) = lines(rig, "note_headers")
    assert header["note"] == "House.md" and "The boiler is a model of 2019." in header["passage"] and len(header["passage"]) <= 240


@pytest.mark.parametrize("wall", [" ", "\n", "\n\n"])
def test_of_a_long_note_the_matching_part_is_given(rig, wall):
    """Also of one without a paragraph in it: what says nothing of the query stays out, and the compression is reported."""
    filler = wall.join(f"On day {n} we went to the lake and talked about the weather there." for n in range(900))
    write_note(rig, "Log.md", f"{filler}{wall}The boiler is a Viessmann of 2019.{wall}{filler}")
    rig.say(retrieval=chosen(notes=["Log.md"]))
    key = rig.ask("which boiler do we have?")
    text = rig.runtime.of("context_synthesis")[-1].document("forever_memory")
    assert "The boiler is a Viessmann of 2019." in text and rig.app.dependencies.counter.count(text) <= NOTE_TOKENS + 60
    assert [row["document"] for row in report(rig, key)["facts"]["compressions"]] == ["notes/Log.md"]


MISSING = {
    "a topic": (chosen(topic="travel.rome"), "research_cache_match: research_cache/travel.rome.json: not among"),
    "a match without topic": (chosen(topic=""), "matched without a topic"),
    "a visit": (chosen(visits=["visit_gone"]), "webpage_cache_needed: webpage_cache/visit_gone.json: not among"),
    "a memory key": (retrieval(keys=("unheard_of",)), "relevant_memory_keys: unheard_of: not in the memory store"),
    "a note": (chosen(notes=["../../secret.md"]), "relevant_notes: note '../../secret.md': not in"),
}


@pytest.mark.parametrize("case", MISSING)
def test_a_named_thing_that_is_missing_halts(rig, case):
    """With an intervention that says what was named where (004 section 9)."""
    plan, says = MISSING[case]
    rig.say(retrieval=plan)
    intervention = rig.halted(rig.ask())
    assert intervention.type == "missing_document" and says in intervention.message and intervention.phase == "gathered_context"


def test_research_that_names_a_page_that_is_gone_halts(rig, sources):
    """The page was part of what was found out; no silent exclusion."""
    sources.put(ANNA, research())
    sources.put(ANNA, visit())
    rig.say(retrieval=chosen(topic="commerce.laptop"))
    intervention = rig.halted(rig.ask())
    assert intervention.type == "missing_document" and "visit_def456: no such visit record" in intervention.message
    assert "pandora visit add" in rig.app.interventions.show(intervention.id).hint


@pytest.mark.parametrize("logical", ["research_cache/commerce.laptop.json", "webpage_cache/visit_abc123.json"])
def test_a_named_thing_that_is_damaged_halts_and_mended_it_goes_on(rig, sources, logical):
    """Its file is named; the turn resumes where it stopped."""
    sources.put(ANNA, research(webpage_cache=[]))
    sources.put(ANNA, visit())
    path = Path(sources.path(ANNA, logical))
    sound = path.read_text()
    path.write_text(sound[:40])
    rig.say(retrieval=chosen(topic="commerce.laptop", visits=["visit_abc123"]), context_synthesis=gathered())
    key = rig.ask()
    intervention = rig.halted(key)
    assert intervention.type == "corrupt_document" and str(path) in intervention.message
    path.write_text(sound)
    rig.run(key)
    assert rig.turn(key).manifest.state == "saved"


def test_a_broken_note_costs_a_turn_only_where_it_is_named(rig):
    """Else it is a notice of the phase."""
    write_note(rig, "broken.md", "---\n[\n---\n")
    write_note(rig, "large.md", "x" * 20_000_000)
    key = rig.ask()
    notices = report(rig, key, "retrieval_plan")["facts"]["notices"]
    assert rig.turn(key).manifest.state == "saved" and len(notices) == 2 and all("expected" in n for n in notices)
    rig.say(retrieval=chosen(notes=["broken.md"]))
    assert rig.halted(rig.ask()).type == "corrupt_document"


def test_what_was_loaded_and_not_used_is_reported(rig, sources):
    """Each by its name; what section 2 has is not among it."""
    sources.put(ANNA, research(webpage_cache=["visit_abc123"]))
    sources.put(ANNA, visit())
    write_note(rig, "laptops.md", "# Mine\n\nI own a Lenovo.")
    rig.say(
        retrieval=chosen(topic="commerce.laptop", visits=["visit_abc123"], notes=["laptops.md"]),
        context_synthesis=gathered(notes=[("laptops.md", "I own a Lenovo.")]),
    )
    assert report(rig, rig.ask())["facts"]["sources_not_used"] == ["research commerce.laptop", "visit visit_abc123"]


def test_loaded_things_reach_synthesis_under_their_headers_and_labels(rig, sources):
    """004 section 13.1's headers; each label leads to its logical id; what section 2 uses is listed."""
    sources.put(ANNA, research(webpage_cache=["visit_abc123"]))
    sources.put(ANNA, visit())
    write_note(rig, "laptops.md", "# Mine\n\nI own a Lenovo.")
    rig.say(
        retrieval=chosen(topic="commerce.laptop", visits=["visit_abc123"], notes=["laptops.md"]),
        context_synthesis=gathered(
            notes=[("laptops.md", "I own a Lenovo.")],
            cached={
                "topic": "commerce.laptop",
                "summary": "12 laptops",
                "top_results": [research().claims[0].model_dump(exclude={"evidence"})],
            },
            visits=[{"url": visit().url, "extracted": {"price": "$697.00", "specs": {"gpu": "RTX 4050"}}}],
        ),
    )
    key = rig.ask()
    pack = rig.runtime.of("context_synthesis")[-1]
    assert pack.document("cached_intelligence").startswith(
        "===== CACHED INTELLIGENCE (Phase 1) =====\n\n===== CACHED RESEARCH commerce.laptop [1]"
    )
    assert json.loads(pack.document("visit_records"))["extracted_data"] == visit().extracted_data
    assert pack.document("forever_memory").startswith(
        "===== FOREVER MEMORY (Persistent Knowledge) =====\n\n===== NOTE laptops.md [3] =====\n# Mine"
    )
    section = rig.section(key, 2)
    assert [(s.label, s.path) for s in source_references(section)] == [
        ("1", "research_cache/commerce.laptop.json"),
        ("2", "webpage_cache/visit_abc123.json"),
        ("3", "notes/laptops.md"),
    ]
    assert "| bestbuy.com/site/lenovo-loq-15 [2] | specs.gpu | RTX 4050 |" in section and "- I own a Lenovo. [3]" in section
    assert "| Lenovo LOQ 15 @ $697 [1] | 0.92 | bestbuy.com |" in section
    blocks = subsection_metas(section)
    assert list(blocks) == ["Cached Research Intelligence", "Visit Record Data", "Forever Memory Knowledge", "Context Assessment"]
    assert blocks["Visit Record Data"]["visit_count"] == 1 and report(rig, key)["gates"]["sources_linked"] is True


def test_the_best_claims_go_along_and_the_others_are_recorded(rig, sources):
    """Top-N by confidence (004 section 7.3), in the record's order."""
    claims = [{"claim": f"claim {n}", "source": "a.example", "confidence": n / 10} for n in (3, 9, 1, 8, 7, 6, 5)]
    sources.put(ANNA, research(webpage_cache=[], claims=claims))
    rig.say(retrieval=chosen(topic="commerce.laptop"), context_synthesis=gathered())
    key = rig.ask()
    given = rig.runtime.of("context_synthesis")[-1].document("cached_intelligence")
    assert [r["claim"] for r in json.loads(given.splitlines()[-1])["top_results"]] == [f"claim {n}" for n in (9, 8, 7, 6, 5)]
    assert TOP_CLAIMS == 5 and report(rig, key)["facts"]["left_out"] == 2


def test_large_things_keep_to_their_limits_and_none_is_cut(rig, sources):
    """Whole fields and paragraphs, or a sound compression; all together within what sources may take; the rest is recorded."""
    sources.put(ANNA, research(webpage_cache=[], summary="We compared desks. " * 300))
    for n in range(4):
        data = {"title": f"Desk {n}", **{f"field_{i}": f"desk value {n} {i} " + "oak " * 40 for i in range(30)}}
        sources.put(ANNA, visit(visit_id=f"visit_{n}", extracted_data=data))
    write_note(rig, "long.md", "\n\n".join(f"Paragraph {n} tells of oak desks number {n} at length." for n in range(600)))
    rig.say(
        retrieval=chosen(topic="commerce.laptop", visits=[f"visit_{n}" for n in range(4)], notes=["long.md"]), context_synthesis=gathered()
    )
    rig.app = replace(rig.app, dependencies=replace(rig.app.dependencies, summarizer=None))
    key = rig.ask("which oak desk?")
    pack, count = rig.runtime.of("context_synthesis")[-1], rig.app.dependencies.counter.count
    total = 0
    for name, limit in (("cached_intelligence", RESEARCH_TOKENS), ("visit_records", VISIT_TOKENS), ("forever_memory", NOTE_TOKENS)):
        for item in pack.document(name).splitlines() if name == "visit_records" else [pack.document(name)]:
            total += count(item)
            assert count(item) <= limit + 60 or name == "cached_intelligence"
    for line in pack.document("visit_records").splitlines():
        fields = json.loads(line)["extracted_data"]
        assert all(value.endswith("oak ") for name, value in fields.items() if name != "title") and "title" in fields
    assert total <= SUPPLEMENTARY_TOKENS + 100 and report(rig, key)["facts"]["left_out"] > 10


def test_what_leads_to_no_loaded_source_is_flagged(rig, sources):
    """004 section 10: notes, pages, research, results and preferences that SYNTHESIS was not given; the gate warns."""
    sources.put(ANNA, research(webpage_cache=[]))
    rig.say(
        retrieval=chosen(topic="commerce.laptop"),
        context_synthesis=gathered(
            notes=[("invented.md", "it is so")],
            visits=[{"url": "https://nowhere.example/", "extracted": {"price": "$1"}}],
            cached={
                "topic": "commerce.laptop",
                "top_results": [{"claim": "x", "source": "bestbuy.com"}, {"claim": "y", "source": "rumour"}],
            },
            preferences={"seat": "aisle"},
        ),
    )
    key = rig.ask()
    section = rig.section(key, 2)
    assert section.count("(unlinked)") == 4 and "| x [1] | bestbuy.com |" in section and "| y [1] | rumour (unlinked) |" in section
    assert len(subsection_metas(section)["Context Assessment"]["gaps_identified"]) == 6  # four flags, the research is expired, the query
    assert (
        report(rig, key)["gates"] | {"sources_linked": False, "caches_fresh": False, "relevant_source": True} == report(rig, key)["gates"]
    )


def test_nothing_relevant_found_warns_and_goes_on(rig):
    """004 section 10's last row."""
    key = rig.ask()
    assert report(rig, key)["gates"]["relevant_source"] is False and rig.turn(key).manifest.state == "saved"


def test_section_2_gives_sources_up_whole_where_it_has_no_room(rig, sources):
    """Notes first, then pages, then results; it says how many."""
    for n in range(9):
        write_note(rig, f"n{n}.md", "x")
    words = "many words about the matter " * 60
    rig.say(
        retrieval=chosen(notes=[f"n{n}.md" for n in range(9)]),
        context_synthesis=gathered(notes=[(f"n{n}.md", f"{n} {words}") for n in range(9)]),
    )
    section = rig.section(rig.ask(), 2)
    assert rig.app.dependencies.counter.count(section) <= 2_000
    assert (
        subsection_metas(section)["Context Assessment"]["left_out"] + subsection_metas(section)["Forever Memory Knowledge"]["note_count"]
        == 9
    )


def test_another_user_s_sources_are_missing(rig, sources):
    """A plan that names them HALTs as for a thing that never was."""
    sources.put(user_id("ben"), visit())
    rig.say(retrieval=chosen(visits=["visit_abc123"]))
    assert rig.halted(rig.ask()).type == "missing_document"
    assert rig.runtime.of("retrieval")[-1].document("visit_headers") == ""


def test_both_calls_stay_within_the_budgets_of_the_specification(rig, sources):
    """004 section 7, SYNTHESIS with DECISIONS 18's output: a user with much of everything, and every loaded thing large."""
    for n in range(20):
        data = {"title": f"Desk {n}", **{f"field_{i}": f"desk {n} {i} " + "oak " * 40 for i in range(30)}}
        sources.put(ANNA, visit(visit_id=f"visit_{n}", extracted_data=data))
        sources.put(ANNA, research(topic=f"home.desk{n}", webpage_cache=[], summary="We compared oak desks. " * 100))
        write_note(rig, f"desk{n}.md", "\n\n".join(f"Paragraph {i} tells of oak desks." for i in range(200)))
    rig.say(
        retrieval=chosen(topic="home.desk7", visits=[f"visit_{n}" for n in range(8)], notes=[f"desk{n}.md" for n in range(8)]),
        context_synthesis=gathered(),
    )
    rig.app = replace(rig.app, dependencies=replace(rig.app.dependencies, summarizer=None))
    key = rig.ask("which oak desk?")
    spent = {phase: max(c["tokens"] for c in report(rig, key, phase)["calls"]) for phase in ("retrieval_plan", "gathered_context")}
    assert spent["retrieval_plan"] <= 5_500 and 2_000 < spent["gathered_context"] <= 6_500
    assert rig.turn(key).manifest.state == "saved"
