"""The engine's worker on the CPU, with what a machine without a GPU needs: `python offline.py --model-path ...`.

Its processes are spawned: each runs the top of this file again.
"""

import runpy
import sys
from pathlib import Path

import on_a_cpu  # noqa: F401 - first, see there

WORKER = Path(__file__).parents[3] / "pandora_dagster" / "runtime" / "offline_worker.py"

if __name__ == "__main__":
    runpy.run_path(str(WORKER))["main"](sys.argv[1:])
