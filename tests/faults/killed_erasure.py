"""Erases a user in forked children that die at chosen disk steps. A script, so that it may fork.

Arguments: a prepared store root, a folder for the copies, how many kills, a seed. Prints one line per child. Each copy is killed, some
twice, and left as the kill left it.
"""

import os
import random
import shutil
import sys
import time
from pathlib import Path

from tests.app.two_user_store import BEN, erasure
from tests.faults.killed_archival import counting
from tests.phases.vocabulary import vocabulary


def child(root: Path, dies_at: int, report: Path | None = None) -> bool:
    """True where the child was killed, False where its erasure was over before."""
    pid = os.fork()
    if pid == 0:
        count = counting(dies_at)
        done = erasure(root).erase(BEN)
        if report:
            report.write_text(str(count[0]))
        os._exit(0 if done.proof.is_clean else 1)
    status = os.waitpid(pid, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit(f"the child failed by itself at step {dies_at}")
    return os.WIFSIGNALED(status)


def main() -> None:
    prepared, copies, kills, chance = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), random.Random(int(sys.argv[4]))
    vocabulary()
    shutil.copytree(prepared, copies / "whole")
    started = time.monotonic()
    child(copies / "whole", 0, report=copies / "steps")
    steps = int((copies / "steps").read_text())
    sys.stderr.write(f"{steps} steps, {time.monotonic() - started:.1f} s\n")
    for number in range(kills):
        root = copies / str(number)
        shutil.copytree(prepared, root)
        at = chance.randint(1, steps)
        killed = child(root, at)
        sys.stdout.write(f"{number} step {at} of {steps} {'killed' if killed else 'was over'}\n")
        if number % 4 == 2:
            child(root, chance.randint(1, steps))


if __name__ == "__main__":
    main()
