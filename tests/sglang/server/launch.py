"""SGLang's own server on the CPU: `python launch.py --model-path ... --port ...`, with the arguments of `sglang.launch_server`.

Its processes are spawned: each runs the top of this file again, and so has what a CPU needs.
"""

import os
import sys

import on_a_cpu  # noqa: F401 - first, see there

if __name__ == "__main__":
    from sglang.launch_server import run_server
    from sglang.srt.server_args import prepare_server_args
    from sglang.srt.utils import kill_process_tree

    try:
        run_server(prepare_server_args(sys.argv[1:]))
    finally:
        kill_process_tree(os.getpid(), include_parent=False)
