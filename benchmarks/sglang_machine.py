"""The server that is measured: on the CPU as the tests start it, or on a GPU as a user does."""

import subprocess
from pathlib import Path

from tests.sglang.real_servers import ENVIRONMENT, MODEL, REPOSITORY, RealSglang

RUNNING, QUEUED = 16, 20
RUNNING_ON_GPU, QUEUED_ON_GPU = 64, 80
_SHAPED = ENVIRONMENT / "qwen3-0.6b-shape"


def cpu(log: Path) -> RealSglang:
    """The tiny model of the tests; 16 requests at once, and 20 that wait."""
    return RealSglang("tiny", log, _limits(RUNNING, QUEUED))


def gpu(log: Path, *arguments: str) -> RealSglang:
    """Random weights of Qwen3-0.6B's shape; 64 requests at once, and 80 that wait. The folder is made where it is not there yet.

    `arguments`: more of SGLang's own, such as `--attention-backend triton`."""
    python = str(ENVIRONMENT / "bin" / "python")
    if not (_SHAPED / "config.json").is_file():
        script = REPOSITORY / "tests" / "sglang" / "server" / "tiny_model.py"
        subprocess.run([python, str(script), str(_SHAPED), "--shape", "qwen3-0.6b"], check=True)
    own = {"--mem-fraction-static": "0.5", "--max-total-tokens": "500000"}
    launch = (python, "-m", "sglang.launch_server")
    return RealSglang(
        "tiny", log, {**own, **_limits(RUNNING_ON_GPU, QUEUED_ON_GPU)}, switches=arguments, launch=launch, model_path=_SHAPED, on_cpu=False
    )


def _limits(running: int, queued: int) -> dict[str, str]:
    return {"--max-running-requests": str(running), "--max-queued-requests": str(queued)}


__all__ = ["MODEL", "QUEUED", "RUNNING", "RUNNING_ON_GPU", "cpu", "gpu"]
