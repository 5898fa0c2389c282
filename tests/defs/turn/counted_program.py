"""The `pandora` program in a process that counts what it does to files: `python -m tests.defs.turn.counted_program REPORT ask ...`.

Counts from before the first import of the package to the end of the process. SQLite and DuckDB open their files themselves, without an
event of Python: those are not counted.
"""

import atexit
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

_READ, _WRITTEN, _SYNCED = "read", "written", "synced"


def count_from_here(report: Path) -> None:
    """Write the counts of this process to `report` when it ends: action -> path -> number."""
    counts: dict[str, Counter[str]] = {action: Counter() for action in (_READ, _WRITTEN, _SYNCED)}
    fsync, start = os.fsync, Path.cwd()

    def on_event(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[0], str | Path) and isinstance(args[2], int):
            path = start / str(args[0])
            if not args[2] & (os.O_WRONLY | os.O_RDWR) and not path.is_dir():
                counts[_READ][str(path)] += 1
        elif event == "os.rename":
            counts[_WRITTEN][str(start / str(args[1]))] += 1

    def counted_fsync(descriptor: int) -> None:
        counts[_SYNCED][os.readlink(f"/proc/self/fd/{descriptor}")] += 1  # noqa: PTH115 - Path would be counted by its own events
        fsync(descriptor)

    def write() -> None:
        report.write_text(json.dumps(counts), encoding="utf-8")

    atexit.register(write)
    os.fsync = counted_fsync
    sys.addaudithook(on_event)


if __name__ == "__main__":
    count_from_here(Path(sys.argv.pop(1)))
    from pandora_dagster.cli.program import run

    run()
