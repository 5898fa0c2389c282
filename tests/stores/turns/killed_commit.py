"""Runs one store action in a forked child that dies at its n-th disk step, for every n. A script: no threads, so it may fork.

Arguments: a prepared store root, a folder for the copies, the action. Prints how many disk steps the action takes. After it,
`<copies>/<n>` is the root as a kill before step n left it, and `<copies>/0` the root after the whole action.
"""

import os
import shutil
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import PhaseRecord
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.stores.turns.turn_files import TurnFiles
from tests.stores.turns.turn_rig import EFFECTS

STEPS = ("open", "write", "fsync", "replace", "rename", "mkdir", "unlink", "rmdir")
ORDER = ("turn_request", "reflection", "response", "validation", "saved_turn", "turn_summary")


class Words:
    def count(self, text: str) -> int:
        return len(text.split())


def store(root: Path) -> TurnFiles:
    return TurnFiles(root, counter=Words(), clock=lambda: datetime(2026, 1, 4, 15, tzinfo=UTC), phases=EFFECTS)


def act(root: Path, action: str) -> None:
    turns = store(root)
    turn = turns.load(TurnKey("anna", 1))
    document = ContextDocument.parse(turn.context)
    if action == "add":
        record = PhaseRecord(phase="validation", finished_at="2026-01-04T15:00:00Z")
        turns.commit(turn, phase=record, context=document.with_section(6, "fine").render(), files={"validation.json": "{}"})
    elif action == "rewrite":
        record = PhaseRecord(phase="validation", finished_at="2026-01-04T15:00:00Z")
        context = document.with_section(5, "better").with_section(6, "fine").render()
        turns.commit(turn, phase=record, context=context, files={"response.md": "better"}, state=TurnState.SAVED)
    elif action == "reopen":
        turns.reopen(turn, phase="response", order=ORDER)
    elif action == "start":
        turns.start("anna", "again", session="s", mode="chat", now=datetime(2026, 1, 4, 15, tzinfo=UTC))


def commit_often(root: Path) -> None:
    """Rewrite an answer a hundred times, as fast as it goes."""
    turns = store(root)
    turn = turns.load(TurnKey("anna", 1))
    for number in range(100):
        context = ContextDocument.parse(turn.context).with_section(5, f"answer {number}").render()
        turn = turns.commit(turn, phase=None, context=context, files={"response.md": f"answer {number}"})


def dying_at(number: int) -> list[int]:
    """From now on this process kills itself before disk step `number`; the list counts the steps."""
    count = [0]

    def counting(original):
        def step(*args, **kwargs):
            count[0] += 1
            if count[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        return step

    for name in STEPS:
        setattr(os, name, counting(getattr(os, name)))
    return count


def run(prepared: Path, copy: Path, action: str, number: int) -> bool:
    """True where the child was killed, False where the action was over before step `number`."""
    shutil.copytree(prepared, copy)
    child = os.fork()
    if child == 0:
        dying_at(number)
        act(copy, action)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit(f"the child failed by itself at step {number}")
    return os.WIFSIGNALED(status)


def main() -> None:
    prepared, copies, action = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    number = 1
    while run(prepared, copies / str(number), action, number):
        number += 1
    (copies / str(number)).rename(copies / "0")
    sys.stdout.write(f"{number - 1}\n")


if __name__ == "__main__":
    main()
