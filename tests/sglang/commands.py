"""`pandora` over the real servers, in a process of its own, as a user starts it."""

import subprocess
import sys
from pathlib import Path

from tests.faults.processes import PANDORA, environment


def pandora(root: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of one command over the store at `root`, with the runtime file that lies there."""
    environ = environment(root) | {"PANDORA_RUNTIME": "sglang"}
    done = subprocess.run([sys.executable, "-c", PANDORA, *arguments], env=environ, capture_output=True, text=True, cwd=root, timeout=300)
    return done.returncode, done.stdout, done.stderr
