"""What a server says of its own work: the text behind `/metrics` -> `Load`. Knows Prometheus' lines; knows no socket."""

import re

from pandora_dagster.runtime.sglang.concurrency import ServerLoad

_LINE = re.compile(rb"^sglang:(num_running_reqs|num_queue_reqs)(?:\{([^}]*)\})? (\S+)\s*$", re.MULTILINE)
_OF_ONE_PRIORITY = re.compile(rb'priority="[^"]')
"""With priorities on, each has a line of its own beside the total, whose label is empty."""


def parse_load(body: bytes) -> ServerLoad | None:
    """The sums over a server's ranks; None where the page does not tell both."""
    sums: dict[bytes, int] = {}
    for name, labels, value in _LINE.findall(body):
        if not _OF_ONE_PRIORITY.search(labels):
            try:
                sums[name] = sums.get(name, 0) + max(0, int(float(value)))
            except (ValueError, OverflowError):
                return None
    if len(sums) < 2:
        return None
    return ServerLoad(sums[b"num_running_reqs"], sums[b"num_queue_reqs"])
