"""A store root that cannot be written, a disk that is full: one sentence, exit code 2, nothing lost, and it works again."""

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandora_dagster.errors import StoreError
from tests.faults.processes import PANDORA, REPOSITORY, environment
from tests.phases.rig import open_rig

TWICE = f"""
import os, sys
def pandora(root):
    os.environ["PANDORA_ROOT"] = root
    sys.argv[1:] = ["ask", "my seat is on the aisle", "--user", "anna"]
    try:
        exec({PANDORA!r})
    except SystemExit as ended:
        return ended.code or 0
    return 0
free, locked = sys.argv[1:]
assert pandora(free) == 0  # all that a turn needs is imported now, also for a user who may not read the library
if os.geteuid() == 0: os.seteuid(65534)
sys.stderr.write("----")
sys.exit(pandora(locked))
"""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """On the disk also where `make test-faults` keeps its other folders in memory."""
    with tempfile.TemporaryDirectory(prefix="pytest-disk-") as folder:
        yield Path(folder)


def opened_to_all(path):
    """The folders that pytest made above `path` may be entered by everyone."""
    for folder in (path, *path.parents):
        if folder.name.startswith(("pytest", "test_")) and folder.stat().st_uid == os.geteuid():
            folder.chmod(0o755)


def test_a_root_that_cannot_be_written_is_one_sentence_and_exit_2(tmp_path):
    """Another user's folder: it names the path and PANDORA_ROOT; nothing is written, no traceback."""
    opened_to_all(tmp_path)
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    command = [sys.executable, "-c", TWICE, str(tmp_path / "free"), str(locked)]
    done = subprocess.run(command, env=environment(locked), capture_output=True, text=True, timeout=180, cwd=tmp_path)
    printed_text = done.stderr.rpartition("----")[2]
    assert done.returncode == 2, done.stderr
    assert (
        printed_text.startswith("pandora: ")
        and str(locked) in printed_text
        and "Traceback" not in printed_text
        and "PANDORA_ROOT" in printed_text
    )
    assert list(locked.iterdir()) == []


@pytest.mark.parametrize("after", [0, 3, 11, 29, 60, 100])
@pytest.mark.parametrize("step", ["write", "replace"])
def test_a_disk_that_fills_up_within_a_turn_loses_nothing(tmp_path, monkeypatch, step, after):
    """From the n-th write on the disk refuses: StoreError with a remedy; with room again the turn is finished."""
    rig = open_rig(tmp_path / "store")
    key = rig.start()
    original, done = getattr(os, step), [0]

    def refuse(*args, **kwargs):
        done[0] += 1
        if done[0] > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(*args, **kwargs)

    full = after < {"write": 60, "replace": 29}[step]
    with monkeypatch.context() as patch:
        patch.setattr(os, step, refuse)
        if full:
            with pytest.raises(StoreError, match="full") as caught:
                rig.run(key)
            assert "free some space" in caught.value.hint
    assert rig.turn(key).manifest.state in ("open", "saved")
    before = {p.phase for p in rig.turn(key).manifest.phases}
    rig.runtime.packs.clear()
    rig.run(key)
    assert rig.turn(key).manifest.state == "saved" and rig.app.indexes.verify() == ()
    assert not {"query_analysis" if p.role == "query_analyzer" else p.role for p in rig.runtime.packs} & before
    rig.app.close()


FULL = """
import json, os, sys
from pathlib import Path
from pandora_dagster.errors import PandoraError
from tests.phases.rig import open_rig
root, filler = Path(sys.argv[1]) / "store", Path(sys.argv[1]) / "filler"
rig = open_rig(root)
first = rig.ask("which chair?")
free = os.statvfs(root).f_bavail * os.statvfs(root).f_frsize
filler.write_bytes(b"x" * max(0, free - int(sys.argv[2])))
try:
    key = rig.start("which desk?")
    rig.run(key)
    said = "nothing"
except PandoraError as error:
    said = f"{type(error).__name__}: {error} ({error.hint})"
filler.unlink()
states = [str(rig.turn(k).manifest.state) for k in rig.app.turns.keys()]
for k in rig.app.turns.keys():
    if rig.app.pending_phases(k): rig.run(k)
rig.ask("and now?")
after = [str(rig.turn(k).manifest.state) for k in rig.app.turns.keys()]
behind = [fault for fault in rig.app.indexes.verify() if "missing from the lineage" not in fault]
rig.app.indexes.rebuild()
print(json.dumps({"said": said, "states": states, "after": after, "behind": behind, "verify": rig.app.indexes.verify()}))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk of its own can be mounted by root only; the test above runs anywhere")
@pytest.mark.parametrize("left", [0, 8_192, 65_536, 262_144])
def test_a_really_full_disk_loses_nothing(tmp_path, left):
    """A small tmpfs with `left` bytes free: one clear error, the saved turn stays, and with room again all works. Rows of the lineage that
    found no room are made again by a rebuild: no turn fails for them."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)], check=True)
    try:
        command = [sys.executable, "-c", FULL, str(disk), str(left)]
        done = subprocess.run(command, env=environment(disk), capture_output=True, text=True, timeout=120, cwd=REPOSITORY)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert output["said"] == "nothing" or (output["said"].startswith("StoreError: ") and "free some space" in output["said"]), output[
        "said"
    ]
    assert output["states"][0] == "saved" and set(output["after"]) == {"saved"} and output["behind"] == output["verify"] == []
