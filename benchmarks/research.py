"""Prints how many questions `pandora research run` answers on a small web with known claims, and what it broke on the way.

    python -m benchmarks.research [--data ../shared/data/small_web] [--pandora .venv/bin/pandora] [arguments of check.py]

The data has `serve.py` (the web and its search engine, on loopback), `truth.json` (the questions) and `check.py` (the scorer). Constants of
the loop are chosen on questions with an odd number; the other half is printed apart.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def answers(questions: list[dict[str, Any]], pandora: Path, web: Path, folder: Path, search: str) -> dict[str, Any]:
    """The lines that one command prints, by their ids."""
    lines = folder / "questions.jsonl"
    lines.write_text("".join(json.dumps({"id": q["id"], "question": q["question"]}) + "\n" for q in questions))
    options = ["--jsonl", str(lines), "--hosts", str(web / "hosts.json"), "--provider", f"searxng={search}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PANDORA_")}
    environment |= {"PANDORA_ROOT": str(folder / "store"), "PANDORA_WEB_DELAY": "0", "PANDORA_WEB_PAGE_SECONDS": "8"}
    told = subprocess.run(
        [pandora, "research", "run", *options], env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=False
    )
    return {row["id"]: row for row in map(json.loads, told.stdout.splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "small_web")
    parser.add_argument("--pandora", type=Path, default=ROOT / ".venv" / "bin" / "pandora")
    arguments, others = parser.parse_known_args()
    data = arguments.data.resolve()
    if not data.is_dir():
        sys.exit(f"{data}: expected the small web: name it with --data")
    truth = json.loads((data / "truth.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = subprocess.Popen([sys.executable, "-B", data / "serve.py", "--out", folder], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout
            ready = json.loads(server.stdout.readline())
            results = answers(truth["questions"], arguments.pandora.absolute(), folder, folder, ready["search"])
        finally:
            server.terminate()
            server.wait(timeout=30)
        (folder / "r.json").write_text(json.dumps(results))
        halves = {"chosen on": 1, "held apart": 0}
        for half, odd in halves.items():
            questions = [q for q in truth["questions"] if int(q["id"][1:]) % 2 == odd]
            (folder / "truth.json").write_text(json.dumps({**truth, "questions": questions}))
            print(f"\n{half}: {len(questions)} questions", flush=True)
            command = [sys.executable, "-B", data / "check.py", "--truth", folder / "truth.json", "--results", folder / "r.json", *others]
            subprocess.run([*command, *(("--log", folder / "log.json") if odd else ())], check=True)


if __name__ == "__main__":
    main()
