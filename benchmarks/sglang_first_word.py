"""How soon the first word is there: through `pandora api`, against the bare server's own plus the time of the phases before it.

    python -m benchmarks.sglang_first_word                     # starts a server of its own in .venv-sglang (make test-sglang builds it)
    python -m benchmarks.sglang_first_word http://127.0.0.1:30000/v1   # a server that runs, serving the model `tiny`

Each round asks once through the API (a process of its own, a new user each time, so that no round has another's history) and sends
the very request that the turn sent for its answer once more, bare; the server's cache is emptied before each. Both are timed by one clock
on the client's side: the API's from the first byte of the request, less the moment at which the last phase before the answer was reported.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.api.server_process import Api, started
from tests.sglang.real_servers import RealSglang
from tests.sglang.real_voice import CODE, LONG

ROUNDS = 8
BEFORE = ": tool_results finished"
LIMIT = 1.2


@dataclass(frozen=True, slots=True)
class Row:
    """Milliseconds of one round: the API's first word, the phases before the answer's, the bare server's first word."""

    api_ms: float
    phases_ms: float
    bare_ms: float

    @property
    def ratio(self) -> float:
        """Of the API's first word to the bare one's with the phases' time; at most LIMIT is wanted of its parts beside the phases."""
        return self.api_ms / (self.phases_ms + self.bare_ms)

    @property
    def own_ratio(self) -> float:
        """The same without the phases' time on either side: what is added between the server and the client."""
        return (self.api_ms - self.phases_ms) / self.bare_ms


def run(base_url: str, *, rounds: int = ROUNDS) -> list[Row]:
    """One row a round, after one round that warms both up."""
    with tempfile.TemporaryDirectory() as place, started(Path(place) / "store", env={"REAL_VOICE": base_url}, code=CODE) as api:
        return [_round(api, base_url, n) for n in range(rounds + 1)][1:]


def _round(api: Api, base_url: str, number: int) -> Row:
    user = f"user-{number}"
    _empty(base_url)
    whole, phases = _through_the_api(api, user)
    record = _voice_call(api.root / "users" / user / "turns" / "turn_000001" / "calls.jsonl")
    system, user_text = _sent(api.root / "users" / user, record["pack_ref"])
    _empty(base_url)
    return Row(whole, phases, _bare(base_url, system, user_text, number))


def _through_the_api(api: Api, user: str) -> tuple[float, float]:
    """Milliseconds to the first word, and to the end of the phase before the answer; the turn is heard to its end."""
    body = {"model": "pandora", "messages": [{"role": "user", "content": "Which chair did we order?"}], "stream": True}
    first = phases = 0.0
    with api.http(headers={"X-Pandora-User": user}) as client:
        began = time.perf_counter()
        with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            for line in answer.iter_lines():
                now = (time.perf_counter() - began) * 1_000
                if line == BEFORE:
                    phases = now
                elif not first and line.startswith("data: {") and json.loads(line[6:])["choices"][0]["delta"].get("content"):
                    first = now
    assert 0 < phases < first, "the turn gave no streamed answer"
    return first, phases


def _bare(base_url: str, system: str, user_text: str, number: int) -> float:
    """Milliseconds to the first word of the same request, sent as it is."""
    body = {
        "model": "tiny",
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": user_text}],
        "max_tokens": 3_000,
        "temperature": 0.5,
        "stream": True,
        "rid": f"bare-{number}/",
        "response_format": {"type": "json_schema", "json_schema": {"name": "long", "schema": LONG, "strict": True}},
        "chat_template_kwargs": {"enable_thinking": False},
    }
    first = 0.0
    with httpx.Client(trust_env=False, timeout=60) as client:
        client.get(f"{base_url}/models")  # the project's connection stands by then, too
        began = time.perf_counter()
        with client.stream("POST", f"{base_url}/chat/completions", json=body) as answer:
            for line in answer.iter_lines():
                if not first and line.startswith("data: {") and json.loads(line[6:])["choices"][0]["delta"].get("content"):
                    first = (time.perf_counter() - began) * 1_000
    return first


def _voice_call(path: Path) -> dict[str, str]:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return next(record for record in records if record["model_layer"] == "VOICE")


def _sent(user: Path, ref: str) -> tuple[str, str]:
    """System and user message of a call, as the vault keeps them."""
    from pandora_dagster.app import open_app
    from pandora_dagster.settings import load_settings

    app = open_app(load_settings({"PANDORA_ROOT": str(user.parent.parent)}))
    try:
        pack = json.loads(app.vault.read(ref))
    finally:
        app.close()
    return pack["system"], pack["user"]


def _empty(base_url: str) -> None:
    """The server's prefix cache; refused while a request runs, so it is asked again."""
    with httpx.Client(trust_env=False, timeout=10) as client:
        for _ in range(50):
            if client.post(base_url.removesuffix("/v1") + "/flush_cache").status_code == 200:
                return
            time.sleep(0.1)
    raise SystemExit("the server's cache cannot be emptied")


def table(rows: Sequence[Row]) -> str:
    """The medians, as docs/explanation/performance.md has them."""
    api, phases, bare, ratio, own = (
        statistics.median(getattr(row, name) for row in rows) for name in ("api_ms", "phases_ms", "bare_ms", "ratio", "own_ratio")
    )
    return f"| first word, {len(rows)} rounds | {api:.0f} ms | phases {phases:.0f} ms, bare {bare:.0f} ms | {ratio:.2f} | {own:.2f} |"


def main() -> int:
    if len(sys.argv) > 1:
        rows = run(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as logs:
            server = RealSglang("tiny", Path(logs) / "tiny.log").start()
            try:
                rows = run(server.ready().base_url)
            finally:
                server.stop()
    print("| | through the API | of which | ratio | beside the phases |\n|---|---|---|---|---|")
    print(table(rows))
    for row in rows:
        print(f"  api {row.api_ms:.0f} ms, phases {row.phases_ms:.0f} ms, bare {row.bare_ms:.0f} ms: {row.ratio:.2f}, {row.own_ratio:.2f}")
    return 0 if statistics.median(row.ratio for row in rows) <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
