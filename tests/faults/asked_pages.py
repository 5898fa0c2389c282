"""Which requests a killed process may repeat: the one under way, where its answer was not recorded."""

import json
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


def recorded_paths(root: Path, asked: Sequence[str]) -> set[str]:
    """The paths of the visits that the checkpoints in the store at `root` have; all that were asked where research has ended."""
    folder = root / "users" / "me" / "research_runs"
    files = [path for path in folder.rglob("*.json") if path.is_file()]
    runs: list[dict[str, Any]] = [json.loads(path.read_bytes()) for path in files]
    if not files:
        return set(asked)
    return {urlsplit(str(visit["url"])).path for run in runs for visit in run.get("visits", ())}


def repeated_paths(before: Sequence[str], recorded: Collection[str], after: Sequence[str]) -> list[str]:
    """The paths that were asked for more often than they may be. `before`: those until the kill, `after`: those of both processes."""
    under_way = {path for path in before[-1:] if path not in recorded}
    return [path for path, count in Counter(after).items() if count > 1 + (path in under_way)]
