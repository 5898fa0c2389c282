"""Phases 5 and 6: the answer, its citations, and the bounded loop of revisions."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pandora_dagster.phases.flow.phase_table import recipe_documents
from pandora_dagster.phases.steps.answer_synthesis import MAX_REVISIONS
from tests.execution.call.test_streaming import Listener
from tests.phases.rig import APPROVE, Rig, cites_all, open_rig, plain, retrieval, verdict

REPOSITORY = Path(__file__).parents[3]


def test_an_approved_answer_stands_in_section_5_and_response_md(rig):
    """What the user sees, verbatim; section 6 says APPROVE."""
    rig.say(synthesizer="# Hello\n\nThank you.")
    key = rig.ask()
    assert rig.section(key, 5) == "# Hello\n\nThank you." and rig.turn(key).files["response.md"] == "# Hello\n\nThank you.\n"
    assert rig.section(key, 6).startswith("**Decision:** APPROVE\n**Confidence:** 0.95\n**Revisions:** 0")


def test_an_answer_with_a_section_heading_stays_text(rig):
    """A heading in an answer does not become section 6."""
    rig.say(synthesizer="## 6. Validation\n\nforged?")
    key = rig.ask()
    assert rig.section(key, 5) == "## 6. Validation\n\nforged?" and "forged" not in rig.section(key, 6)


def test_a_revised_answer_replaces_the_first(rig):
    """REVISE tells the synthesizer its issues; the approved words stand in section 5, all rounds in validation.json."""
    rig.say(synthesizer=["first", "second"], validator=[verdict("REVISE", "name the price"), APPROVE])
    key = rig.ask()
    assert rig.section(key, 5) == "second" and rig.turn(key).files["response.md"] == "second\n"
    assert "**Revisions:** 1" in rig.section(key, 6)
    rounds = json.loads(rig.turn(key).files["validation.json"])["rounds"]
    assert [r["decision"] for r in rounds] == ["REVISE", "APPROVE"]
    assert "second" in rig.runtime.of("validator")[1].document("context.md")


def test_who_listens_hears_that_a_draft_is_replaced(rig):
    """Words while they come; the first draft is withdrawn with the validator's issues before the second one begins."""
    listener = Listener()
    rig.say(synthesizer=["the first", "the second one"], validator=[verdict("REVISE", "name the price"), APPROVE])
    key = rig.start()
    rig.app.with_listener(listener).run_turn(key, on_report=lambda _: None)
    assert listener.pieces == ["the", " first", None, "the", " second", " one"] and listener.reasons == ["name the price"]
    assert listener.shown == rig.section(key, 5)


def test_a_rejected_answer_is_withdrawn(rig):
    """A turn that HALTs at its validation leaves nothing told, and nobody hears of its other calls."""
    listener = Listener()
    rig.say(validator=verdict("FAIL", "all wrong"))
    rig.app.with_listener(listener).run_turn(rig.start(), on_report=lambda _: None)
    assert listener.pieces[-1] is None and listener.reasons == ["all wrong"] and listener.pieces[:3] == ["Here", " it", " is."]


def test_the_synthesizer_is_reported_the_issues(rig):
    """The issues of a REVISE reach the pack of the next writing."""
    rig.say(validator=[verdict("REVISE", "name the price"), APPROVE])
    rig.ask()
    assert "name the price" in rig.runtime.of("synthesizer")[1].user


def test_revisions_are_bounded(rig):
    """After the last REVISE the turn HALTs with its issues; the first answer stays on the disk."""
    rig.say(validator=verdict("REVISE", "still no price"))
    key = rig.ask()
    halted = rig.halted(key)
    assert (halted.type, halted.phase) == ("missing_evidence", "validation") and "still no price" in halted.message
    assert f"REVISE after {MAX_REVISIONS + 1} rounds" in halted.message and halted.call_id and halted.answer_ref
    assert rig.runtime.calls()["synthesizer"] == MAX_REVISIONS + 1
    assert rig.section(key, 5) == "Here it is." and rig.section(key, 6) == ""


def test_a_rejected_answer_leaves_its_rounds_and_drafts(rig):
    """validation.json holds every round with the draft it judged; resumed to the end it holds the last run's rounds."""
    rig.say(validator=verdict("REVISE", "still no price"), synthesizer=["first", "second", "third"])
    key = rig.ask()
    kept = json.loads(rig.turn(key).files["validation.json"])
    assert kept["drafts"] == ["first", "second", "third"] and [r["decision"] for r in kept["rounds"]] == ["REVISE"] * 3
    assert "validation.json" in rig.halted(key).hint and rig.section(key, 5) == "first"
    rig.say(validator=APPROVE)
    rig.run(key)
    assert [r["decision"] for r in json.loads(rig.turn(key).files["validation.json"])["rounds"]] == ["APPROVE"]
    assert rig.turn(key).manifest.state == "saved" and rig.app.indexes.verify() == ()


def test_a_failed_validation_halts_and_can_be_resumed(rig):
    """FAIL is final for the run; resumed, only validation and what follows run."""
    rig.say(validator=verdict("FAIL", "made up"))
    key = rig.ask()
    assert "FAIL after 1 round: made up" in rig.halted(key).message
    rig.say(validator=APPROVE)
    rig.runtime.packs.clear()
    rig.run(key)
    assert [p.role for p in rig.runtime.packs] == ["validator", "summarizer"] and rig.turn(key).manifest.state == "saved"


def test_an_unsure_validation_halts_nothing(rig):
    """A confidence that a model states about itself never halts a turn alone."""
    rig.say(validator=verdict("APPROVE", confidence=0.4))
    assert rig.turn(rig.ask()).manifest.state == "saved"


def test_an_approval_with_issues_is_a_revision(rig):
    """An APPROVE that names an issue does not save the answer."""
    rig.say(validator=verdict("APPROVE", "the price is missing"))
    assert "REVISE" in rig.halted(rig.ask()).message


def test_an_unchecked_citation_is_a_revision(rig):
    """Every citation of section 5 is among `checked_citations`; the issue names the one that is not."""
    first = rig.ask()
    rig.say(retrieval=retrieval(first.number), synthesizer=cites_all, validator=verdict("APPROVE"))
    assert "citations not checked: [1]" in rig.halted(rig.ask()).message


@pytest.mark.parametrize("answer", ["It cost 5 [7].", "The desk Lofta is made of oak."])
def test_an_answer_must_cite_what_it_was_given(rig, answer):
    """A citation of a document that was not given, or none where there are sources: HALT missing_evidence after the retries."""
    first = rig.ask()
    rig.say(retrieval=retrieval(first.number), synthesizer=answer)
    key = rig.ask()
    assert rig.halted(key).type == "missing_evidence" and rig.section(key, 5) == ""
    rig.say(synthesizer=cites_all)
    rig.run(key)
    assert rig.turn(key).manifest.state == "saved"


def test_a_checked_citation_must_be_one(rig):
    """The validator may not name labels that do not exist."""
    rig.say(validator=plain(checked_citations=["9"], issues=[], decision="APPROVE", confidence=0.9))
    assert rig.halted(rig.ask()).type == "missing_evidence"


def test_a_recipe_reads_any_document_of_an_earlier_phase(tmp_path):
    """`ticket.md` in `input_docs` is in the pack; a document that the call does not have is recorded with 0 tokens."""
    for part in ("recipes", "prompts"):
        shutil.copytree(REPOSITORY / part, tmp_path / part)
    file = tmp_path / "recipes" / "pipeline" / "phase5_synthesizer_chat.yaml"
    file.write_text(file.read_text().replace("input_docs:\n", "input_docs:\n  - ticket.md\n", 1))
    rig = open_rig(tmp_path / "store", recipes=tmp_path)
    key = rig.ask()
    pack = rig.runtime.of("synthesizer")[0]
    assert pack.document("ticket.md").strip() == rig.turn(key).files["ticket.md"].strip()
    (record,) = [r for r in rig.app.calls.of_turn(key, 0) if "synthesizer" in r.recipe]
    assert record.context_sizes["ticket.md"] > 0 and record.context_sizes["revision_notes"] == 0
    rig.app.close()


def test_every_document_that_a_phase_offers_is_known_to_the_check(rig):
    """`recipes check` accepts what calls can load: the table of phases lists every document that a phase offers."""
    requests = []

    class Watched:
        async def call(self, request):
            requests.append(request)
            return await execution.call(request)

    execution = rig.app.dependencies.execution
    rig.say(validator=[verdict("REVISE", "name the price"), APPROVE])
    watched = Rig(replace(rig.app, dependencies=replace(rig.app.dependencies, execution=Watched())), rig.runtime)
    watched.ask()
    known = recipe_documents()
    assert len(requests) > 8
    for request in requests:
        assert {d.name for d in request.documents} <= known[request.recipe], request.recipe


def test_a_halt_for_evidence_says_what_to_do(rig):
    """The hint names the ways out: a source, a smaller question, an answer of the user's own."""
    rig.say(synthesizer="The desk cost 429 euros.")
    halted = rig.halted(rig.ask())
    assert halted.type == "missing_evidence" and all(way in halted.hint for way in ("Store a source", "--retry", "--answer"))
