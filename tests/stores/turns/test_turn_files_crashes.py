"""Killed processes, full and read-only disks: nothing is half written, nothing committed is lost."""

import errno
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import PhaseRecord
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import StoreError, UnknownTurnError
from pandora_dagster.stores.disk.files import write_atomic
from pandora_dagster.stores.turns import turn_folder
from pandora_dagster.stores.turns.turn_files import TurnFiles
from tests.stores.turns.turn_rig import EFFECTS

REPOSITORY = Path(__file__).parents[3]
NOW = datetime(2026, 1, 4, 14, 30, tzinfo=UTC)
KEY = TurnKey("anna", 1)


class Words:
    def count(self, text):
        return len(text.split())


def store(root):
    return TurnFiles(root, counter=Words(), clock=lambda: NOW, phases=EFFECTS)


def prepared(root, *, saved=False):
    """A turn with reflection and response done."""
    turns = store(root)
    turn = turns.start("anna", "what?\n## 1. not a heading", session="s", mode="chat", now=NOW)
    for phase, section, files in (("reflection", 1, {"reflection.json": "{}"}), ("response", 5, {"response.md": "good"})):
        context = ContextDocument.parse(turn.context).with_section(section, phase).render()
        record = PhaseRecord(phase=phase, finished_at="2026-01-04T14:30:00Z")
        turn = turns.commit(turn, phase=record, context=context, files=files)
    return turns.commit(turn, phase=None, state="saved") if saved else turn


def killed(tmp_path, action, *, saved=False):
    """The committed turn before the action, and the roots as kills left them, the finished one first."""
    before = prepared(tmp_path / "store", saved=saved)
    (tmp_path / "copies").mkdir()
    script = [sys.executable, "-W", "error", str(Path(__file__).with_name("killed_commit.py"))]
    arguments = [str(tmp_path / "store"), str(tmp_path / "copies"), action]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([*script, *arguments], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    steps = int(done.stdout)
    assert steps > 5
    return before, [tmp_path / "copies" / str(n) for n in range(steps + 1)]


@pytest.mark.parametrize("action", ["add", "rewrite"])
def test_a_commit_killed_at_any_disk_step_is_whole_or_never_begun(tmp_path, action):
    """Files, context.md and turn.json together, or the turn exactly as of its last commit, whatever was replaced already."""
    before, roots = killed(tmp_path, action)
    after = store(roots[0]).load(KEY)
    assert after.manifest.has_finished("validation") and after != before
    found = [store(root).load(KEY) for root in roots[1:]]
    assert all(turn in (before, after) for turn in found)
    assert before in found


@pytest.mark.parametrize("action", ["add", "rewrite"])
def test_after_a_kill_the_phase_runs_again(tmp_path, action):
    """Whatever a killed commit left behind, the same commit succeeds afterwards and reads back."""
    _, roots = killed(tmp_path, action)
    for root in roots[1:]:
        turns = store(root)
        turn = turns.load(KEY)
        context = ContextDocument.parse(turn.context).with_section(5, "third").with_section(6, "again").render()
        record = PhaseRecord(phase="validation", finished_at="2026-01-04T16:00:00Z")
        turns.commit(turn, phase=record, context=context, files={"response.md": "third", "validation.json": "[]"})
        assert turns.load(KEY).context == context
        assert turns.load(KEY).files["response.md"] == "third"
        assert not (Path(turns.path(KEY)) / ".kept").exists()


def test_a_reopening_killed_at_any_disk_step_is_whole_or_never_begun(tmp_path):
    """A saved turn stays what it was; its revision is complete or not there."""
    before, roots = killed(tmp_path, "reopen", saved=True)
    after = store(roots[0]).load(KEY)
    assert after.manifest.revision == 1 and "5" not in after.manifest.sections
    for root in roots:
        assert store(root).load(KEY) in (before, after)
        assert store(root).load(KEY, revision=0) == before


def test_a_start_killed_at_any_disk_step_gives_a_whole_turn_or_none(tmp_path):
    """A turn folder is never seen half built, and the number of a killed start is not given again once its turn exists."""
    _, roots = killed(tmp_path, "start")
    for root in roots:
        turns = store(root)
        if TurnKey("anna", 2) in list(turns.keys()):
            assert ContextDocument.parse(turns.load(TurnKey("anna", 2)).context).query() == "again"
        else:
            with pytest.raises(UnknownTurnError):
                turns.load(TurnKey("anna", 2))
        new = turns.start("anna", "next", session="s", mode="chat", now=NOW)
        assert turns.load(new.key) == new


@pytest.mark.parametrize(("number", "says"), [(errno.ENOSPC, "full"), (errno.EDQUOT, "quota"), (errno.EROFS, "read-only")])
@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_refusing_disk_is_a_clear_error_and_changes_nothing(tmp_path, monkeypatch, step, number, says):
    """Full, over quota, read-only: StoreError with path, reason and remedy; the turn reads as before, no temporary file stays."""
    before = prepared(tmp_path)
    turns = store(tmp_path)

    def refuse(*_args, **_kwargs):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, step, refuse)
        with pytest.raises(StoreError, match=says) as caught:
            turns.commit(before, phase=None, context=before.context + "## 6. Validation\n\nx\n\n", files={"more.md": "x"})
    assert str(tmp_path) in str(caught.value) and caught.value.hint
    assert turns.load(KEY) == before
    assert not list(tmp_path.rglob("*.part"))


def in_child(code, *arguments):
    """Runs `code` in a process of its own, so that its limits and user id are its own."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run([sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, timeout=60)


def test_a_file_size_limit_of_the_kernel_is_a_clear_error(tmp_path):
    """A real EFBIG from the kernel leaves the old file and no temporary one."""
    write_atomic(tmp_path / "page.md", b"old")
    code = (
        "import resource, sys, pathlib; from pandora_dagster.stores.disk.files import write_atomic\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_atomic(pathlib.Path(sys.argv[1]), b'x' * 5000)\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = in_child(code, str(tmp_path / "page.md"))
    assert done.stdout.startswith("StoreError") and "larger than the disk or a limit allows" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["page.md"]
    assert (tmp_path / "page.md").read_bytes() == b"old"


def test_a_root_without_permission_is_a_clear_error(tmp_path):
    """Another user's root: StoreError that names the path and PANDORA_ROOT (run as nobody where the tests run as root)."""
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        if os.geteuid() == 0 and folder.stat().st_uid == 0 and folder.name.startswith(("pytest", "test_")):
            folder.chmod(0o755)
    code = (
        "import os, sys, pathlib; from pandora_dagster.stores.disk.files import write_atomic\n"
        "if os.geteuid() == 0: os.seteuid(65534)\n"
        "try: write_atomic(pathlib.Path(sys.argv[1]), b'x')\n"
        "except Exception as error: print(type(error).__name__, error, error.hint)\n"
    )
    done = in_child(code, str(locked / "users" / "anna" / "x.md"))
    assert done.stdout.startswith("StoreError") and "no permission" in done.stdout and "PANDORA_ROOT" in done.stdout
    assert str(locked) in done.stdout


def test_a_file_where_the_root_should_be_is_a_clear_error(tmp_path):
    """A root that is a file: StoreError, not a traceback."""
    (tmp_path / "root").write_text("I am a file")
    with pytest.raises(StoreError, match=r"a file is in the place of a folder|exists already"):
        store(tmp_path / "root").start("anna", "q", session="s", mode="chat", now=NOW)


def test_four_processes_get_a_hundred_different_numbers(tmp_path):
    """4 processes x 25 starts at once: 100 turns, numbered 1 to 100, all sound."""
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[2]); import killed_commit as k\n"
        "turns, day = k.store(pathlib.Path(sys.argv[1])), k.datetime(2026, 1, 4, tzinfo=k.UTC)\n"
        "for _ in range(25): print(turns.start('anna', 'q', session='s', mode='chat', now=day).key.number)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", code, str(tmp_path), str(Path(__file__).parent)]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    given = [int(line) for process in running for line in process.communicate(timeout=120)[0].split()]
    assert sorted(given) == list(range(1, 101))
    assert [key.number for key in store(tmp_path).keys("anna")] == list(range(1, 101))


def commits_of_another_process(root):
    """A process that rewrites the answer of the prepared turn a hundred times."""
    code = "import sys, pathlib; sys.path.insert(0, sys.argv[2]); import killed_commit as k; k.commit_often(pathlib.Path(sys.argv[1]))"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen([sys.executable, "-c", code, str(root), str(Path(__file__).parent)], env=environment)


def test_a_reader_beside_a_writer_sees_whole_commits_only(tmp_path):
    """Loading without the lock while another process rewrites section and file: always both of one commit, never damage."""
    prepared(tmp_path)
    seen = set()
    with commits_of_another_process(tmp_path) as process:
        while process.poll() is None:
            turn = store(tmp_path).load(KEY)
            assert ContextDocument.parse(turn.context).body(5) in (turn.files["response.md"], "response")
            seen.add(turn.context)
    assert process.returncode == 0 and len(seen) > 5


def test_a_reader_slower_than_the_writer_waits_for_it(tmp_path, monkeypatch):
    """On a busy machine every reading can meet a newer commit: it is read again until one is whole, as it is not damage."""
    prepared(tmp_path)
    read_text = turn_folder.read_text

    def slowly(path, **arguments):
        time.sleep(0.02)
        return read_text(path, **arguments)

    monkeypatch.setattr(turn_folder, "read_text", slowly)
    with commits_of_another_process(tmp_path) as process:
        while process.poll() is None:
            turn = store(tmp_path).load(KEY)
            assert ContextDocument.parse(turn.context).body(5) in (turn.files["response.md"], "response")
    assert process.returncode == 0


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    """A turn's lock is held by a living process only, and a held one is reported in bounded time."""
    prepared(tmp_path)
    code = (
        "import sys, pathlib, time; sys.path.insert(0, sys.argv[2]); import killed_commit as k\n"
        "with k.store(pathlib.Path(sys.argv[1])).lock(k.TurnKey('anna', 1)): print('held', flush=True); time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", code, str(tmp_path), str(Path(__file__).parent)]
    impatient = TurnFiles(tmp_path, counter=Words(), clock=lambda: NOW, phases=EFFECTS, lock_seconds=0.2)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="another process works on turn anna:turn_000001"), impatient.lock(KEY):
            raise AssertionError("the lock was given twice")
        process.kill()
        process.wait()
    with impatient.lock(KEY):
        pass
