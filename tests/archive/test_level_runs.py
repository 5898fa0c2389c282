"""Narratives of sessions and digests of users: all that is archived is linked by hash, and a run cut off is finished by the next."""

import json
import re
import shutil
from dataclasses import replace

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.archive.turn_restoration import restore
from pandora_dagster.contracts.enums import Priority
from pandora_dagster.contracts.ids import SessionId, TurnKey
from pandora_dagster.contracts.lineage import DocumentId
from pandora_dagster.contracts.user.summary_levels import ERROR_LABEL, LIMIT_LABEL, TOOLS_LABEL, LevelOutcome, LevelSubject
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.settings import load_settings
from tests.archive.archived_store import LATER, archive_context, archived
from tests.archive.level_store import ANNA, DIGEST, EXAMPLE, NARRATIVE, S1, files, imports, levels, proved, run_levels
from tests.phases.vocabulary import vocabulary


class Table:
    """Lineage that also keeps what it was reported."""

    def __init__(self, writer):
        self.edges, self.put, self._writer = [], writer.put, writer

    def put_rows(self, document, edges):
        self.edges += edges
        self._writer.put_rows(document, edges)


def test_every_archived_turn_is_in_a_narrative_and_every_narrative_in_the_digest(app):
    """By hash, from the digest down; a second night changes no byte; the index of calls agrees."""
    ctx = levels(app)
    assert len(proved(app, ctx)) == 7 and "in no narrative" in proved(app, ctx)[0]
    table = Table(ctx.lineage)
    reports, rows = run_levels(replace(ctx, lineage=table))
    assert [r.counts for r in reports] == [{LevelOutcome.MADE: 3}, {LevelOutcome.MADE: 1}] and not reports[0].failed
    assert proved(app, ctx) == [] and app.indexes.verify() == ()
    digest, narratives = ctx.levels.digest(EXAMPLE), list(ctx.levels.narratives(EXAMPLE))
    assert {n.session_id for n in narratives} == {"desk-and-chair", "chair", "complaint"} == {n.session_id for n in digest.narratives}
    assert sorted(link.turn for n in narratives for link in n.links) == [k.number for k in app.turns.keys(EXAMPLE)]
    for narrative in narratives:
        row = rows[LevelSubject(EXAMPLE, narrative.session_id)]
        assert (row.tokens_before, row.tokens, row.links) == (narrative.tokens_before, narrative.tokens, len(narrative.links))
        assert row.runtimes == ("extractive",) and row.ratio >= 1 and row.seconds > 0
        told = " ".join(ContextDocument.parse(app.turns.original(k).context).render() for k in app.turns.keys(EXAMPLE))
        plain = [line for line in narrative.text.splitlines() if line and not line.startswith((LIMIT_LABEL, TOOLS_LABEL, ERROR_LABEL))]
        assert all(" ".join(line.split()) in " ".join(told.split()) or ". " in line for line in plain)
    by_child = {}
    for edge in table.edges:
        by_child.setdefault(edge.child, {})[edge.parent] = edge
    assert by_child["example:digest"].keys() == {f"example:session/{n.session_id}" for n in narratives}
    for narrative in narratives:
        assert by_child["example:digest"][f"example:session/{narrative.session_id}"].parent_sha == narrative.sha
        for link in narrative.links:
            up = by_child[f"example:session/{narrative.session_id}"][f"example:turn_{link.turn:06d}/summary"]
            (down,) = app.lineage.index.parents(EXAMPLE, [up.parent])
            record = app.turns.manifest(next(k for k in app.turns.keys(EXAMPLE) if k.number == link.turn)).archive
            assert up.parent_sha == link.sha == down.child_sha and up.child_sha == narrative.sha and up.recipe and up.parent_tokens
            assert down.parent == f"example:turn_{link.turn:06d}/cold/context.md" and down.parent_sha == record.files["context.md"]
    branches, _ = app.lineage.tree(DocumentId.parse("example:digest"))
    assert {b.document for b in branches} >= {f"{k}/cold/context.md" for k in app.turns.keys(EXAMPLE)}, "from the digest to every source"
    assert all(not isinstance(found, str) and not found.fault for found in app.lineage.prove())
    before = files(app)
    reports, _ = run_levels(ctx)
    assert [r.counts for r in reports] == [{LevelOutcome.UNCHANGED: 3}, {LevelOutcome.UNCHANGED: 1}] and files(app) == before


def test_a_session_that_may_go_on_waits_for_the_triggers_of_003(talk):
    """Twenty entries, whole batches of five, the newest five stay out; only new turns are added later; at rest all are taken up."""
    talk.talk(*(f"question {n}?" for n in range(8)))
    talk.ask("and now?")
    few = {"l2_trigger_entries": 7, "l2_batch_size": 2, "preserve_recent_n": 3, "l3_trigger_summaries": 3}
    usual, ctx = levels(talk.app, later=False), levels(talk.app, later=False, **few)
    _, rows = run_levels(usual)
    row = rows[LevelSubject(ANNA, "s1")]
    assert row.outcome is LevelOutcome.WAITING and row.waiting == 8 and "wait" in row.reason and proved(talk.app, usual) == []
    _, rows = run_levels(ctx)
    first = ctx.levels.narrative(ANNA, S1)
    assert [[link.turn for link in part.links] for part in first.parts] == [[1, 2], [3, 4], [5, 6]]
    assert (
        rows[LevelSubject(ANNA)].outcome is LevelOutcome.MADE
        and rows[LevelSubject(ANNA, "s1")].waiting == 2
        and proved(talk.app, ctx) == []
    )
    assert talk.runtime.calls()["session_summarizer"] == 3 and talk.runtime.calls()["digest_builder"] == 1
    archived(talk.app, after=LATER)
    rested = levels(talk.app, **few)
    run_levels(rested)
    after = rested.levels.narrative(ANNA, S1)
    assert after.parts[:3] == first.parts and [len(p.links) for p in after.parts] == [2, 2, 2, 2, 1]
    assert talk.runtime.calls()["session_summarizer"] == 5 and proved(talk.app, rested) == []
    assert [len(link.parts) for link in rested.levels.digest(ANNA).narratives] == [5]


def test_summaries_of_sessions_that_go_on_wait_and_those_at_rest_do_not(talk):
    """003's ten summaries hold for what may still grow."""
    talk.talk("one?", "two?")
    talk.ask("three?")
    few = {"l2_trigger_entries": 2, "l2_batch_size": 1, "preserve_recent_n": 1}
    ctx = levels(talk.app, later=False, **few)
    _, rows = run_levels(ctx)
    row = rows[LevelSubject(ANNA)]
    assert row.outcome is LevelOutcome.WAITING and row.waiting == 2 and ctx.levels.digest(ANNA) is None and proved(talk.app, ctx) == []
    _, rows = run_levels(levels(talk.app, **few))
    assert rows[LevelSubject(ANNA)].outcome is LevelOutcome.MADE and proved(talk.app, levels(talk.app, **few)) == []


def test_calls_are_made_for_nobody_who_waits_and_under_no_limit_of_a_session(talk):
    """Priority NIGHT, entries and lengths as 003 has them; more calls than a session may make in a minute."""
    talk.talk(*(f"question {n}?" for n in range(14)))
    run_levels(levels(talk.app, l2_batch_size=1, l3_trigger_summaries=5))
    packs = talk.runtime.of("session_summarizer")
    assert len(packs) == 14 and len(talk.runtime.of("digest_builder")) == 3
    assert {p.priority for p in (*packs, *talk.runtime.of("digest_builder"))} == {Priority.BATCH}
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
def test_what_no_entry_bears_out_is_not_reported(talk, answer, kept):
    """Taken out with its reason; where nothing is left, an intervention, and the turns stay to be taken up again."""
    talk.talk("which chair?")
    talk.say(session_summarizer=answer)
    ctx = levels(talk.app)
    (report, _), rows = run_levels(ctx)
    narrative = ctx.levels.narrative(ANNA, S1)
    if kept:
        assert narrative.text == kept and rows[LevelSubject(ANNA, "s1")].refused == (answer.count(".") - 1)
        return
    (failed,) = report.failed
    opened = talk.app.interventions.show(failed.intervention)
    assert narrative is None and opened.phase == "session_summaries" and (opened.user_id, opened.session_id) == ("anna", "s1")
    assert proved(talk.app, ctx) == ["turn 1: archived and in no narrative"]
    _, rows = run_levels(ctx)
    assert rows[LevelSubject(ANNA, "s1")].outcome is LevelOutcome.KEPT and len(talk.app.interventions.list(state="open")) == 1
    talk.app.interventions.resolve(failed.intervention, "seen")
    talk.say(session_summarizer=NARRATIVE)
    run_levels(ctx)
    assert ctx.levels.narrative(ANNA, S1).text == NARRATIVE and proved(talk.app, ctx) == []


@pytest.mark.parametrize(
    ("digest", "sentence"),
    [
        (
            {"key_decisions": ["They talked about a chair", "Paid 900 dollars"], "tools_used": ["chair", "hammer"]},
            (["They talked about a chair"], ["chair"]),
        ),
        ({"key_decisions": ["Paid 900 dollars"], "progress_toward_goal": ""}, None),
        ("not json", None),
    ],
)
def test_a_digest_tells_what_the_narratives_tell(talk, digest, sentence):
    """An item without its source goes; a digest of which nothing is left, or that is no JSON, is a failed gate and an intervention."""
    talk.talk("which chair?")
    talk.say(digest_builder=digest if isinstance(digest, str) else json.dumps({**DIGEST, **digest}))
    ctx = levels(talk.app)
    (_, report), _ = run_levels(ctx)
    found = ctx.levels.digest(ANNA)
    if sentence:
        assert (list(found.fields.key_decisions), list(found.fields.tools_used)) == sentence
    else:
        assert found is None and talk.app.interventions.show(report.failed[0].intervention).phase == "user_digests"
        assert proved(talk.app, ctx) == ["session s1: its narrative is in no digest"]


OLD, NEW = ("a", "2026-01-04", "My budget is 900 euros."), ("b", "2026-03-01", "My budget is 700 euros.")


@pytest.mark.parametrize("order", [(OLD, NEW), (NEW, OLD)])
@pytest.mark.parametrize("runs", [1, 2])
def test_a_contradicted_fact_stays_with_both_dates(tmp_path, order, runs):
    """The newer one is current, also where the older one is archived an archival run later."""
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), counter=vocabulary())
    ctx = levels(app)
    for conversations in (order,) if runs == 1 else [(one,) for one in order]:
        imports(app, *conversations)
        archived(app)
        run_levels(ctx)
    old, new = sorted(ctx.levels.digest(ANNA).facts.facts, key=lambda f: f.stated_at)
    assert (old.fact, old.stated_at[:10], old.superseded_by, old.superseded_at[:10]) == (OLD[2], "2026-01-04", new.id, "2026-03-01")
    assert new.fact == NEW[2] and new.is_current and proved(app, ctx) == []
    app.close()


def test_a_fact_that_nobody_stated_is_not_kept(talk):
    """The same screening as in a live session."""
    talk.talk("I need a chair with arms by 2026-04-01.")
    texts = [{"category": "Logistics", "fact": f} for f in ("I need a chair with arms by 2026-04-01.", "The budget is $800.")]
    talk.say(fact_keeper=json.dumps({"upsert": texts, "delete": []}))
    ctx = levels(talk.app)
    run_levels(ctx)
    assert [f.fact for f in ctx.levels.digest(ANNA).facts.facts] == ["I need a chair with arms by 2026-04-01."]


def test_a_restored_turn_stays_linked_and_an_erased_one_is_reported_no_more(app):
    """Its part is made again without it, and so is the digest; a user who is erased leaves no level."""
    ctx = levels(app)
    run_levels(ctx)
    before = files(app)
    key = next(k for k in app.turns.keys(EXAMPLE) if app.turns.manifest(k).session_id == "chair")
    restore(key, archive_context(app))
    run_levels(ctx)
    assert files(app) == before and proved(app, ctx) == []
    shutil.rmtree(app.turns.path(key))
    app.turn_index.remove("example", [key.number])
    assert proved(app, ctx)
    run_levels(ctx, [(EXAMPLE, "chair")])
    narrative = ctx.levels.narrative(EXAMPLE, SessionId("chair"))
    assert key.number not in [link.turn for link in narrative.links] and "leather" not in narrative.text
    assert b"leather" not in b"".join(files(app).values()) and proved(app, ctx) == []
    assert ctx.levels.erase(EXAMPLE) == 4 and files(app) == {}


def test_an_erased_turn_of_a_session_that_goes_on_is_reported_no_more_at_once(talk):
    """What is left of its batch does not wait for the triggers again."""
    talk.talk(*(f"question {n}?" for n in range(6)))
    talk.ask("and now?")
    ctx = levels(talk.app, later=False, l2_trigger_entries=5, l2_batch_size=5, preserve_recent_n=1)
    run_levels(ctx)
    key = TurnKey(ANNA, 3)
    shutil.rmtree(talk.app.turns.path(key))
    talk.app.turn_index.remove("anna", [3])
    run_levels(ctx)
    assert [link.turn for link in ctx.levels.narrative(ANNA, S1).links] == [1, 2, 4, 5] and proved(talk.app, ctx) == []


def test_a_session_of_which_nothing_is_left_has_no_narrative(app):
    """Nor the digest a word of it."""
    ctx = levels(app)
    run_levels(ctx)
    for key in list(app.turns.keys(EXAMPLE)):
        shutil.rmtree(app.turns.path(key))
        app.turn_index.remove("example", [key.number])
    _, rows = run_levels(ctx)
    assert {row.outcome for row in rows.values()} == {LevelOutcome.REMOVED} and files(app) == {}
