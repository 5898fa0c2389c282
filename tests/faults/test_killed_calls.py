"""A process that is killed in the middle of a model call leaves the start of that call, which commands show."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.runtime.openai_servers import FakeOpenAI, on_a_thread

PANDORA = [sys.executable, "-c", "from pandora_dagster.cli import main; main()"]
SECONDS = 90


def test_the_call_under_way_is_named_after_a_kill(tmp_path: Path) -> None:
    """`calls --unfinished` and `show` name recipe and phase of the call, which is in no sum."""
    with on_a_thread(FakeOpenAI(takes_s=SECONDS)) as server:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PANDORA_")} | {
            "PANDORA_ROOT": str(tmp_path / "store"),
            "PANDORA_RUNTIME": "openai",
            "PANDORA_OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1",
            "PANDORA_OPENAI_MODEL": server.model,
        }
        asking = subprocess.Popen([*PANDORA, "ask", "Which desk?", "--user", "ann"], env=environment, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + SECONDS
        while not server.running and asking.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        asking.kill()
        asking.wait()

    def output(*arguments: str) -> str:
        return subprocess.run([*PANDORA, *arguments], env=environment, capture_output=True, text=True, check=True).stdout

    (left,) = json.loads(output("calls", "--unfinished", "--json"))
    assert (left["user_id"], left["turn_id"], left["phase"]) == ("ann", "turn_000001", "query_analysis")
    assert json.loads(output("show", "ann:turn_000001", "--json"))["unfinished_calls"] == [left]
    assert json.loads(output("calls", "--json")) == []
