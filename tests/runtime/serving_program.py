"""A stand-in for `sglang.launch_server`: a real process on a real port that is reported how to behave by options.

--starts-in S   503 on /health until then        --fails N    ends with exit code N before it is ready
--busy N        what /metrics tells              --stubborn   does not end on SIGTERM
--mute FILE     no answer to /health while the file is there
A child process is started beside it, as SGLang starts its scheduler; its number lies in the file that --child names.
"""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

asked = argparse.ArgumentParser(allow_abbrev=False)
for option in ("--host", "--port", "--model-path", "--served-model-name", "--context-length"):
    asked.add_argument(option, required=True)
asked.add_argument("--mem-fraction-static", type=float)
asked.add_argument("--starts-in", type=float, default=0.0)
asked.add_argument("--fails", type=int)
asked.add_argument("--busy", type=Path)
asked.add_argument("--mute", type=Path)
asked.add_argument("--child", type=Path)
asked.add_argument("--uvicorn-access-log-exclude-prefixes", nargs="*")
for switch in ("--stubborn", "--enable-cache-report", "--enable-metrics", "--constrained-json-disable-any-whitespace"):
    asked.add_argument(switch, action="store_true")
options = asked.parse_args()
began = time.monotonic()


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/health" and options.mute and options.mute.exists():
            self.close_connection = True
        elif self.path == "/health":
            self._say(200 if time.monotonic() - began >= options.starts_in else 503, b"")
        elif self.path == "/metrics":
            busy = options.busy.read_text() if options.busy and options.busy.exists() else "0"
            self._say(200, f'# HELP x\nsglang:num_running_reqs{{model="m"}} {busy}.0\nsglang:num_queue_reqs{{model="m"}} 0.0\n'.encode())
        elif self.path.startswith("/die"):
            os._exit(int(self.path.rpartition("=")[2] or 1))
        else:
            self._say(404, b"")

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


signal.signal(signal.SIGTERM, signal.SIG_IGN if options.stubborn else lambda *_: os._exit(0))
print(f"serving {options.served_model_name} with {' '.join(sys.argv)}", flush=True)  # noqa: T201 - what a server says
if options.child:
    options.child.write_text(str(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid))
if options.fails is not None:
    print("out of memory, as if", flush=True)  # noqa: T201
    sys.exit(options.fails)
server = ThreadingHTTPServer((options.host, int(options.port)), Answers)
threading.Thread(target=server.serve_forever).start()
