"""A server that is killed for real again and again while a batch of turns runs: what became of each turn.

Every call goes to the server and must come back from it. What a random model says brings hardly a turn to its end, so the words of an
answer that came are the embedded runtime's: the turns save, are summarised and indexed.
"""

import asyncio
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.sglang_requests import served
from benchmarks.sglang_rows import Row
from pandora_dagster.app import App, open_app
from pandora_dagster.app.batch_service import BatchRun, BatchService
from pandora_dagster.contracts.batches import BatchRow
from pandora_dagster.contracts.enums import Priority
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.model_calls import CallRecord, ModelAnswer, PromptPack, Usage
from pandora_dagster.errors import BadAnswerError, DocumentError
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import load_settings
from tests.sglang.real_servers import RealSglang

_USER = UserId("bench")
_LONGEST_DELAY_S = 1.0
_WORDS = 64
"""Tokens that the server writes for each call: a kill meets calls under way, and the run takes minutes."""


class Worded(SglangRuntime):
    """The real runtime, its answers in the words of the embedded one once they are there; a call that fails fails."""

    words: ExtractiveRuntime

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        reply = await self.words.complete(pack, timeout_s=timeout_s)
        try:
            answer = await super().complete(replace(pack, max_output_tokens=_WORDS), timeout_s=timeout_s, on_words=on_words)
        except BadAnswerError as cut:  # an answer of so many tokens is rarely whole
            usage = Usage(prompt=cut.tokens[0], output=cut.tokens[1], cached=cut.tokens[2])
            return ModelAnswer(reply.text, "stop", usage, self.name, self.model(pack.layer), reply.latency_ms, queued_ms=cut.queued_ms)
        return replace(answer, text=reply.text, finish_reason="stop")


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
    """A batch of `turns` queries, `kills` kills at random moments meanwhile; then every turn is looked at."""
    killer = Killer(server, sorted(random.Random(11).choices(range(max(1, turns - turns // 10)), k=kills)))
    run, faults, count = await asyncio.to_thread(_under_fire, killer, root, turns)
    states = ", ".join(f"{number} {state}" for state, number in sorted(Counter(str(row.state) for row in run.rows).items()))
    unsettled = [row.turn for row in run.rows if not row.is_finished]
    under_fire = f"{turns} turns, the server killed {killer.kills} times meanwhile"
    return [
        Row(f"{under_fire}: turns without an end or an intervention", f"{len(unsettled)} ({states})", "0", not unsettled),
        Row("half-written turns, calls answered twice", "; ".join(faults) or "0", "0", not faults),
        Row("turns in the store for each query", f"{count / turns:g}", "1", count == turns),
        Row("kills while turns ran", str(killer.kills), str(kills), killer.kills == kills),
    ]


def _under_fire(killer: Killer, root: Path, turns: int) -> tuple[BatchRun, list[str], int]:
    root.mkdir(parents=True)
    file = root / "queries.jsonl"
    lines = [{"query": f"Which chair did we order for office {n}, and what did it cost?", "user": _USER} for n in range(turns)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    # two calls at once: each kill meets three turns, so that turns are left for the last one
    runtime = Worded(served(killer.server, max_connections=2), keys={})
    app = open_app(load_settings({"PANDORA_ROOT": str(root / "store")}), runtime=runtime, priority=Priority.BATCH)
    runtime.words = ExtractiveRuntime(app.dependencies.counter, app.dependencies.clock)
    thread = threading.Thread(target=killer.run)
    thread.start()
    try:
        run = BatchService(app).run_file(file, on_row=killer.heard)
    finally:
        killer.working = False
        thread.join()
    keys = list(app.turns.keys(_USER))
    faults = [fault for key in keys for fault in _faults(app, key)]
    asked = {query.turn for query in run.batch.queries}
    faults += [f"{key}: of no query" for key in keys if str(key) not in asked]
    app.close()
    return run, faults, len(keys)


def _faults(app: App, key: TurnKey) -> Iterator[str]:
    """What is wrong with a turn as it lies on the disk. A phase that ran twice has asked the same once more, and had an answer twice;
    one that was cut off, which a call without an answer says, had to."""
    folder = Path(app.folder(key))
    try:
        manifest = app.turns.load(key).manifest
    except DocumentError as error:
        yield str(error)
        return
    records = [CallRecord.model_validate_json(line) for line in (folder / "calls.jsonl").read_text().splitlines() if line]
    cut = {record.phase for record in records if not record.success}
    answered = Counter((record.phase, record.recipe, record.pack_ref) for record in records if record.phase not in cut)
    yield from (f"{key}: {phase}: {recipe} answered {times} times" for (phase, recipe, _), times in answered.items() if times > 1)
    yield from (f"{key}: {path.name}" for path in folder.rglob("*.part"))
    if manifest.revision:
        yield f"{key}: revision {manifest.revision}"
