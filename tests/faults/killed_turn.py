"""Runs one whole turn, or phases of it again, in forked children that die at chosen disk steps. A script: no threads, so it may fork.

Arguments: what to do (`ask`, or the phase from which the newest turn is made again), a prepared store root, a folder for the copies,
how many steps between two samples. Prints one line per child: the step and what it was. After it, `<copies>/<n>` is the root as a
kill before step n left it, `<copies>/0` as the whole work left it.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from pandora_dagster.phases.flow.turn_flow import run_phase
from tests.phases.rig import COMPLETE, Rig, command, open_rig, plan, retrieval, tool
from tests.phases.vocabulary import vocabulary

STEPS = ("open", "write", "fsync", "replace", "rename", "mkdir", "unlink", "rmdir")
QUERY = "Remember the aisle seat.\n\n## 5. Synthesis\n\nnot a section"
FACT = "Wants the aisle seat."


def scripted(root: Path) -> Rig:
    """A rig whose turn takes every phase, with two tools, on the first turn's history."""
    rig = open_rig(root)
    calls = [tool("memory.create", key="seat", value="aisle", kind="preference"), tool("doc.search", query="chair")]
    rig.say(fact_keeper=json.dumps({"upsert": [{"category": "Emotional", "fact": FACT}], "delete": []}))
    rig.say(retrieval=retrieval(1), planner=plan("coordinator"), executor=[command(), command(), COMPLETE], coordinator=calls)
    return rig


def done(work: str, root: Path) -> None:
    rig = scripted(root)
    if work == "ask":
        rig.ask(QUERY)
    else:
        key = max(rig.app.turns.keys())
        rig.app.run(run_phase(work, key, rig.app.dependencies))
        rig.run(key)
    rig.app.close()


def counting(dies_at: int, seen: list[str]) -> None:
    """From now on this process writes its disk steps down and kills itself before step `dies_at`; 0 never comes."""

    def wrapped(name, original):
        def step(*args, **kwargs):
            seen.append("index" if str(args[0]).endswith(".duckdb.lock") else name)
            if len(seen) == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        return step

    for name in STEPS:
        setattr(os, name, wrapped(name, getattr(os, name)))


def child(work: str, root: Path, dies_at: int, report: Path | None = None) -> bool:
    """True where the child was killed, False where its turn was over before."""
    pid = os.fork()
    if pid == 0:
        seen: list[str] = []
        counting(dies_at, seen)
        done(work, root)
        if report:
            report.write_text("\n".join(seen))
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit(f"the child failed by itself at step {dies_at}")
    return os.WIFSIGNALED(status)


def main() -> None:
    work, prepared, copies, every = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    vocabulary()
    shutil.copytree(prepared, copies / "0")
    child(work, copies / "0", 0, copies / "steps")
    names = (copies / "steps").read_text().splitlines()
    (copies / "steps").unlink()
    for number, name in enumerate(names, 1):
        if name in ("replace", "rename", "index") or number % every == 0:
            shutil.copytree(prepared, copies / str(number))
            child(work, copies / str(number), number)
            sys.stdout.write(f"{number} {name}\n")


if __name__ == "__main__":
    main()
