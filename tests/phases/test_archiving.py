"""Turns archived and brought back: nothing is lost, everything that can be asked of them is answered as before."""

import errno
import json
import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pandora_dagster.contracts.archive import Hold, Kept, Outcome
from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.phases.archive_day import archive_turns
from pandora_dagster.phases.archive_selection import select
from pandora_dagster.phases.flow import ORDER, run_phase
from pandora_dagster.phases.restoring import pin, restore, unpin
from pandora_dagster.settings import load_settings
from pandora_dagster.text.sections import ContextDocument
from pandora_dagster.wiring import open_archive, open_house
from tests.phases.rig import CLARIFY, retrieval, vocabulary

LATER = timedelta(days=40)
WORDS = [
    "The oak desk from Miller costs $420 and arrives on 2026-01-17, order 7741.",
    "Ben said that the chair with arms is out of stock until March, and that the blue one is not.",
    "We agreed to keep the total under $900, without the lamp, because the invoice has to be one page.",
]


@pytest.fixture
def house(tmp_path):
    """The shipped example, imported: recorded turns of last January."""
    opened = open_house(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), counter=vocabulary())
    opened.import_example()
    yield opened
    opened.close()


def desk_of(house, *, after=timedelta(), **rules):
    """The desk of an archival that happens `after` from now."""
    desk = open_archive(house)
    kit = replace(desk.kit, clock=lambda: datetime.now(UTC) + after)
    return replace(desk, kit=kit, rules=replace(desk.rules, **rules))


def archived(house, **how):
    """One run over all that is due, and its rows."""
    rows = []
    desk = desk_of(house, **how)
    return house.run(archive_turns(select(desk), desk, on_row=rows.append)), rows


def snapshot(folder):
    """The documents of a turn folder; the log of calls, the lock and the hold are none."""
    files = (p for p in Path(folder).rglob("*") if p.is_file() and p.name not in ("calls.jsonl", ".lock", "hold.json"))
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


def long_answer(lines=60):
    """What a model says that has much to say, and cites what it was given."""
    text = "\n\n".join(f"{WORDS[n % 3]} (item {n}, {n + 3} pieces)" for n in range(lines))
    return lambda pack: text + "".join(f" [{source.label}]" for source in pack.sources)


def test_what_an_archived_store_tells_is_what_it_told_before(house):
    """Export byte for byte, search, rows, index and documents; twice archived changes nothing, restored is byte-equal."""
    keys = list(house.turns.keys())
    before = {key: snapshot(house.turns.path(key)) for key in keys}
    exported = [json.dumps(c) for c in house.exported(None)]
    found = house.search("which desk did we order?", user="example", budget_tokens=800).text
    report, rows = archived(house)
    assert report.counts == {Outcome.ARCHIVED: len(keys)} and not report.failed and not report.stopped
    assert [row.outcome for row in rows] == [Outcome.ARCHIVED] * len(keys)
    assert {house.turns.manifest(key).state for key in keys} == {"archived"}
    assert report.tokens_after <= report.tokens_before and report.facts_kept <= report.facts
    assert [json.dumps(c) for c in house.exported(None)] == exported
    assert house.search("which desk did we order?", user="example", budget_tokens=800).text == found
    assert house.verify_index() == ()
    assert archived(house)[0].due == 0
    house.rebuild_index()
    assert house.search("which desk did we order?", user="example", budget_tokens=800).text == found
    for key in keys:
        original = house.turns.original(key)
        assert original.manifest.state == "saved" and restore(key, desk_of(house)).turn == original
        assert snapshot(house.turns.path(key)) == before[key]
    assert house.verify_index() == ()
    assert archived(house)[0].due == 0  # held for thirty days


def test_an_archived_folder_holds_compressed_documents_and_says_what_they_were(house):
    """turn.json, context.md, nothing else; the record names every original with its hash, and the compressed text is under its target."""
    archived(house)
    for key in house.turns.keys(None):
        manifest = house.turns.manifest(key)
        record = manifest.archive
        assert set(snapshot(house.turns.path(key))) == {"turn.json", "context.md"}
        assert set(record.files) >= {"turn.json", "context.md", "messages.jsonl"}
        turn, (document,) = house.turns.load(key), record.documents
        assert document.tokens_after == manifest.tokens == vocabulary().count(turn.context)
        assert bool(document.whole) == (document.sha_before == document.sha_after)
        if not document.whole:
            assert document.tokens_after <= document.target < document.tokens_before and document.runtime == "extractive"
            assert document.recipe and document.prompt_hash and document.call_ids
        assert ContextDocument.parse(turn.context).query() == ContextDocument.parse(house.turns.original(key).context).query()


def test_a_live_turn_is_archived_with_its_revisions_and_comes_back_whole(rig):
    """Everything that lies in its folder, a re-run beside it included; large texts stay readable, compressed; last activity stays."""
    rig.say(compressor="none of it", synthesizer=long_answer())
    rig.ask("which chair?")
    key = rig.ask("which desk?")
    (path := Path(rig.house.turns.path(key)) / "webpage_cache" / "shop").mkdir(parents=True)
    (path / "page.html").write_text("<p>left by hand</p>")
    rig.house.run(run_phase("validation", key, rig.house.kit))
    rig.run(key)
    assert rig.house.turns.manifest(key).revision == 1
    folder = Path(rig.house.turns.path(key, revision=0))
    before, turn = snapshot(folder), rig.turn(key)
    exported = list(rig.house.exported(None))
    report, _ = archived(rig.house, after=LATER)
    assert report.counts == {Outcome.ARCHIVED: 2}, report
    manifest = rig.house.turns.manifest(key)
    assert manifest.last_activity == turn.manifest.last_activity and manifest.summary == turn.manifest.summary
    left = set(snapshot(folder))
    assert left == {"revisions/1/turn.json", "revisions/1/context.md"} and set(manifest.archive.files) == set(before)
    assert rig.house.turns.original(key) == turn and list(rig.house.exported(None)) == exported
    assert rig.house.turns.original(key, revision=0).manifest.revision == 0
    assert rig.house.verify_index() == ()
    restore(key, desk_of(rig.house))
    assert snapshot(folder) == before and rig.turn(key) == turn and rig.house.verify_index() == ()


def test_an_answer_larger_than_section_5_stays_readable(rig):
    """`response.md` where section 5 is a compression of it; other large texts too; what is small only in cold storage."""
    rig.say(compressor="none of it", synthesizer=long_answer(85))
    key = rig.ask("which desk?")
    turn = rig.turn(key)
    assert vocabulary().count(turn.files["response.md"]) > vocabulary().count(ContextDocument.parse(turn.context).body(5)) > 500
    archived(rig.house, after=LATER)
    documents = {d.name: d for d in rig.house.turns.manifest(key).archive.documents}
    assert set(documents) == {"context.md", "response.md"} == set(snapshot(rig.house.turns.path(key))) - {"turn.json"}
    assert documents["response.md"].tokens_after < documents["response.md"].tokens_before
    assert rig.turn(key).files.keys() == {"response.md"}


def test_an_archived_turn_is_asked_about_and_found(rig):
    """A later turn reads it, compressed; its tokens count as they stand."""
    rig.say(compressor="none of it", synthesizer=long_answer())
    key = rig.ask("which desk?")
    archived(rig.house, after=LATER)
    rig.say(retrieval=retrieval(1))
    later = rig.ask("what did the oak desk cost?")
    assert rig.turn(later).manifest.state == "saved"
    assert "PRIOR TURN 1" in "".join(str(part) for part in rig.runtime.of("context_synthesis")[-1].parts)
    assert rig.row(key).state == "archived" and rig.row(key).tokens == rig.turn(key).manifest.tokens
    assert "oak desk" in rig.house.search("oak desk order 7741", user="anna", budget_tokens=500).text


def test_an_archived_turn_must_be_restored_before_it_is_changed(rig):
    """A phase run again, and a commit: the turn stays as it is, and the sentence says how to go on; restored, it works."""
    key = rig.ask("which desk?")
    archived(rig.house, after=LATER)
    before = snapshot(rig.house.turns.path(key))
    with pytest.raises(StoreError, match="is archived") as caught:
        rig.house.run(run_phase("response", key, rig.house.kit))
    assert f"pandora restore {key}" in caught.value.hint
    with pytest.raises(StoreError, match="is archived"):
        rig.house.turns.commit(rig.turn(key), phase=None, files={})
    with pytest.raises(StoreError, match="is archived"):
        rig.house.turns.reopen(rig.turn(key), phase="response", order=ORDER)
    assert snapshot(rig.house.turns.path(key)) == before and rig.house.left_to_do(key) == ()
    restore(key, desk_of(rig.house))
    assert rig.house.run(run_phase("response", key, rig.house.kit)).halt is None


def test_open_halted_held_and_intervened_turns_stay(rig):
    """Each listed with its reason; a clarified turn goes, and is clarify again when restored."""
    saved, opened = rig.ask("one?"), rig.start("two?")
    rig.say(reflection=CLARIFY)
    clarified = rig.ask("three?", session="s2")
    rig.say(reflection="not json")
    halted = rig.ask("four?", session="s3")
    desk = desk_of(rig.house, after=LATER)
    pin(saved, desk)
    selected = select(desk)
    assert [d.key for d in selected.due] == [clarified]
    assert {n.key: n.kept for n in selected.not_due} == {saved: Kept.HELD, opened: Kept.OPEN, halted: Kept.INTERVENTION}
    rig.house.interventions.resolve(rig.halted(halted).id, "seen")
    assert {n.key: n.kept for n in select(desk).not_due}[halted] is Kept.HALTED
    rig.house.run(archive_turns(selected, desk))
    assert rig.house.turns.manifest(clarified).archive.was == "clarify"
    assert restore(clarified, desk).turn.manifest.state == "clarify"
    assert unpin(saved, desk) and not unpin(saved, desk)
    assert [d.key for d in select(desk).due] == [saved]
    rig.house.interventions.open("fact_loss", "look at it", user_id="anna", turn_id=saved.turn_id)
    assert {n.key: n.kept for n in select(desk).not_due}[saved] is Kept.INTERVENTION


def test_a_hold_that_can_not_be_read_holds(house):
    """It may be a pin."""
    key = next(iter(house.turns.keys(None)))
    (Path(house.turns.path(key)) / "hold.json").write_text("{")
    stays = {n.key: n for n in select(desk_of(house)).not_due}
    assert stays[key].kept is Kept.HELD and "may be a pin" in stays[key].reason


@pytest.mark.parametrize("works", [True, False])
def test_a_missing_summary_is_made_first_and_is_no_activity(rig, works):
    """The turn stays on its day; where the summary halts the turn stays as it is, with an intervention."""
    rig.say(summarizer="not json")
    key = rig.ask("which desk?")
    (halt,) = rig.house.interventions.list(state="open")
    rig.house.interventions.resolve(halt.id, "try again")
    last = rig.house.turns.manifest(key).last_activity
    if works:
        rig.say(summarizer='{"summary": "a desk", "topics": ["desk", "oak"], "intent": "query", "has_research": false}')
    report, (row,) = archived(rig.house, after=LATER)
    manifest = rig.house.turns.manifest(key)
    assert manifest.last_activity == last and manifest.finished("turn_summary") == works
    assert row.outcome is (Outcome.ARCHIVED if works else Outcome.FAILED) and rig.house.verify_index() == ()
    if works:
        assert rig.house.turns.original(key).manifest.last_activity == last and rig.row(key).summary == "a desk"
    else:
        assert rig.house.interventions.show(report.failed[0].intervention).turn_id == key.turn_id and manifest.state == "saved"


def damaged(house, how):
    key = list(house.turns.keys(None))[2]
    folder = Path(house.turns.path(key))
    outside = house.settings.root.parent / "outside"
    if how == "no context.md":
        (folder / "context.md").unlink()
    elif how == "other document":
        (folder / "messages.jsonl").write_text("{}\n")
    elif how == "no manifest":
        (folder / "turn.json").unlink()
    elif how == "another's manifest":
        (folder / "turn.json").write_text((folder.parent / "turn_000001" / "turn.json").read_text())
    elif how == "folder is a link":
        shutil.move(folder, outside)
        folder.symlink_to(outside)
    elif how == "document is a link":
        outside.write_text((folder / "messages.jsonl").read_text())
        (folder / "messages.jsonl").unlink()
        (folder / "messages.jsonl").symlink_to(outside)
    elif how == "a stray link":
        (folder / "more.md").symlink_to("/etc/passwd")
    elif how == "a pipe":
        os.mkfifo(folder / "more.md")
    elif how == "linked cold folder":
        (house.settings.root / "cold").mkdir()
        outside.mkdir()
        (house.settings.root / "cold" / key.user).symlink_to(outside)
    return key


HOWS = [
    "no context.md",
    "other document",
    "no manifest",
    "another's manifest",
    "folder is a link",
    "document is a link",
    "a stray link",
    "a pipe",
]


@pytest.mark.parametrize("how", HOWS)
def test_a_bad_turn_becomes_an_intervention_and_the_rest_goes_on(house, how):
    """It is not touched, it is named once, and it is due again when a person has judged it."""
    key = damaged(house, how)
    base = house.settings.root / "users" / key.user / "turns" / key.turn_id
    before = sorted(p.name for p in base.iterdir())
    report, _ = archived(house)
    (failed,) = report.failed
    count = len(list(house.turns.keys(None)))
    assert failed.key == key and report.counts == {Outcome.FAILED: 1, Outcome.ARCHIVED: count - 1}
    told = house.interventions.show(failed.intervention)
    assert told.type in ("missing_document", "corrupt_document") and (told.user_id, told.turn_id, told.phase) == (
        key.user,
        key.turn_id,
        "archival",
    )
    assert [n for n in sorted(p.name for p in base.iterdir()) if n != ".lock"] == before
    again, _ = archived(house)
    assert again.due == 0 and [n.kept for n in again.not_due] == [Kept.INTERVENTION]
    house.interventions.resolve(failed.intervention, "mended")
    assert archived(house)[0].due == 1


def test_a_linked_folder_of_cold_storage_stops_its_user_only(house):
    """Nothing is written through the link; the others are archived."""
    extra = {"id": "c9", "user_id": "ben", "created_at": "2025-01-04T10:00:00Z", "messages": [{"role": "user", "content": "hello"}]}
    house.import_conversations([json.dumps(extra).encode()], where="x")
    key = damaged(house, "linked cold folder")
    report, _ = archived(house)
    assert {row.key.user for row in report.failed} == {key.user} and report.counts[Outcome.ARCHIVED] == 1
    assert house.turns.manifest(TurnKey(user_id("ben"), 1)).state == "archived"
    assert not list((house.settings.root.parent / "outside").iterdir())


@pytest.mark.parametrize(("number", "says"), [(errno.ENOSPC, "full"), (errno.EROFS, "read-only")])
@pytest.mark.parametrize(("step", "after"), [("write", 0), ("write", 9), ("fsync", 20), ("replace", 0), ("replace", 3), ("replace", 12)])
def test_a_disk_that_refuses_ends_the_run_and_loses_nothing(house, monkeypatch, number, says, step, after):
    """One clear sentence; every turn is archived or as it was, and the next run finishes."""
    keys = list(house.turns.keys(None))
    before = {key: house.turns.load(key) for key in keys}
    original, done = getattr(os, step), [0]

    def refuse(*args, **kwargs):
        done[0] += 1
        if done[0] > after:
            raise OSError(number, os.strerror(number))
        return original(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, step, refuse)
        report, _ = archived(house)
    assert says in report.stopped and report.hint and not report.failed
    for key in keys:
        assert house.turns.original(key) == before[key]
    again, _ = archived(house)
    assert not again.stopped and not again.failed
    assert {house.turns.manifest(key).state for key in keys} == {"archived"} and house.verify_index() == ()
    assert all(house.turns.original(key) == before[key] for key in keys)


def test_a_row_that_a_crash_kept_back_is_put_by_the_next_run(house):
    """The turn is archived, its row is not: the second run settles folder and row, and archives nothing twice."""
    key = next(iter(house.turns.keys(None)))
    row = next(r for r in house.turn_index.rows(key.user) if r.number == key.number)
    said = house.turn_index.said(key.user)[key.number]
    archived(house)
    house.turn_index.put([row.model_copy(update={"messages": said})])
    (Path(house.turns.path(key)) / "messages.jsonl").write_text("left over")
    manifest = house.turns.manifest(key)
    report, rows = archived(house)
    assert [(r.key, r.outcome) for r in rows] == [(key, Outcome.FINISHED)] and report.counts == {Outcome.FINISHED: 1}
    assert house.turns.manifest(key) == manifest and set(snapshot(house.turns.path(key))) == {"turn.json", "context.md"}
    assert house.verify_index() == ()


def test_a_turn_without_a_row_is_not_left_behind(house):
    """Folders are held against rows."""
    keys = list(house.turns.keys(None))
    house.turn_index.remove(keys[0].user, [keys[0].number])
    assert archived(house)[0].counts == {Outcome.ARCHIVED: len(keys)}
    assert house.verify_index() == ()


def test_a_turn_that_somebody_works_on_comes_last_or_stays(house):
    """A held lock delays nobody else, and is no failure."""
    keys = list(house.turns.keys(None))
    house.turns._lock_seconds = 0.2
    with house.turns.lock(keys[0]):
        report, rows = archived(house)
    assert {r.key: r.outcome for r in rows}[keys[0]] is Outcome.KEPT and report.counts[Outcome.ARCHIVED] == len(keys) - 1
    assert not report.failed and archived(house)[0].counts == {Outcome.ARCHIVED: 1}


def test_a_clock_set_back_archives_nothing_and_restores_all_the_same(house):
    """What is archived stays readable, whatever the clock says."""
    archived(house)
    assert archived(house, after=-timedelta(days=20_000))[0].due == 0
    key = next(iter(house.turns.keys(None)))
    assert restore(key, desk_of(house, after=-timedelta(days=20_000))).was_archived and house.verify_index() == ()


def test_restoring_from_a_damaged_object_changes_nothing(house):
    """The turn stays archived and readable, without a hold; the next turn is unharmed."""
    archived(house)
    one, two, *_ = house.turns.keys(None)
    record = house.turns.manifest(one).archive
    path = house.settings.root / record.cold
    path.write_bytes(path.read_bytes()[:-9])
    before = snapshot(house.turns.path(one))
    with pytest.raises(DocumentError, match="damaged or cut off"):
        restore(one, desk_of(house))
    assert snapshot(house.turns.path(one)) == before and house.turns.load(one).manifest.state == "archived"
    assert desk_of(house).holds.find(one) is None
    assert any("damaged or cut off" in fault for fault in house.verify_index())
    assert restore(two, desk_of(house)).was_archived


def test_restoring_keeps_a_pin_and_heals_a_row(house):
    """A turn that is not archived is told as that."""
    key = next(iter(house.turns.keys(None)))
    desk = desk_of(house)
    archived(house)
    pin(key, desk, why="the lawyer asked")
    done = restore(key, desk)
    assert done.was_archived and done.hold == desk.holds.find(key) and done.hold.until is None and done.hold.why == "the lawyer asked"
    house.turn_index.remove(key.user, [key.number])
    assert not restore(key, desk).was_archived and house.verify_index() == ()
    desk.holds.put(key, Hold(until="2020-01-01T00:00:00Z", at="2019-01-01T00:00:00Z"))
    assert [d.key for d in select(desk).due] == [key]
