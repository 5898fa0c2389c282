"""Turns archived and brought back: nothing is lost, everything that can be asked of them is answered as before."""

import json
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.archive import archive_run
from pandora_dagster.archive.archive_run import archive_turns
from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.archive.turn_restoration import pin, restore, unpin
from pandora_dagster.compression.numbered_units import read_numbered
from pandora_dagster.compression.selection.omission_marks import without_marks
from pandora_dagster.contracts.archive_records import ArchiveOutcome, NotDueReason
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import StoreError
from pandora_dagster.phases.core.phase_report import PhaseReport
from pandora_dagster.phases.flow.phase_table import phase_order
from pandora_dagster.phases.flow.turn_flow import run_phase
from pandora_dagster.settings import load_settings
from tests.archive.archived_store import LATER, archive_context, archived, long_answer, snapshot
from tests.phases.rig import CLARIFY, retrieval
from tests.phases.vocabulary import vocabulary


@pytest.fixture
def app(tmp_path):
    """The shipped example, imported: recorded turns of last January."""
    opened = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), counter=vocabulary())
    opened.transfer.import_example()
    yield opened
    opened.close()


def test_what_an_archived_store_tells_is_what_it_told_before(app):
    """Export byte for byte, search, rows, index and documents; twice archived changes nothing, restored is byte-equal."""
    keys = list(app.turns.keys())
    before = {key: snapshot(app.turns.path(key)) for key in keys}
    exported = [json.dumps(c) for c in app.transfer.export_conversations(None)]
    found = app.search.messages("which desk did we order?", user="example", budget_tokens=800).text
    report, rows = archived(app)
    assert report.counts == {ArchiveOutcome.ARCHIVED: len(keys)} and not report.failed and not report.stopped
    assert [row.outcome for row in rows] == [ArchiveOutcome.ARCHIVED] * len(keys)
    assert {app.turns.manifest(key).state for key in keys} == {"archived"}
    assert report.tokens_after <= report.tokens_before and report.facts_kept <= report.facts
    assert [json.dumps(c) for c in app.transfer.export_conversations(None)] == exported
    assert app.search.messages("which desk did we order?", user="example", budget_tokens=800).text == found
    assert app.indexes.verify() == ()
    assert archived(app)[0].due == 0
    app.indexes.rebuild()
    assert app.search.messages("which desk did we order?", user="example", budget_tokens=800).text == found
    for key in keys:
        original = app.turns.original(key)
        assert original.manifest.state == "saved" and restore(key, archive_context(app)).turn == original
        assert snapshot(app.turns.path(key)) == before[key]
    assert app.indexes.verify() == ()
    assert archived(app)[0].due == 0  # held for thirty days


def test_an_archived_folder_holds_compressed_documents_and_says_what_they_were(app):
    """turn.json, context.md, nothing else; the record names every original with its hash, and the compressed text is under its target."""
    archived(app)
    for key in app.turns.keys(None):
        manifest = app.turns.manifest(key)
        record = manifest.archive
        assert set(snapshot(app.turns.path(key))) == {"turn.json", "context.md"}
        assert set(record.files) >= {"turn.json", "context.md", "messages.jsonl"}
        turn, (document,) = app.turns.load(key), record.documents
        assert document.tokens_after == manifest.tokens == vocabulary().count(turn.context)
        assert bool(document.whole) == (document.sha_before == document.sha_after)
        if not document.whole:
            assert document.tokens_after <= document.target < document.tokens_before and document.runtime == "extractive"
            assert document.recipe and document.prompt_hash and document.call_ids
        assert ContextDocument.parse(turn.context).query() == ContextDocument.parse(app.turns.original(key).context).query()


def test_a_live_turn_is_archived_with_its_revisions_and_comes_back_whole(rig):
    """Everything that lies in its folder, a re-run beside it included; large texts stay readable, compressed; last activity stays."""
    rig.say(compressor="none of it", synthesizer=long_answer())
    rig.ask("which chair?")
    key = rig.ask("which desk?")
    (path := Path(rig.app.turns.path(key)) / "webpage_cache" / "shop").mkdir(parents=True)
    (path / "page.html").write_text("<p>left by hand</p>")
    rig.app.run(run_phase("validation", key, rig.app.dependencies))
    rig.run(key)
    assert rig.app.turns.manifest(key).revision == 1
    folder = Path(rig.app.turns.path(key, revision=0))
    before, turn = snapshot(folder), rig.turn(key)
    exported = list(rig.app.transfer.export_conversations(None))
    report, _ = archived(rig.app, after=LATER)
    assert report.counts == {ArchiveOutcome.ARCHIVED: 2}, report
    manifest = rig.app.turns.manifest(key)
    assert manifest.last_activity == turn.manifest.last_activity and manifest.summary == turn.manifest.summary
    left = set(snapshot(folder))
    assert left == {"revisions/1/turn.json", "revisions/1/context.md"} and set(manifest.archive.files) == set(before)
    assert rig.app.turns.original(key) == turn and list(rig.app.transfer.export_conversations(None)) == exported
    assert rig.app.turns.original(key, revision=0).manifest.revision == 0
    assert rig.app.indexes.verify() == ()
    restore(key, archive_context(rig.app))
    assert snapshot(folder) == before and rig.turn(key) == turn and rig.app.indexes.verify() == ()


def test_an_answer_larger_than_section_5_stays_readable(rig):
    """`response.md` where section 5 is a compression of it; other large texts too; what is small only in cold storage."""
    rig.say(compressor="none of it", synthesizer=long_answer(85))
    key = rig.ask("which desk?")
    turn = rig.turn(key)
    assert vocabulary().count(turn.files["response.md"]) > vocabulary().count(ContextDocument.parse(turn.context).body(5)) > 500
    archived(rig.app, after=LATER)
    documents = {d.name: d for d in rig.app.turns.manifest(key).archive.documents}
    assert set(documents) == {"context.md", "response.md"} == set(snapshot(rig.app.turns.path(key))) - {"turn.json"}
    assert documents["response.md"].tokens_after < documents["response.md"].tokens_before
    assert rig.turn(key).files.keys() == {"response.md"}


def test_a_model_chooses_the_units_of_an_archived_document(rig):
    """With a model that chooses, the archived text is made of whole units of the original, and the record names who chose."""

    def chooses(pack):
        units = read_numbered(next(p.text for p in pack.parts if p.kind == "document"))
        return json.dumps({"keep": [unit.number for unit in units][::2]})

    rig.say(compressor="none of it", synthesizer=long_answer())
    key = rig.ask("which desk?")
    original = rig.turn(key).context
    rig.say(compressor=chooses)
    archived(rig.app, after=LATER)
    (record,) = [d for d in rig.app.turns.manifest(key).archive.documents if d.name == "context.md"]
    assert record.runtime == "scripted" and record.tokens_after < record.tokens_before
    answer, omissions = without_marks(ContextDocument.parse(rig.turn(key).context).body(5))
    assert omissions and {line.strip() for line in answer.splitlines()} <= {"", *(line.strip() for line in original.splitlines())}


def test_an_archived_turn_is_asked_about_and_found(rig):
    """A later turn reads it, compressed; its tokens count as they stand."""
    rig.say(compressor="none of it", synthesizer=long_answer())
    key = rig.ask("which desk?")
    archived(rig.app, after=LATER)
    rig.say(retrieval=retrieval(1))
    later = rig.ask("what did the oak desk cost?")
    assert rig.turn(later).manifest.state == "saved"
    assert "PRIOR TURN 1" in "".join(str(part) for part in rig.runtime.of("context_synthesis")[-1].parts)
    assert rig.row(key).state == "archived" and rig.row(key).tokens == rig.turn(key).manifest.tokens
    assert "oak desk" in rig.app.search.messages("oak desk order 7741", user="anna", budget_tokens=500).text


def test_an_archived_turn_must_be_restored_before_it_is_changed(rig):
    """A phase run again, and a commit: the turn stays as it is, and the sentence says how to go on; restored, it works."""
    key = rig.ask("which desk?")
    archived(rig.app, after=LATER)
    before = snapshot(rig.app.turns.path(key))
    with pytest.raises(StoreError, match="is archived") as caught:
        rig.app.run(run_phase("response", key, rig.app.dependencies))
    assert f"pandora restore {key}" in caught.value.hint
    with pytest.raises(StoreError, match="is archived"):
        rig.app.turns.commit(rig.turn(key), phase=None, files={})
    with pytest.raises(StoreError, match="is archived"):
        rig.app.turns.reopen(rig.turn(key), phase="response", order=phase_order())
    assert snapshot(rig.app.turns.path(key)) == before and rig.app.pending_phases(key) == ()
    restore(key, archive_context(rig.app))
    assert rig.app.run(run_phase("response", key, rig.app.dependencies)).halt is None


def test_open_halted_held_and_intervened_turns_stay(rig):
    """Each listed with its reason; a clarified turn goes, and is clarify again when restored."""
    saved, opened = rig.ask("one?"), rig.start("two?")
    rig.say(reflection=CLARIFY)
    clarified = rig.ask("three?", session="s2")
    rig.say(reflection="not json")
    halted = rig.ask("four?", session="s3")
    ctx = archive_context(rig.app, after=LATER)
    pin(saved, ctx)
    selected = select_turns(ctx)
    assert [d.key for d in selected.due] == [clarified]
    assert {n.key: n.cause for n in selected.not_due} == {
        saved: NotDueReason.HELD,
        opened: NotDueReason.OPEN,
        halted: NotDueReason.INTERVENTION,
    }
    rig.app.interventions.resolve(rig.halted(halted).id, "seen")
    assert {n.key: n.cause for n in select_turns(ctx).not_due}[halted] is NotDueReason.HALTED
    rig.app.run(archive_turns(selected, ctx))
    assert rig.app.turns.manifest(clarified).archive.was == "clarify"
    assert restore(clarified, ctx).turn.manifest.state == "clarify"
    assert unpin(saved, ctx) and not unpin(saved, ctx)
    assert [d.key for d in select_turns(ctx).due] == [saved]
    rig.app.interventions.open("fact_loss", "look at it", user_id="anna", turn_id=saved.turn_id)
    assert {n.key: n.cause for n in select_turns(ctx).not_due}[saved] is NotDueReason.INTERVENTION


def test_a_hold_that_cannot_be_read_holds(app):
    """It may be a pin."""
    key = next(iter(app.turns.keys(None)))
    (Path(app.turns.path(key)) / "hold.json").write_text("{")
    stays = {n.key: n for n in select_turns(archive_context(app)).not_due}
    assert stays[key].cause is NotDueReason.HELD and "may be a pin" in stays[key].reason


@pytest.mark.parametrize("works", [True, False])
def test_a_missing_summary_is_made_first_and_is_no_activity(rig, works):
    """The turn stays on its day; where the summary halts the turn stays as it is, with an intervention."""
    rig.say(summarizer="not json")
    key = rig.ask("which desk?")
    (halt,) = rig.app.interventions.list(state="open")
    rig.app.interventions.resolve(halt.id, "try again")
    last = rig.app.turns.manifest(key).last_activity
    if works:
        rig.say(summarizer='{"summary": "a desk", "topics": ["desk", "oak"], "intent": "query", "has_research": false}')
    report, (row,) = archived(rig.app, after=LATER)
    manifest = rig.app.turns.manifest(key)
    assert manifest.last_activity == last and manifest.has_finished("turn_summary") == works
    assert row.outcome is (ArchiveOutcome.ARCHIVED if works else ArchiveOutcome.FAILED) and rig.app.indexes.verify() == ()
    if works:
        assert rig.app.turns.original(key).manifest.last_activity == last and rig.row(key).summary == "a desk"
    else:
        assert rig.app.interventions.show(report.failed[0].intervention).turn_id == key.turn_id and manifest.state == "saved"


def test_a_summary_phase_without_effect_runs_once_and_the_turn_is_kept(rig, monkeypatch):
    """The run goes on to its end, and the next run tries the turn again."""
    rig.say(summarizer="not json")
    key = rig.ask("which desk?")
    (halt,) = rig.app.interventions.list(state="open")
    rig.app.interventions.resolve(halt.id, "try again")
    runs = []

    async def run_without_effect(phase, turn, deps, *, again):
        runs.append(turn)
        return PhaseReport(phase, turn, rig.app.turns.manifest(turn))

    monkeypatch.setattr(archive_run.turn_flow, "run_phase", run_without_effect)
    _, (row,) = archived(rig.app, after=LATER)
    assert runs == [key] and row.outcome is ArchiveOutcome.KEPT and "no summary" in row.reason
    assert rig.app.turns.manifest(key).state == "saved"
