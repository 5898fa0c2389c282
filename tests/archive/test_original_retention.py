"""Originals deleted by rule: what goes, what keeps them, what a crash leaves, and that all else goes on to work."""

import json
import os
from datetime import date, timedelta
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.archive.day_verification import verify_days
from pandora_dagster.archive.original_retention import prune
from pandora_dagster.archive.turn_restoration import pin, restore
from pandora_dagster.contracts.archive_records import ColdObject, DayCheck
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.retention import RetentionReason, Tombstone
from pandora_dagster.contracts.turns import PhaseRecord
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import DocumentError, OriginalsDeletedError
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.turns.cold_files import ColdFiles
from pandora_dagster.transfer.conversation_export import DELETED_FIELD
from tests.archive.archived_store import LATER, archive_context, archived
from tests.phases.vocabulary import vocabulary

BY = "a test"
YEAR = LATER + timedelta(days=400)


@pytest.fixture
def app(tmp_path):
    """The shipped example, imported and archived."""
    opened = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), counter=vocabulary())
    opened.transfer.import_example()
    archived(opened)
    yield opened
    opened.close()


def objects(app):
    return sorted(p for p in (app.settings.root / "cold").rglob("*.tar.zst"))


def stones(app):
    return sorted(p for p in (app.settings.root / "cold").rglob("*.tombstone.json"))


def pruned(app, *, after=YEAR, days=365, **how):
    return prune(archive_context(app, after=after), older_than_days=days, by=BY, **how)


def originals_check(app):
    """The verdicts on the originals of every archived day."""
    ctx = archive_context(app)
    days = {ctx.deps.turns.manifest(key).archive.day for key in app.turns.keys(None)}
    found = verify_days([date.fromisoformat(day) for day in days], ctx)
    return [v for day in found for v in day.verdicts if v.check is DayCheck.ORIGINALS_RESTORABLE]


def test_young_originals_stay_and_a_dry_run_changes_nothing(app):
    before = objects(app)
    assert pruned(app, after=timedelta(days=300)).within_retention == len(before)
    dry = pruned(app, dry_run=True)
    assert len(dry.pruned) == len(before) and dry.bytes_freed > 0
    assert objects(app) == before and not stones(app)


def test_after_their_deletion_everything_goes_on_and_says_so(app):
    """Tombstones tell what was there; export, search, verify, rebuild work; restore says when and why; a second run does nothing."""
    keys = list(app.turns.keys(None))
    records = {key: app.turns.manifest(key).archive for key in keys}
    sizes = {key: {n: len(data) for n, data in ColdFiles(app.settings.root).read(r).items()} for key, r in records.items()}
    report = pruned(app)
    assert {turn.key for turn in report.pruned} == set(keys) and not report.kept and not objects(app)
    for key, record in records.items():
        stone = Tombstone.model_validate_json(Path(app.settings.root, record.cold.removesuffix(".tar.zst") + ".tombstone.json").read_text())
        assert (stone.turn, stone.sha256, stone.day, stone.by) == (str(key), record.sha256, record.day, BY) and "365 days" in stone.why
        assert {n: f.sha256 for n, f in stone.files.items()} == dict(record.files)
        assert {n: f.size for n, f in stone.files.items()} == sizes[key]
        assert app.turns.original(key) == app.turns.load(key)
        with pytest.raises(OriginalsDeletedError, match=r"cannot be restored: its originals were deleted on .* by a test"):
            restore(key, archive_context(app))
        assert app.turns.manifest(key).archive == record
    assert app.indexes.verify() == ()
    conversations = list(app.transfer.export_conversations(None))
    assert sum(len(c[DELETED_FIELD]) for c in conversations) == len(keys)
    assert all({"role", "content"} <= set(m) for c in conversations for m in c["messages"])
    assert app.search.messages("which desk did we order?", user="example", budget_tokens=800).results
    app.indexes.rebuild()
    assert app.indexes.verify() == ()
    checks = originals_check(app)
    assert all(v.passed for v in checks) and sum(v.by_rule for v in checks) == len(keys)
    again = pruned(app)
    assert (again.deleted_earlier, len(again.pruned)) == (len(keys), 0)
    json.dumps(conversations)


def test_what_something_refers_to_stays_with_the_reason(app):
    """Pinned, restored, named by an open intervention, cited by a live turn: each keeps its object."""
    one, two, three, four, *rest = app.turns.keys(None)
    pin(one, archive_context(app))
    restore(two, archive_context(app))
    opened = app.interventions.open(InterventionType.CORRUPT_DOCUMENT, "look", user_id=three.user, turn_id=three.turn_id)
    live = citing(app, four)
    report = pruned(app)
    kept = {turn.key: turn for turn in report.kept}
    assert {key: turn.kept_because for key, turn in kept.items()} == {
        one: RetentionReason.HELD,
        three: RetentionReason.INTERVENTION,
        four: RetentionReason.CITED,
    }
    assert "pinned" in kept[one].reason and opened.id in kept[three].reason and str(live) in kept[four].reason
    assert {turn.key for turn in report.pruned} == set(rest)
    assert len(objects(app)) == 4  # a restored turn's object stays where it is
    assert restore(one, archive_context(app)).was_archived


def citing(app, key):
    """A live turn whose section 2 lists `key` among its sources."""
    turn = app.turns.start(UserId(key.user), "which one?", session=SessionId("live"), mode="chat", now=app.dependencies.clock())
    body = f"### Source References\n\n- [1] `turns/{key.turn_id}/context.md` - the desk"
    context = ContextDocument.parse(turn.context).with_section(2, body).render()
    phase = PhaseRecord(phase="gathered_context", finished_at=turn.manifest.last_activity, files={})
    app.turns.commit(turn, phase=phase, context=context)
    return turn.key


def test_a_live_turn_that_cannot_be_read_keeps_what_it_may_cite(app):
    """Only of its own user."""
    turn = app.turns.start(UserId("example"), "which one?", session=SessionId("live"), mode="chat", now=app.dependencies.clock())
    Path(app.turns.path(turn.key), "context.md").write_text("nothing of the kind")
    report = pruned(app)
    assert (
        not report.pruned and {t.kept_because for t in report.kept} == {RetentionReason.CITED} and "cannot be read" in report.kept[0].reason
    )


def test_a_missing_or_damaged_object_without_a_tombstone_stays_a_fault(app):
    one, two, *_ = app.turns.keys(None)
    root = app.settings.root
    (root / app.turns.manifest(one).archive.cold).unlink()
    (root / app.turns.manifest(two).archive.cold).write_bytes(b"no object")
    report = pruned(app)
    assert [fault.partition(": ")[0] for fault in report.faults] == [str(one), str(two)]
    assert sum(v.faulty for v in originals_check(app)) == 2
    assert any(str(one) in line for line in app.indexes.verify())


def test_a_tombstone_that_contradicts_its_manifest_is_a_fault(app):
    """It excuses nothing, and nothing is deleted on its word."""
    one, *_ = app.turns.keys(None)
    pruned(app)
    path = app.settings.root / (app.turns.manifest(one).archive.cold.removesuffix(".tar.zst") + ".tombstone.json")
    result = json.loads(path.read_text())
    for wrong in ({"sha256": "0" * 64}, {"files": {}}, {"day": "1999-01-01"}):
        path.write_text(json.dumps({**result, **wrong}))
        with pytest.raises(DocumentError, match="other originals"):
            app.turns.original(one)
        assert sum(v.faulty for v in originals_check(app)) == 1
        assert [fault.partition(": ")[0] for fault in pruned(app).faults] == [str(one)]
    path.write_text("{")
    assert [fault.partition(": ")[0] for fault in pruned(app).faults] == [str(one)]


@pytest.mark.parametrize("step", ["write_tombstone", "put", "delete"])
def test_a_crash_leaves_the_object_or_its_tombstone_and_the_next_run_finishes(app, step, monkeypatch):
    """Before the tombstone: as it was. After it: deleted by all that is read, finished by the next run."""
    one = next(iter(app.turns.keys(None)))
    ctx = archive_context(app, after=YEAR)

    class Cut(BaseException):
        pass

    def cut(*_):
        raise Cut

    target = type(ctx.deps.index) if step == "put" else ColdFiles
    with monkeypatch.context() as patched:
        patched.setattr(target, step, cut)
        with pytest.raises(Cut):
            prune(ctx, older_than_days=365, by=BY)
    there = len(objects(app))
    assert there == len(list(app.turns.keys(None))) and len(stones(app)) == (step != "write_tombstone")
    if step == "write_tombstone":
        assert app.turns.original(one).manifest.state == "saved"
    else:
        assert app.turns.original(one).manifest.state == "archived"
    assert len(pruned(app).pruned) == there and not objects(app)
    assert app.indexes.verify() == ()


def test_an_object_that_is_written_again_has_no_tombstone(app):
    """A turn that came back from a backup is archived as ever."""
    key = next(iter(app.turns.keys(None)))
    record = app.turns.manifest(key).archive
    cold = ColdFiles(app.settings.root)
    files = cold.read(record)
    pruned(app)
    (place,) = cold.put([ColdObject(TurnKey(key.user, key.number), record.day, files)])
    assert place.sha256 == record.sha256 and cold.read(record) == files and cold.tombstone(record) is None


def test_what_would_be_left_is_read_before_anything_goes(app):
    """A turn whose compressed documents are damaged keeps its originals, with the reason, and comes back; the others go."""
    keys = list(app.turns.keys(None))
    document = Path(app.turns.path(keys[1])) / "context.md"
    document.write_text("damaged")
    for dry in (True, False):
        report = pruned(app, dry_run=dry)
        assert [(t.key, t.kept_because) for t in report.kept] == [
            (keys[1], RetentionReason.FAULT)
        ] and "documents that would remain are damaged" in report.kept[0].reason
        assert len(report.pruned) == len(keys) - 1
    assert len(objects(app)) == 1 and len(stones(app)) == len(keys) - 1
    assert restore(keys[1], archive_context(app)).turn.manifest.state == "saved"


def test_half_written_objects_are_no_copies_that_stay(app):
    """What a kill left below cold storage goes with the next run, once nobody can be writing it."""
    (folder,) = {path.parent for path in objects(app)}
    old, young = folder / ".a.tar.zst.0123456789ab.part", folder / ".b.tar.zst.0123456789ab.part"
    for path in (old, young):
        path.write_bytes(b"half an object")
    os.utime(old, (0, 0))
    pruned(app)
    assert not old.exists() and young.exists()
    os.utime(young, (0, 0))
    archived(app)
    assert not young.exists()
