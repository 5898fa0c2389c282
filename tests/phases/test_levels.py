"""Narratives of sessions and digests of persons: all that is archived is linked by hash, and a run cut off is finished by the next."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pandora_dagster.compression.levels.config import SummarizationConfig
from pandora_dagster.contracts.ids import SessionId, TurnKey, user_id
from pandora_dagster.contracts.levels import LevelOutcome, Subject
from pandora_dagster.contracts.lineage import DocumentId
from pandora_dagster.contracts.words import Priority
from pandora_dagster.errors import DocumentError, RuntimeUnreachableError, StoreError
from pandora_dagster.phases.digests import digest_users, lost_narratives
from pandora_dagster.phases.narratives import lost_turns, summarise_sessions
from pandora_dagster.phases.restoring import restore
from pandora_dagster.settings import load_settings
from pandora_dagster.text.sections import ContextDocument
from pandora_dagster.wiring import open_house, open_levels
from tests.phases.archival import LATER, archived, desk_of
from tests.phases.rig import vocabulary

ANNA, EXAMPLE = user_id("anna"), user_id("example")
S1 = SessionId("s1")
NARRATIVE = "They talked about a chair."
DIGEST = {"key_decisions": [], "tools_used": [], "errors_encountered": [], "progress_toward_goal": NARRATIVE, "open_questions": []}


class Table:
    """Lineage that also keeps what it was told."""

    def __init__(self, keeper):
        self.edges, self.put, self._keeper = [], keeper.put, keeper

    def put_rows(self, document, edges):
        self.edges += edges
        self._keeper.put_rows(document, edges)


@pytest.fixture
def house(tmp_path):
    """The shipped example, imported and archived: seven turns of three conversations."""
    opened = open_house(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), counter=vocabulary())
    opened.import_example()
    archived(opened)
    yield opened
    opened.close()


@pytest.fixture
def talk(rig):
    """A house whose model says what it should, and a way to import a session of several turns and archive them."""
    rig.say(session_summarizer=NARRATIVE, digest_builder=json.dumps(DIGEST), compressor="none of it")

    def turns(*queries, session="s1", user="anna", answer=NARRATIVE):
        imports(rig.house, (session, "2026-01-04", *queries), user=user, answer=answer)
        archived(rig.house)

    rig.talk = turns
    return rig


def imports(house, *conversations, user="anna", answer="Noted."):
    """Conversations (id, day, words...) into a store."""
    lines = [
        {
            "id": name,
            "user_id": user,
            "created_at": f"{day}T10:00:00Z",
            "messages": [m for said in words for m in ({"role": "user", "content": said}, {"role": "assistant", "content": answer})],
        }
        for name, day, *words in conversations
    ]
    assert not house.import_conversations((json.dumps(line).encode() for line in lines), where="test").faults


def levels(house, *, later=True, **triggers):
    """The desk of the levels, forty days from now: what was said today is at rest."""
    desk = open_levels(house)
    rules = replace(desk.rules, triggers=replace(SummarizationConfig(), **triggers))
    kit = replace(desk.kit, clock=lambda: datetime.now(UTC) + LATER) if later else desk.kit
    return replace(desk, kit=kit, rules=rules)


def night(desk, which=None):
    """Both levels once; their reports, and the rows by subject."""
    rows = []
    first = asyncio.run(summarise_sessions(desk, which, on_row=rows.append))
    return (first, asyncio.run(digest_users(desk, on_row=rows.append))), {row.subject: row for row in rows}


def files(house):
    """All narratives and digests of a store, as bytes."""
    found = (p for name in ("narrative.json", "digest.json") for p in (house.settings.root / "users").rglob(name))
    return {p.relative_to(house.settings.root).as_posix(): p.read_bytes() for p in found}


def proved(house, desk):
    """Everything that speaks against no_fact_lost."""
    users = house.turns.users()
    sessions = [(user, session) for user in users for session in house.kit.index.sessions(user)]
    return [f for user, s in sessions for f in lost_turns(desk, user, s)] + [f for user in users for f in lost_narratives(desk, user)]


def test_every_archived_turn_is_in_a_narrative_and_every_narrative_in_the_digest(house):
    """By hash, from the digest down; a second night changes no byte; the index of calls agrees."""
    desk = levels(house)
    assert len(proved(house, desk)) == 7 and "in no narrative" in proved(house, desk)[0]
    table = Table(desk.lineage)
    reports, rows = night(replace(desk, lineage=table))
    assert [r.counts for r in reports] == [{LevelOutcome.MADE: 3}, {LevelOutcome.MADE: 1}] and not reports[0].failed
    assert proved(house, desk) == [] and house.verify_index() == ()
    digest, narratives = desk.levels.digest(EXAMPLE), list(desk.levels.narratives(EXAMPLE))
    assert {n.session_id for n in narratives} == {"desk-and-chair", "chair", "complaint"} == {n.session_id for n in digest.narratives}
    assert sorted(link.turn for n in narratives for link in n.links) == [k.number for k in house.turns.keys(EXAMPLE)]
    for narrative in narratives:
        row = rows[Subject(EXAMPLE, narrative.session_id)]
        assert (row.tokens_before, row.tokens, row.links) == (narrative.tokens_before, narrative.tokens, len(narrative.links))
        assert row.runtimes == ("extractive",) and row.ratio >= 1 and row.seconds > 0
        told = " ".join(ContextDocument.parse(house.turns.original(k).context).render() for k in house.turns.keys(EXAMPLE))
        assert all(" ".join(line.split()) in " ".join(told.split()) or ". " in line for line in narrative.text.splitlines() if line)
    by_child = {}
    for edge in table.edges:
        by_child.setdefault(edge.child, {})[edge.parent] = edge
    assert by_child["example:digest"].keys() == {f"example:session/{n.session_id}" for n in narratives}
    for narrative in narratives:
        assert by_child["example:digest"][f"example:session/{narrative.session_id}"].parent_sha == narrative.sha
        for link in narrative.links:
            up = by_child[f"example:session/{narrative.session_id}"][f"example:turn_{link.turn:06d}/summary"]
            (down,) = house.lineage.index.parents(EXAMPLE, [up.parent])
            record = house.turns.manifest(next(k for k in house.turns.keys(EXAMPLE) if k.number == link.turn)).archive
            assert up.parent_sha == link.sha == down.child_sha and up.child_sha == narrative.sha and up.recipe and up.parent_tokens
            assert down.parent == f"example:turn_{link.turn:06d}/cold/context.md" and down.parent_sha == record.files["context.md"]
    branches, _ = house.lineage.tree(DocumentId.parse("example:digest"))
    assert {b.document for b in branches} >= {f"{k}/cold/context.md" for k in house.turns.keys(EXAMPLE)}, "from the digest to every source"
    assert all(not isinstance(found, str) and not found.fault for found in house.lineage.prove())
    before = files(house)
    reports, _ = night(desk)
    assert [r.counts for r in reports] == [{LevelOutcome.UNCHANGED: 3}, {LevelOutcome.UNCHANGED: 1}] and files(house) == before


def test_a_session_that_may_go_on_waits_for_the_triggers_of_003(talk):
    """Twenty entries, whole batches of five, the newest five stay out; only new turns are added later; at rest all are taken up."""
    talk.talk(*(f"question {n}?" for n in range(8)))
    talk.ask("and now?")
    few = {"l2_trigger_entries": 7, "l2_batch_size": 2, "preserve_recent_n": 3, "l3_trigger_summaries": 3}
    usual, desk = levels(talk.house, later=False), levels(talk.house, later=False, **few)
    _, rows = night(usual)
    row = rows[Subject(ANNA, "s1")]
    assert row.outcome is LevelOutcome.WAITING and row.waiting == 8 and "wait" in row.reason and proved(talk.house, usual) == []
    _, rows = night(desk)
    first = desk.levels.narrative(ANNA, S1)
    assert [[link.turn for link in part.links] for part in first.parts] == [[1, 2], [3, 4], [5, 6]]
    assert rows[Subject(ANNA)].outcome is LevelOutcome.MADE and rows[Subject(ANNA, "s1")].waiting == 2 and proved(talk.house, desk) == []
    assert talk.runtime.calls()["session_summarizer"] == 3 and talk.runtime.calls()["digest_builder"] == 1
    archived(talk.house, after=LATER)
    rested = levels(talk.house, **few)
    night(rested)
    after = rested.levels.narrative(ANNA, S1)
    assert after.parts[:3] == first.parts and [len(p.links) for p in after.parts] == [2, 2, 2, 2, 1]
    assert talk.runtime.calls()["session_summarizer"] == 5 and proved(talk.house, rested) == []
    assert [len(link.parts) for link in rested.levels.digest(ANNA).narratives] == [5]


def test_summaries_of_sessions_that_go_on_wait_and_those_at_rest_do_not(talk):
    """003's ten summaries hold for what may still grow."""
    talk.talk("one?", "two?")
    talk.ask("three?")
    few = {"l2_trigger_entries": 2, "l2_batch_size": 1, "preserve_recent_n": 1}
    desk = levels(talk.house, later=False, **few)
    _, rows = night(desk)
    row = rows[Subject(ANNA)]
    assert row.outcome is LevelOutcome.WAITING and row.waiting == 2 and desk.levels.digest(ANNA) is None and proved(talk.house, desk) == []
    _, rows = night(levels(talk.house, **few))
    assert rows[Subject(ANNA)].outcome is LevelOutcome.MADE and proved(talk.house, levels(talk.house, **few)) == []


def test_calls_are_made_for_nobody_who_waits_and_under_no_limit_of_a_session(talk):
    """Priority NIGHT, entries and lengths as 003 has them; more calls than a session may make in a minute."""
    talk.talk(*(f"question {n}?" for n in range(14)))
    night(levels(talk.house, l2_batch_size=1, l3_trigger_summaries=5))
    packs = talk.runtime.of("session_summarizer")
    assert len(packs) == 14 and len(talk.runtime.of("digest_builder")) == 3
    assert {p.priority for p in (*packs, *talk.runtime.of("digest_builder"))} == {Priority.NIGHT}
    entry = packs[0].document("entries")
    assert re.fullmatch(r"\[1\] 2026-01-04 \([^()]+\): question 0\? They talked about a chair\.", entry) and packs[0].query == ""


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("They talked about a chair. It cost $420 in Berlin.", "They talked about a chair."),
        ("Summary: They talked about a chair.", "They talked about a chair."),
        ("The spaceship landed quietly and everyone cheered loudly.", None),
        ("", None),
    ],
)
def test_what_no_entry_bears_out_is_not_told(talk, answer, kept):
    """Taken out with its reason; where nothing is left, an intervention, and the turns stay to be taken up again."""
    talk.talk("which chair?")
    talk.say(session_summarizer=answer)
    desk = levels(talk.house)
    (report, _), rows = night(desk)
    narrative = desk.levels.narrative(ANNA, S1)
    if kept:
        assert narrative.text == kept and rows[Subject(ANNA, "s1")].refused == (answer.count(".") - 1)
        return
    (failed,) = report.failed
    opened = talk.house.interventions.show(failed.intervention)
    assert narrative is None and opened.phase == "session_summaries" and (opened.user_id, opened.session_id) == ("anna", "s1")
    assert proved(talk.house, desk) == ["turn 1: archived and in no narrative"]
    _, rows = night(desk)
    assert rows[Subject(ANNA, "s1")].outcome is LevelOutcome.KEPT and len(talk.house.interventions.list(state="open")) == 1
    talk.house.interventions.resolve(failed.intervention, "seen")
    talk.say(session_summarizer=NARRATIVE)
    night(desk)
    assert desk.levels.narrative(ANNA, S1).text == NARRATIVE and proved(talk.house, desk) == []


@pytest.mark.parametrize(
    ("digest", "told"),
    [
        (
            {"key_decisions": ["They talked about a chair", "Paid 900 dollars"], "tools_used": ["chair", "hammer"]},
            (["They talked about a chair"], ["chair"]),
        ),
        ({"key_decisions": ["Paid 900 dollars"], "progress_toward_goal": ""}, None),
        ("not json", None),
    ],
)
def test_a_digest_tells_what_the_narratives_tell(talk, digest, told):
    """An item without its source goes; a digest of which nothing is left, or that is no JSON, is a failed gate and an intervention."""
    talk.talk("which chair?")
    talk.say(digest_builder=digest if isinstance(digest, str) else json.dumps({**DIGEST, **digest}))
    desk = levels(talk.house)
    (_, report), _ = night(desk)
    found = desk.levels.digest(ANNA)
    if told:
        assert (list(found.fields.key_decisions), list(found.fields.tools_used)) == told
    else:
        assert found is None and talk.house.interventions.show(report.failed[0].intervention).phase == "user_digests"
        assert proved(talk.house, desk) == ["session s1: its narrative is in no digest"]


OLD, NEW = ("a", "2026-01-04", "My budget is 900 euros."), ("b", "2026-03-01", "My budget is 700 euros.")


@pytest.mark.parametrize("order", [(OLD, NEW), (NEW, OLD)])
@pytest.mark.parametrize("nights", [1, 2])
def test_a_contradicted_fact_stays_with_both_dates(tmp_path, order, nights):
    """The newer one is current, also where the older one is archived a night later."""
    house = open_house(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), counter=vocabulary())
    desk = levels(house)
    for conversations in (order,) if nights == 1 else [(one,) for one in order]:
        imports(house, *conversations)
        archived(house)
        night(desk)
    old, new = sorted(desk.levels.digest(ANNA).facts.facts, key=lambda f: f.stated_at)
    assert (old.fact, old.stated_at[:10], old.superseded_by, old.superseded_at[:10]) == (OLD[2], "2026-01-04", new.id, "2026-03-01")
    assert new.fact == NEW[2] and new.current and proved(house, desk) == []
    house.close()


def test_a_fact_that_nobody_stated_is_not_kept(talk):
    """The same screening as in a live session."""
    talk.talk("I need a chair with arms by 2026-04-01.")
    said = [{"category": "Logistics", "fact": f} for f in ("I need a chair with arms by 2026-04-01.", "The budget is $800.")]
    talk.say(fact_keeper=json.dumps({"upsert": said, "delete": []}))
    desk = levels(talk.house)
    night(desk)
    assert [f.fact for f in desk.levels.digest(ANNA).facts.facts] == ["I need a chair with arms by 2026-04-01."]


def test_a_restored_turn_stays_linked_and_an_erased_one_is_told_no_more(house):
    """Its part is made again without it, and so is the digest; a person who is erased leaves no level."""
    desk = levels(house)
    night(desk)
    before = files(house)
    key = next(k for k in house.turns.keys(EXAMPLE) if house.turns.manifest(k).session_id == "chair")
    restore(key, desk_of(house))
    night(desk)
    assert files(house) == before and proved(house, desk) == []
    shutil.rmtree(house.turns.path(key))
    house.turn_index.remove("example", [key.number])
    assert proved(house, desk)
    night(desk, [(EXAMPLE, "chair")])
    narrative = desk.levels.narrative(EXAMPLE, SessionId("chair"))
    assert key.number not in [link.turn for link in narrative.links] and "leather" not in narrative.text
    assert b"leather" not in b"".join(files(house).values()) and proved(house, desk) == []
    assert desk.levels.erase(EXAMPLE) == 4 and files(house) == {}


def test_an_erased_turn_of_a_session_that_goes_on_is_told_no_more_at_once(talk):
    """What is left of its batch does not wait for the triggers again."""
    talk.talk(*(f"question {n}?" for n in range(6)))
    talk.ask("and now?")
    desk = levels(talk.house, later=False, l2_trigger_entries=5, l2_batch_size=5, preserve_recent_n=1)
    night(desk)
    key = TurnKey(ANNA, 3)
    shutil.rmtree(talk.house.turns.path(key))
    talk.house.turn_index.remove("anna", [3])
    night(desk)
    assert [link.turn for link in desk.levels.narrative(ANNA, S1).links] == [1, 2, 4, 5] and proved(talk.house, desk) == []


def test_a_session_of_which_nothing_is_left_has_no_narrative(house):
    """Nor the digest a word of it."""
    desk = levels(house)
    night(desk)
    for key in list(house.turns.keys(EXAMPLE)):
        shutil.rmtree(house.turns.path(key))
        house.turn_index.remove("example", [key.number])
    _, rows = night(desk)
    assert {row.outcome for row in rows.values()} == {LevelOutcome.REMOVED} and files(house) == {}


@pytest.mark.parametrize("name", ["sessions/chair/narrative.json", "digest.json"])
@pytest.mark.parametrize("damage", ["", "{", '{"format_version": 2}', "another's"])
def test_a_damaged_file_is_refused_in_a_sentence_and_made_again(house, name, damage):
    """Reading is strict; the next night makes the same text of the turns."""
    desk = levels(house)
    night(desk)
    path = house.settings.root / "users" / "example" / name
    good = json.loads(path.read_text())
    path.write_text(json.dumps({**good, "user_id": "bob"}) if damage == "another's" else damage)
    with pytest.raises(DocumentError, match=str(path)):
        desk.levels.digest(EXAMPLE) if name == "digest.json" else desk.levels.narrative(EXAMPLE, SessionId("chair"))
    _, rows = night(desk)
    again = json.loads(path.read_text())
    assert ("fields" not in good or again["fields"] == good["fields"]) and again["user_id"] == "example"
    assert [p["text"] for p in again.get("parts", ())] == [p["text"] for p in good.get("parts", ())]
    assert any("made again" in row.reason for row in rows.values()) and proved(house, desk) == []


@pytest.mark.parametrize("after", range(6))
def test_a_run_that_is_cut_off_is_finished_by_the_next(talk, after):
    """Wherever it was: what was made stays, what was not is made, no call twice."""
    talk.talk(*(f"question {n}?" for n in range(4)))
    talk.talk("another?", session="s2")
    desk = levels(talk.house, l2_batch_size=2, l3_trigger_summaries=2)
    calls = {"left": after}

    class CutError(Exception):
        pass

    class Cutting:
        async def call(self, request):
            if calls["left"] == 0:
                raise CutError
            calls["left"] -= 1
            return await desk.kit.execution.call(request)

    cut = replace(desk, kit=replace(desk.kit, execution=Cutting()), rules=replace(desk.rules, concurrency=1))
    try:
        night(cut)
        cut_off = False
    except CutError:
        cut_off = True
    night(desk)
    assert cut_off == (after < 5) and proved(talk.house, desk) == []
    assert talk.runtime.calls()["session_summarizer"] == 3 and talk.runtime.calls()["digest_builder"] == 2


def test_one_bad_session_does_not_stop_the_night(house):
    """A manifest that can not be read is an intervention; the other sessions are done."""
    key = next(k for k in house.turns.keys(EXAMPLE) if house.turns.manifest(k).session_id == "chair")
    path = Path(house.turns.path(key)) / "turn.json"
    good = path.read_bytes()
    path.write_text("{")
    desk = levels(house)
    (first, _), _ = night(desk)
    assert first.counts == {LevelOutcome.MADE: 2, LevelOutcome.FAILED: 1}
    (failed,) = first.failed
    assert failed.subject.session == "chair" and house.interventions.show(failed.intervention).type == "corrupt_document"
    path.write_bytes(good)
    house.interventions.resolve(failed.intervention, "mended")
    night(desk)
    assert proved(house, desk) == []


def test_a_model_that_is_down_or_a_full_disk_ends_the_run(talk, monkeypatch):
    """With one sentence; the same run finishes once they are there again."""
    talk.talk("which chair?")
    talk.talk("which desk?", session="s2")
    desk = levels(talk.house)
    desk = replace(desk, rules=replace(desk.rules, concurrency=1))
    talk.say(session_summarizer=RuntimeUnreachableError("nobody there"))
    (report, _), _ = night(desk)
    assert "nobody there" in report.stopped and report.counts == {LevelOutcome.FAILED: 1}
    talk.say(session_summarizer=NARRATIVE)

    def full(*_):
        raise StoreError("the disk is full")

    monkeypatch.setattr(desk.levels, "save_narrative", full)
    (report, _), _ = night(desk)
    assert report.stopped == "the disk is full" and files(talk.house) == {}
    monkeypatch.undo()
    night(desk)
    assert proved(talk.house, desk) == [] and len(files(talk.house)) == 3


def test_two_processes_at_once_make_one_level(talk):
    """Whoever comes second waits for the lock and finds it done; one that waits too long leaves it."""
    talk.talk("which chair?")
    desk = levels(talk.house)
    other = replace(desk, levels=type(desk.levels)(talk.house.settings.root, lock_seconds=0.05))
    with desk.levels.lock(Subject(ANNA, "s1")):
        _, rows = night(other)
    assert rows[Subject(ANNA, "s1")].outcome is LevelOutcome.KEPT and "another process" in rows[Subject(ANNA, "s1")].reason
    assert talk.runtime.calls()["session_summarizer"] == 0
    night(other)
    night(desk)
    assert talk.runtime.calls()["session_summarizer"] == 1


def test_two_processes_over_one_store_leave_what_one_leaves(house):
    """Started together: whatever each of them did, everything is linked, once, and nothing is left to do."""
    code = """
import asyncio, sys
from pandora_dagster.phases.digests import digest_users
from pandora_dagster.phases.narratives import summarise_sessions
from pandora_dagster.settings import load_settings
from pandora_dagster.wiring import open_house, open_levels
house = open_house(load_settings({"PANDORA_ROOT": sys.argv[1]}))
desk = open_levels(house)
for work in (summarise_sessions, digest_users):
    report = asyncio.run(work(desk))
    assert not report.failed and not report.stopped, report
house.close()
"""
    root = str(house.settings.root)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    both = [subprocess.Popen([sys.executable, "-c", code, root], env=environment) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    desk = levels(house)
    before = files(house)
    assert proved(house, desk) == [] and len(before) == 4
    night(desk)
    assert files(house) == before and house.interventions.list(state="open") == ()


def test_nobody_sees_what_another_person_said(talk):
    """Two people with one session name: each narrative and digest is made of its own turns."""
    talk.talk("which lamp?", user="bob", answer="They talked about a lamp.")
    talk.talk("which chair?")
    talk.say(
        session_summarizer=lambda pack: pack.document("entries"),
        digest_builder=lambda pack: json.dumps({**DIGEST, "progress_toward_goal": pack.document("summaries").removeprefix("[1] ")}),
    )
    desk = levels(talk.house)
    night(desk)
    assert "lamp" in desk.levels.narrative(user_id("bob"), S1).text and "lamp" not in desk.levels.narrative(ANNA, S1).text
    assert "lamp" in desk.levels.digest(user_id("bob")).text and "lamp" not in desk.levels.digest(ANNA).text
