"""Archives a store, restores all of it, or deletes its originals, in forked children that die at chosen disk steps, or at a moment of the
clock. A script, so that it may fork.

Arguments: `archive`, `restore` or `prune`, a prepared store root, a folder for the copies, how many kills (0: one at each disk step), a
seed. Prints one line per child: its name, and the disk step or the milliseconds after which it was killed. Each copy is killed, sometimes
twice, and left as the kill left it.
"""

import os
import random
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

from pandora_dagster.app import open_app
from pandora_dagster.app.archive_service import open_archive
from pandora_dagster.archive.archive_run import archive_turns
from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.archive.original_retention import prune
from pandora_dagster.archive.turn_restoration import restore
from pandora_dagster.settings import load_settings
from tests.faults.killed_turn import STEPS
from tests.phases.vocabulary import vocabulary


def archive(root: Path) -> None:
    """Everything that is due, in one run."""
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}), counter=vocabulary())
    ctx = open_archive(app)
    app.run(archive_turns(select_turns(ctx), ctx))
    app.close()


def restore_all(root: Path) -> None:
    """Every turn brought back."""
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}), counter=vocabulary())
    ctx = open_archive(app)
    for key in list(app.turns.keys()):
        restore(key, ctx)
    app.close()


def prune_all(root: Path) -> None:
    """Every original deleted."""
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}), counter=vocabulary())
    prune(open_archive(app), older_than_days=-1, by="a test")
    app.close()


WORK = {"archive": archive, "restore": restore_all, "prune": prune_all}


def counting(dies_at: int) -> list[int]:
    """From now on this process counts its disk steps, in all threads, and kills itself before step `dies_at`; 0 never comes."""
    count, lock = [0], threading.Lock()

    def wrapped(original):
        def step(*args, **kwargs):
            with lock:
                count[0] += 1
                if count[0] == dies_at:
                    os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        return step

    for name in STEPS:
        setattr(os, name, wrapped(getattr(os, name)))
    return count


def child(work: str, root: Path, dies_at: int, after_s: float = 0.0, report: Path | None = None) -> bool:
    """True where the child was killed, False where its work was over before."""
    pid = os.fork()
    if pid == 0:
        count = counting(dies_at)
        WORK[work](root)
        if report:
            report.write_text(str(count[0]))
        os._exit(0)
    if after_s:
        time.sleep(after_s)
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit(f"the child failed by itself at step {dies_at}")
    return os.WIFSIGNALED(status)


def main() -> None:
    work, prepared, copies = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    kills, chance = int(sys.argv[4]), random.Random(int(sys.argv[5]))
    vocabulary()
    shutil.copytree(prepared, copies / "whole")
    started = time.monotonic()
    child(work, copies / "whole", 0, report=copies / "steps")
    steps, seconds = int((copies / "steps").read_text()), time.monotonic() - started
    for number in range(kills or steps):
        root = copies / str(number)
        shutil.copytree(prepared, root)
        if not kills:
            child(work, root, number + 1)
            sys.stdout.write(f"{number} step {number + 1} of {steps}\n")
        elif number % 4 == 3:
            after = chance.uniform(0.01, seconds)
            child(work, root, 0, after)
            sys.stdout.write(f"{number} {after * 1000:.0f} ms\n")
        else:
            at = chance.randint(1, steps)
            child(work, root, at)
            sys.stdout.write(f"{number} step {at} of {steps}\n")
            if number % 4 == 2:
                child(work, root, chance.randint(1, steps))


if __name__ == "__main__":
    main()
