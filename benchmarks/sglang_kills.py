"""A server that is killed for real again and again while a batch of turns runs: what became of each turn."""

import asyncio
import json
import random
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.sglang_requests import served
from benchmarks.sglang_rows import Row
from pandora_dagster.contracts.batches import BatchRow
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.words import Priority
from pandora_dagster.errors import DocumentError
from pandora_dagster.runtime.sglang.runtime import SglangRuntime
from pandora_dagster.settings import load_settings
from pandora_dagster.wiring import House, open_house
from pandora_dagster.wiring.batching import Batching, BatchRun
from tests.sglang.serving import RealSglang

_USER = UserId("bench")
_LONGEST_DELAY_S = 1.0


@dataclass
class Killer:
    """Kills the server when so many turns have their end, a random while later, and starts it again."""

    server: RealSglang
    moments: list[int]
    ended: int = 0
    working: bool = True
    kills: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    def run(self) -> None:
        for moment in self.moments:
            while self.working and self.ended < moment:
                time.sleep(0.02)
            if not self.working:
                return
            time.sleep(self.chance.uniform(0, _LONGEST_DELAY_S))
            self.server.kill()
            self.kills += 1
            sys.stderr.write(f"kill {self.kills} of {len(self.moments)}: {self.ended} turns had their end\n")
            self.server.start().ready()

    def heard(self, _: BatchRow) -> None:
        self.ended += 1


async def kill_rows(server: RealSglang, root: Path, *, turns: int, kills: int) -> list[Row]:
    """A batch of `turns` queries, `kills` kills meanwhile; then every turn is looked at."""
    chance = random.Random(11)
    killer = Killer(server, sorted(chance.randrange(max(1, turns // 2)) for _ in range(kills)))
    run, faults, count = await asyncio.to_thread(_under_fire, killer, root, turns)
    states = ", ".join(f"{number} {state}" for state, number in sorted(Counter(str(row.state) for row in run.rows).items()))
    unsettled = [row.turn for row in run.rows if not row.settled]
    under_fire = f"{turns} turns, the server killed {killer.kills} times meanwhile"
    return [
        Row(f"{under_fire}: turns without an end or an intervention", f"{len(unsettled)} ({states})", "0", not unsettled),
        Row("half-written turns, phases that ran twice", "; ".join(faults) or "0", "0", not faults),
        Row("turns in the store for each query", f"{count / turns:g}", "1", count == turns),
        Row("kills while turns ran", str(killer.kills), str(kills), killer.kills == kills),
    ]


def _under_fire(killer: Killer, root: Path, turns: int) -> tuple[BatchRun, list[str], int]:
    root.mkdir(parents=True)
    file = root / "queries.jsonl"
    lines = [{"query": f"Which chair did we order for office {n}, and what did it cost?", "user": _USER} for n in range(turns)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    # two calls at once: each kill meets three turns, so that turns are left for the last one
    runtime = SglangRuntime(served(killer.server, max_connections=2), keys={})
    house = open_house(load_settings({"PANDORA_ROOT": str(root / "store")}), runtime=runtime, priority=Priority.NIGHT)
    thread = threading.Thread(target=killer.run)
    thread.start()
    try:
        run = Batching(house).run_file(file, on_row=killer.heard)
    finally:
        killer.working = False
        thread.join()
    keys = list(house.turns.keys(_USER))
    faults = [fault for key in keys for fault in _faults(house, key)]
    house.close()
    return run, faults, len(keys)


def _faults(house: House, key: TurnKey) -> list[str]:
    """What is wrong with a turn as it lies on the disk."""
    try:
        manifest = house.turns.load(key).manifest
    except DocumentError as error:
        return [str(error)]
    twice = [phase for phase, times in Counter(p.phase for p in manifest.phases).items() if times > 1]
    parts = [path.name for path in Path(house.folder(key)).rglob("*.part")]
    again = [f"{key}: revision {manifest.revision}"] if manifest.revision else []
    return [*(f"{key}: {phase} twice" for phase in twice), *(f"{key}: {name}" for name in parts), *again]
