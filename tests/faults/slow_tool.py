"""A turn of anna whose tool runs until a file appears, or until it is cancelled; bob has a turn too. A script.

Arguments: the store root, the file to wait for, the file to make meanwhile.
"""

import asyncio
import sys
import time
from dataclasses import replace
from pathlib import Path

from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.contracts.ports.tool import ToolOutcome, ToolRun
from tests.fakes.tools import ScriptedTool
from tests.phases.rig import COMPLETE, Rig, command, open_rig, plan, tool

DEADLINE_S = 600


def main(root: Path, released: Path, running: Path) -> None:
    def wait(run: ToolRun) -> None:
        running.touch()
        while not released.exists() and not run.cancelled.is_set():
            time.sleep(0.05)

    async def act(run: ToolRun) -> ToolOutcome:
        await asyncio.to_thread(wait, run)
        return ToolOutcome(True, "Desk [source 1]", "{}", (Source("", "page.md"),))

    rig = open_rig(root)
    for user in ("anna", "bob"):
        rig.ask("Which desk did we order?", user=user)
    deps = replace(rig.app.dependencies, tools={"doc.search": ScriptedTool(act, deadline_s=DEADLINE_S)})
    slow = Rig(replace(rig.app, dependencies=deps), rig.runtime)
    slow.say(planner=plan("coordinator"), executor=[command(), COMPLETE], coordinator=tool("doc.search", query="desks"))
    slow.ask("Which desk?", session="slow")
    rig.app.close()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
