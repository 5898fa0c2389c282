"""What the archive's promises hang on: each of them broken by hand, and found out."""

import asyncio
import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pandora_dagster.api.pages.html_pages import lineage_page
from pandora_dagster.archive import archive_run
from pandora_dagster.archive.archive_run import archive_turns
from pandora_dagster.archive.archive_selection import local_day, select_turns
from pandora_dagster.archive.day_verification import verify_days
from pandora_dagster.archive.lineage_proof import check_links
from pandora_dagster.archive.original_retention import prune
from pandora_dagster.archive.turn_restoration import pin, restore
from pandora_dagster.contracts.archive_records import ArchiveOutcome, DayCheck, NotDueReason
from pandora_dagster.contracts.enums import InterventionType, TurnState
from pandora_dagster.contracts.lineage import DocumentId, Relation
from pandora_dagster.errors import HaltError, StoreError
from pandora_dagster.stores.turns import archive_folders
from tests.archive.archived_store import LATER, archive_context, archived, snapshot, two_turns

SAVED = {"state": TurnState.SAVED}
"""What the row of a turn says while it is being restored."""


@pytest.fixture
def live(rig):
    """Two live turns with long answers, not archived yet."""
    return rig, *two_turns(rig, 40)


_WRITE = archive_folders.write_files


def before_the_switch(contents, **how):
    """A disk that refuses just before `turn.json`."""
    if [path.name for path in contents] == ["turn.json"]:
        raise OSError(5, "Input/output error")
    _WRITE(contents, **how)


def verdicts(rig, key, **how):
    """The checks of the turn's day."""
    ctx = archive_context(rig.app, after=LATER)
    day = local_day(rig.app.turns.manifest(key).last_activity, ctx.rules.zone)
    (found,) = verify_days({day}, ctx, **how)
    return {v.check: v for v in found.verdicts}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"checks": {"no_fact_changed": False}}, "no_fact_changed did not hold"),
        ({"checks": {}}, "no verdict"),
        ({"counts": {"mutated": 2}}, "2 mutated"),
        ({"counts": {"invented": 1}}, "1 invented"),
        ({"whole": "as it was", "sha_after": "0" * 64}, "stays whole, but is another text"),
    ],
)
def test_a_record_that_does_not_vouch_for_its_facts_fails_the_day(live, change, says):
    """The verdict of the compression is what the check goes by, document by document."""
    rig, _, key = live
    archived(rig.app, after=LATER)
    assert verdicts(rig, key)[DayCheck.NO_FACT_CHANGED].passed
    path = Path(rig.app.turns.path(key)) / "turn.json"
    result = json.loads(path.read_text())
    shortened = next(d for d in result["archive"]["documents"] if not d["whole"])
    shortened.update(change)
    path.write_text(json.dumps(result))
    found = verdicts(rig, key)[DayCheck.NO_FACT_CHANGED]
    assert not found.passed and any(says in fault and str(key) in fault for fault in found.faults), found.faults


def test_a_page_opens_no_cold_object_unless_it_is_asked_to(live):
    """Without originals that check has no verdict: it reports nothing that it did not read."""
    rig, _, key = live
    archived(rig.app, after=LATER)
    (rig.app.settings.root / rig.app.turns.manifest(key).archive.cold).write_bytes(b"gone wrong")
    result = verdicts(rig, key, originals=False)
    assert DayCheck.ORIGINALS_RESTORABLE not in result and len(result) == len(DayCheck) - 1
    assert not verdicts(rig, key)[DayCheck.ORIGINALS_RESTORABLE].passed


def test_a_turn_is_judged_again_when_its_lock_is_held(live):
    """Pinned between selection and archival: it stays, with the reason."""
    rig, first, key = live
    ctx, result = archive_context(rig.app, after=LATER), []
    selected = select_turns(ctx)
    pin(key, ctx)
    rig.app.run(archive_turns(selected, ctx, on_row=result.append))
    assert {row.key: row.outcome for row in result} == {first: ArchiveOutcome.ARCHIVED, key: ArchiveOutcome.KEPT}
    assert rig.app.turns.manifest(key).state == "saved"
    assert {one.key: one.cause for one in select_turns(ctx).not_due} == {key: NotDueReason.HELD}


@pytest.mark.parametrize("wrong", ["question", "section"])
def test_a_compression_that_touches_the_question_or_a_section_is_refused(live, monkeypatch, wrong):
    """Whatever says that its facts are kept: section 0 stands as it was, and no section goes."""
    rig, _, key = live
    real = type(rig.app.dependencies.summarizer).compress_for_archive

    async def changed(self, content, **how):
        shrunk = await real(self, content, **how)
        if content.name != "context.md" or shrunk.report is None:
            return shrunk
        if wrong == "question":
            return replace(shrunk, text=shrunk.text.replace("oak desk", "elm desk", 1).replace("which chair", "which table", 1))
        return replace(shrunk, text=shrunk.text[: shrunk.text.index("\n## 6")])

    before = rig.turn(key).context
    monkeypatch.setattr(type(rig.app.dependencies.summarizer), "compress_for_archive", changed)
    report, _ = archived(rig.app, after=LATER)
    assert not report.failed
    (about,) = [d for d in rig.app.turns.manifest(key).archive.documents if d.name == "context.md"]
    assert "section 0" in about.whole and about.sha_before == about.sha_after
    assert rig.turn(key).context == before


@pytest.mark.parametrize("in_run", [False, True])
def test_a_restoring_that_is_cut_off_leaves_the_archived_turn(live, monkeypatch, in_run):
    """The documents are back, `turn.json` is not: the archived turn can still be read; the next archival run brings the folder to
    what it was, the next restoring ends it."""
    rig, _, key = live
    original = rig.turn(key)
    archived(rig.app, after=LATER)
    before = rig.turn(key)
    assert before.context != original.context
    with monkeypatch.context() as patch:
        patch.setattr(archive_folders, "write_files", before_the_switch)
        with pytest.raises(StoreError):
            restore(key, archive_context(rig.app, after=LATER))
    assert rig.app.turns.load(key) == before and (Path(rig.app.turns.path(key)) / "context.md").read_text() == before.context
    if in_run:
        rig.app.turn_index.put([next(r for r in rig.app.turn_index.rows(key.user) if r.number == key.number).model_copy(update=SAVED)])
        _, rows = archived(rig.app, after=LATER)
        assert [(row.key, row.outcome) for row in rows] == [(key, ArchiveOutcome.FINISHED)] and rig.app.turns.load(key) == before
        assert set(snapshot(rig.app.turns.path(key))) == {"turn.json", *(d.name for d in before.manifest.archive.documents)}
        assert [one for one in rig.app.lineage.prove(DocumentId.parse(f"{key}/context.md")) if getattr(one, "fault", one)] == []
    restore(key, archive_context(rig.app, after=LATER))
    assert rig.turn(key) == original


def test_a_turn_whose_rows_a_crash_kept_back_gets_its_lineage(live):
    """Archived, but neither row nor lineage were written: the next archival run puts both."""
    rig, _, key = live
    row = next(r for r in rig.app.turn_index.rows(key.user) if r.number == key.number)
    record = rig.app.turn_index.messages_by_turn(key.user)[key.number]
    archived(rig.app, after=LATER)
    index = rig.app.lineage.index
    result = index.rows_of(key.user, [str(key)])
    rig.app.turn_index.put([row.model_copy(update={"messages": record})])
    index.put([], owners=[str(key)])
    _, rows = archived(rig.app, after=LATER)
    assert [(r.key, r.outcome) for r in rows] == [(key, ArchiveOutcome.FINISHED)]
    assert index.rows_of(key.user, [str(key)]) == result and any("/cold/" in edge.parent for edge in result)


def test_large_turns_go_to_the_disk_in_smaller_batches(live, monkeypatch):
    """What a run holds in memory is bounded by bytes, not by a number of turns."""
    rig, first, key = live
    ctx = archive_context(rig.app, after=LATER)
    assert ctx.folders.size(key) == sum(p.stat().st_size for p in Path(rig.app.turns.path(key)).rglob("*") if p.is_file())
    sizes = []
    real = type(ctx.cold).put
    monkeypatch.setattr(type(ctx.cold), "put", lambda self, objects: sizes.append(len(objects)) or real(self, objects))
    monkeypatch.setattr(archive_run, "_MAX_BATCH_BYTES", ctx.folders.size(first))
    rig.app.run(archive_turns(select_turns(ctx), ctx))
    assert sizes == [1, 1]


def test_no_more_documents_are_shortened_at_a_time_than_allowed(live, monkeypatch):
    """`archive_concurrency` bounds the calls of an archival run."""
    rig, _, _ = live
    for n in range(4):
        rig.ask(f"and chair {n}?")
    now, most = [0], [0]
    real = type(rig.app.dependencies.summarizer).compress_for_archive

    async def counted(self, content, **how):
        now[0] += 1
        most[0] = max(most[0], now[0])
        await asyncio.sleep(0.01)
        try:
            return await real(self, content, **how)
        finally:
            now[0] -= 1

    monkeypatch.setattr(type(rig.app.dependencies.summarizer), "compress_for_archive", counted)
    archived(rig.app, after=LATER, concurrency=2)
    assert most[0] == 2


def test_a_model_that_is_down_ends_the_archival_run(live, monkeypatch):
    """One intervention, not one a turn: nothing more is begun, and the next archival run takes up the rest."""
    rig, first, key = live
    called = []

    async def down(self, content, *, site, **how):
        called.append(site.turn)
        opened = rig.app.interventions.open(InterventionType.RUNTIME_UNREACHABLE, "the server is down", user_id="anna", turn_id="")
        raise HaltError("the server is down", intervention_id=opened.id, hint="start it")

    with monkeypatch.context() as patch:
        patch.setattr(type(rig.app.dependencies.summarizer), "compress_for_archive", down)
        report, _ = archived(rig.app, after=LATER, concurrency=1)
    assert report.stopped == "the server is down" and report.hint == "start it" and len(called) == 1
    assert {rig.app.turns.manifest(k).state for k in (first, key)} == {"saved"}
    again, _ = archived(rig.app, after=LATER)
    assert again.counts == {ArchiveOutcome.ARCHIVED: 2} and not again.stopped


def test_a_section_in_another_place_is_no_section(live):
    """Both texts have their hashes; the place says something else."""
    rig, _, key = live
    lineage = rig.app.lineage
    edge = next(e for e in lineage.index.rows_of(key.user, [str(key)]) if e.relation is Relation.SECTION and e.parent.endswith("#2"))
    start, end = edge.span
    (link,) = check_links([edge], lineage.texts())
    assert not link.fault
    (moved,) = check_links([edge.model_copy(update={"span": (start - 3, end - 3)})], lineage.texts())
    assert "differ: expected the section" in moved.fault


def test_a_page_of_lineage_shows_no_credential(rig):
    """What somebody pasted into a question stands in the turn, and on no page."""
    secret = "sk-" + "a1B2c3D4e5F6g7H8i9J0" * 2
    key = rig.ask(f"my key is {secret}, which chair?")
    archived(rig.app, after=LATER)
    page = lineage_page(rig.app.lineage, DocumentId.parse(f"{key}/context.md"))
    assert "which chair?" in page and secret not in page


@pytest.mark.parametrize("where", ["cold", "turn"])
def test_bytes_are_on_the_disk_before_their_name(live, monkeypatch, where):
    """Each file is synced before it is renamed, and its folder after: what a power cut leaves is whole."""
    rig, _, _ = live
    root = rig.app.settings.root
    steps = []
    fsync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: steps.append(("sync", str(Path(f"/proc/self/fd/{fd}").readlink()))) or fsync(fd))
    monkeypatch.setattr(os, "replace", lambda a, b: steps.append(("name", str(a), str(b))) or rename(a, b))
    archived(rig.app, after=LATER)
    below = str(root / "cold") if where == "cold" else str(root / "users")
    named = [(n, step[1], step[2]) for n, step in enumerate(steps) if step[0] == "name" and step[2].startswith(below)]
    wanted = (".tar.zst",) if where == "cold" else ("turn.json", "context.md")
    named = [one for one in named if one[2].endswith(wanted)]
    assert len(named) >= 2
    for place, part, path in named:
        assert ("sync", part) in steps[:place], f"{path}: named before its bytes were waited for"
        assert ("sync", str(Path(path).parent)) in steps[place:], f"{path}: its name was not waited for"


def test_what_a_prune_calls_deleted_is_nowhere(live, monkeypatch):
    """A restoring was killed, its originals lie beside what says that the turn is archived: with the tombstone they go too; who cites the
    turn is reported so in the lineage."""
    rig, first, key = live
    original = rig.turn(first).context
    archived(rig.app, after=LATER)
    before, ctx = rig.turn(first), archive_context(rig.app, after=LATER)
    with monkeypatch.context() as patch:
        patch.setattr(archive_folders, "write_files", before_the_switch)
        patch.setattr(type(ctx.folders), "reconcile", lambda *_: None)
        with pytest.raises(StoreError):
            restore(first, ctx)
    document = Path(rig.app.turns.path(first)) / "context.md"
    assert document.read_text() == original
    ctx.holds.remove(first)
    pin(key, ctx)
    report = prune(archive_context(rig.app, after=timedelta(days=500)), older_than_days=365, by="a test")
    assert [turn.key for turn in report.pruned] == [first]
    assert document.read_text() == before.context and not (document.parent / ".kept").exists()
    assert rig.app.indexes.verify() == () and rig.app.turns.load(first) == before
