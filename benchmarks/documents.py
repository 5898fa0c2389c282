"""Runs the scorer of the documents benchmark over this checkout: facts that survive compression, and questions that are answered.

    python benchmarks/documents.py [--data ../shared/data/documents] [--pandora .venv/bin/pandora] [arguments of score.py]

The scorer, its baselines and the data are beside the project; without them this says so.
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "documents")
    parser.add_argument("--pandora", type=Path, default=ROOT / ".venv" / "bin" / "pandora")
    options, others = parser.parse_known_args()
    scorer = options.data / "score.py"
    if not scorer.is_file():
        print(f"{scorer}: not there: expected the scorer beside documents.jsonl, facts.jsonl and questions.jsonl")
        return 2
    command = [sys.executable, str(scorer), "--pandora", str(options.pandora), "--data", str(options.data), *others]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
