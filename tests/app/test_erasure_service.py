"""One user erased everywhere: nothing is left in any file, nobody else loses a byte, and the proof finds what is planted."""

import gzip
import json
import shutil
import sqlite3

import dagster as dg
import duckdb
import pytest
import zstandard

from pandora_dagster.archive.archive_run import archive_turns
from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.contracts.archive_records import ArchiveOutcome
from pandora_dagster.contracts.ids import SessionId, TurnKey
from pandora_dagster.contracts.user.summary_levels import LevelSubject
from pandora_dagster.defs.instance import open_instance
from pandora_dagster.errors import BadIdError, StoreError
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.user.level_files import LevelFiles
from tests.app.two_user_store import BEN, BOTH, HIS, RUBEN, erasure, of_others, opened
from tests.archive.archived_store import archive_context


def everything(root):
    """Every byte of the store in every form, by tools of the tests' own: place -> text."""
    for path in sorted(p for p in root.rglob("*") if p.is_file() and p.name != ".begin.lock"):
        data = path.read_bytes()
        yield path, data
        if data[:4] == b"\x28\xb5\x2f\xfd":
            yield path, zstandard.ZstdDecompressor().decompressobj().decompress(data)
        elif path.suffix == ".duckdb":
            with duckdb.connect(path, read_only=True) as db:
                for (table,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                    yield path, repr(db.execute(f"SELECT * FROM {table}").fetchall()).encode()
        elif path.suffix == ".db":
            db = sqlite3.connect(path)
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                yield path, repr(db.execute(f"SELECT * FROM {table}").fetchall()).encode()
            db.close()


def left_of_ben(root):
    needles = [form.encode() for fact in HIS for form in (fact, json.dumps(fact)[1:-1], json.dumps(json.dumps(fact))[3:-3])]
    needles += [b'"ben"', b"'ben'", b"/ben/", b":ben:"]
    found = [(path, needle) for path, data in everything(root) for needle in needles if needle in data]
    return found + [(path, b"ben:turn") for path, data in everything(root) if b"ben:turn_" in data.replace(b"ruben:turn_", b"")]


def test_nothing_is_left_and_nobody_else_loses_a_byte(root):
    """By a search of the tests' own; the other user's files, search, export, index, partitions and runs are as they were."""
    assert left_of_ben(root)
    app = opened(root)
    before = (
        of_others(root),
        app.search.messages("oak desk invoice", user=RUBEN, budget_tokens=900).text,
        list(app.transfer.export_conversations(RUBEN)),
    )
    app.close()
    erased = erasure(root).erase(BEN)
    assert erased.proof.is_clean and erased.proof.facts >= len(HIS) and erased.proof.files > 50
    assert erased.found.counts["turns"] == 9 and erased.found.counts["runs"] == 2 and erased.found.counts["partitions"] == 2
    assert not left_of_ben(root)
    app = opened(root)
    after = (
        of_others(root),
        app.search.messages("oak desk invoice", user=RUBEN, budget_tokens=900).text,
        list(app.transfer.export_conversations(RUBEN)),
    )
    assert after == before
    assert app.indexes.verify() == () and app.turns.users() == (RUBEN,)
    assert not app.search.messages("oak desk", user=BEN, budget_tokens=900).results
    found_text = app.interventions.list()
    assert [one.user_id for one in found_text] == [RUBEN, RUBEN]
    assert any(one.message == "ruben:turn_000001 beside erased: erased" for one in found_text)
    app.close()
    with open_instance(load_settings({"PANDORA_ROOT": str(root)})) as instance:
        assert sorted(instance.get_dynamic_partitions("turns")) == ["ruben:turn_000001", "ruben:turn_000002"]
        runs = instance.get_runs()
        assert len(runs) == 3 and all(instance.all_logs(run.run_id) for run in runs)
        newest = {key.to_user_string(): instance.get_latest_materialization_event(key) for key in instance.all_asset_keys()}
        assert newest["answer"].asset_materialization.partition == "ruben:turn_000002"
        table = newest["archival_run"].asset_materialization.metadata["rows"].records
        assert [row.data["turn"] for row in table] == ["erased", "erased", "ruben:turn_000001", "ruben:turn_000002"]
        assert instance.get_materialized_partitions(dg.AssetKey("answer")) == {"ruben:turn_000001", "ruben:turn_000002"}
    assert (root / "serving" / "mind.log").read_text() == "POST ok\nprompt INV-11223-RB\n"
    done = (root / "inbox" / "done" / "2026-01-05" / "q.jsonl").read_text().split("\n")
    assert done[0] == "" and json.loads(done[1])["user"] == "ruben"


def test_what_both_said_is_no_trace(root):
    """It stays in the other's documents, and the proof does not look for it."""
    erased = erasure(root).erase(BEN)
    assert 0 < erased.proof.facts < erased.proof.facts_in_documents
    app = opened(root)
    assert BOTH[0] in app.search.messages("oak desk", user=RUBEN, budget_tokens=900).text
    app.close()


def test_a_second_erasure_finds_nothing_and_a_new_turn_may_begin(root):
    erasure(root).erase(BEN)
    found = erasure(root).find(BEN)
    assert not found.has_data, found.counts
    app = opened(root)
    key = app.start("hello again", user=BEN, session="s")
    assert key.number == 1
    app.close()


def test_dry_looking_changes_nothing(root):
    before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file() and p.suffix not in (".db", ".lock") and "-" not in p.suffix}
    counts = erasure(root).find(BEN).counts
    assert counts["turns"] == 9 and counts["lines_of_queries"] == 3 and counts["cold_objects"] == 7 and counts["interventions"] == 1
    assert {p: p.read_bytes() for p in before} == before


PLACES = {
    "a log": lambda root, word: (root / "new.bin").write_bytes(b"\x00\xff" + word.encode() + b"\xfe"),
    "json": lambda root, word: (root / "new.json").write_text(json.dumps({"deep": json.dumps({"said": word})})),
    "zstd": lambda root, word: (root / "new_zstd").write_bytes(zstandard.compress(word.encode() * 3)),
    "gzip": lambda root, word: (root / "new_gzip").write_bytes(gzip.compress(word.encode())),
    "a name": lambda root, word: (root / f"{word.replace('/', '_')}.txt").write_text("x"),
    "duckdb": lambda root, word: planted_duck(root / "indexes" / "new.duckdb", word),
    "sqlite": lambda root, word: planted_sqlite(root / "dagster" / "new.db", word),
    "another's turn": lambda root, word: (root / "users" / "ruben" / "stray.md").write_text(word),
}


def planted_duck(path, word):
    with duckdb.connect(path) as db:
        db.execute("CREATE TABLE t (what VARCHAR)")
        db.execute("INSERT INTO t SELECT ? || (i % 7)::VARCHAR FROM range(5000) r(i)", [word])


def planted_sqlite(path, word):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t (what TEXT, packed BLOB)")
    db.execute("INSERT INTO t VALUES (?, NULL)", [word])
    db.commit()
    db.close()


@pytest.mark.parametrize("words", [dict.fromkeys(PLACES, HIS[0]), {"json": HIS[4], "sqlite": "ben:turn_000001"}], ids=["a name", "others"])
def test_the_proof_finds_what_is_planted_after_the_erasure(root, words, monkeypatch):
    """Whatever container it lies in; each place is one hit, what was found is not named; the intent stands until a run finds nothing."""
    job, files = erasure(root), set()
    whole = type(job)._proof

    def planted(self, traces, facts):
        before = set(root.rglob("*"))
        for place, word in words.items():
            PLACES[place](root, word)
        files.update(set(root.rglob("*")) - before)
        return whole(self, traces, facts)

    monkeypatch.setattr(type(job), "_proof", planted)
    hits = job.erase(BEN).proof.hits
    assert len(hits) == len(files) == len(words), hits
    assert all(sum(path.name in hit for hit in hits) == 1 for path in files if HIS[0] not in path.name), hits
    assert not any(fact in hit for fact in HIS for hit in hits) and ErasureIntents(root).has_intent(BEN)


def test_after_a_hit_a_later_run_looks_for_the_same_facts(root, monkeypatch):
    """As often as it runs, until they are nowhere; then the intent, which kept them, is gone too."""
    job = erasure(root)
    whole = type(job)._proof

    def planted(self, traces, facts):
        PLACES["zstd"](root, HIS[0])
        return whole(self, traces, facts)

    with monkeypatch.context() as patched:
        patched.setattr(type(job), "_proof", planted)
        first, again = job.erase(BEN).proof, erasure(root).erase(BEN).proof
    assert first.hits == again.hits == (f"{root / 'new_zstd'}: bytes",) and again.facts == first.facts >= len(HIS)
    (root / "new_zstd").unlink()
    last = erasure(root).erase(BEN).proof
    assert last.is_clean and last.facts == first.facts and not left_of_ben(root) and not ErasureIntents(root).has_intent(BEN)


def test_while_it_runs_no_turn_of_theirs_begins_and_others_do(root):
    """Until a second run has finished it."""
    job = erasure(root, on_step=lambda step: stop(step, "documents"))
    with pytest.raises(KeyboardInterrupt):
        job.erase(BEN)
    app = opened(root)
    for begin in (
        lambda: app.turns.start(BEN, "hello", session=SessionId("s"), mode="chat", now=app.dependencies.clock()),
        lambda: app.turns.allocate(BEN, 1),
    ):
        with pytest.raises(StoreError, match=r"user ben: is being erased") as refused:
            begin()
        assert "pandora forget ben" in refused.value.hint
    assert app.start("hello", user=RUBEN, session="s").user == RUBEN
    app.close()
    assert erasure(root).erase(BEN).proof.is_clean and not left_of_ben(root)


def stop(step, at):
    if step == at:
        raise KeyboardInterrupt


def erased_after_a_stop(root, at):
    """An erasure that is cut off at the step `at`, and another that finishes it."""
    before = of_others(root)
    with pytest.raises(KeyboardInterrupt):
        erasure(root, on_step=lambda step: stop(step, at)).erase(BEN)
    assert erasure(root).find(BEN).counts["begun_before"] == 1
    proof = erasure(root).erase(BEN).proof
    assert proof.is_clean and proof.facts >= len(HIS)
    assert not left_of_ben(root) and of_others(root) == before and not erasure(root).find(BEN).has_data


@pytest.mark.parametrize("at", ["facts", "documents"])
def test_an_erasure_that_is_cut_off_is_finished_by_the_next(root, at):
    """Before and after the indexes; every other step: tests/faults/test_erasure_steps.py."""
    erased_after_a_stop(root, at)


def test_a_turn_that_somebody_works_on_is_waited_for(root):
    """Too long: an error, and nothing of it is lost half; later it goes."""
    lock = root / "users" / "ben" / "turns" / "turn_000003" / ".lock"
    with file_lock(lock, what="a turn", seconds=1), pytest.raises(StoreError, match="turn_000003"):
        erasure(root, wait_s=0.2).erase(BEN)
    assert erasure(root).erase(BEN).proof.is_clean and not left_of_ben(root)


def test_one_erasure_at_a_time(root):
    with ErasureIntents(root).one_at_a_time(), pytest.raises(StoreError, match="the erasure of a user"):
        erasure(root, wait_s=0.2).erase(RUBEN)
    erasure(root).erase(BEN)
    erasure(root).erase(RUBEN)
    assert not of_others(root, "nobody")


def test_an_archival_that_chose_turns_before_tells_that_they_are_gone(root):
    """And leaves nothing behind: no folder, no intervention."""
    app = opened(root)
    ctx = archive_context(app)
    for key in app.turns.keys(BEN):
        app.turns.path(key)
    (root / "users" / "ben" / "turns" / "turn_000001" / "hold.json").unlink()
    chosen = select_turns(ctx)
    assert any(due.key == TurnKey(BEN, 1) for due in chosen.due)
    erasure(root).erase(BEN)
    report = app.run(archive_turns(chosen, ctx))
    assert report.counts == {ArchiveOutcome.KEPT: len([d for d in chosen.due if d.key.user == BEN])} and not report.failed
    app.close()
    assert not left_of_ben(root) and not (root / "users" / "ben").exists()


def test_an_archival_run_that_tells_a_session_is_waited_for_and_none_begins(root):
    """Too long is an error; once the user is being erased no narrative of theirs begins, and none once they are gone."""
    levels = LevelFiles(root)
    subject = LevelSubject(BEN, "s1")
    with levels.lock(subject), pytest.raises(StoreError, match="another process works on"):
        erasure(root, wait_s=0.2).erase(BEN)
    with pytest.raises(StoreError, match="is being erased"), levels.lock(subject):
        pytest.fail("a night began")
    assert erasure(root).erase(BEN).proof.is_clean
    with pytest.raises(StoreError, match="has no folder"), levels.lock(subject):
        pytest.fail("a night began")
    assert not left_of_ben(root) and not (root / "users" / "ben").exists()


def test_links_are_never_followed(root, tmp_path):
    """What a link leads to stays; the link goes."""
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "keep.md").write_text(HIS[0])
    (root / "users" / "ben" / "turns" / "turn_000099").symlink_to(outside)
    (root / "users" / "ben" / "notes").symlink_to(outside / "deep")
    found = erasure(root).find(BEN)
    assert any("its target is not" in notice for notice in found.notices)
    assert erasure(root).erase(BEN).proof.is_clean and not left_of_ben(root)
    assert (outside / "deep" / "keep.md").read_text() == HIS[0]


def test_a_user_folder_that_is_a_link_goes_alone(root, tmp_path):
    moved = tmp_path / "elsewhere"
    (root / "users" / "ben").rename(moved)
    (root / "users" / "ben").symlink_to(moved)
    before = sorted(p for p in moved.rglob("*"))
    erasure(root).erase(BEN)
    assert sorted(p for p in moved.rglob("*")) == before and not (root / "users" / "ben").is_symlink()


def test_damaged_folders_are_erased_like_others(root):
    """A turn without a manifest, a file for a folder, an index that is none, an intervention that is no JSON."""
    turns = root / "users" / "ben" / "turns"
    (turns / "turn_000002" / "turn.json").write_text("{")
    (turns / "turn_000077").write_text(HIS[0])
    shutil.rmtree(turns / "turn_000003")
    (turns / "turn_000004").chmod(0o500)
    (root / "indexes" / "call_index.duckdb").write_bytes(b"no index: " + HIS[0].encode())
    (root / "interventions" / "int_20260101_000000_abcd.json").write_text('{"user_id": "ben", broken')
    (next((root / "cold" / "ben").rglob("*.tar.zst"))).write_bytes(b"cut")
    erased = erasure(root).erase(BEN)
    assert erased.proof.is_clean and not left_of_ben(root)
    assert len(erased.notices) == 1 and "call_index.duckdb: it was damaged and is deleted: pandora index rebuild" in erased.notices[0]


@pytest.mark.parametrize("bad", ["../ruben", "/etc", "", ".", "ben/../ruben", "a" * 200, "ben\n"])
def test_an_id_that_is_a_path_is_refused(root, bad):
    before = of_others(root, "nobody")
    with pytest.raises(BadIdError):
        erasure(root).erase(bad)
    with pytest.raises(BadIdError):
        erasure(root).find(bad)
    assert of_others(root, "nobody") == before


def test_an_id_that_never_was_has_nothing(root):
    assert not erasure(root).find("nobody").has_data
