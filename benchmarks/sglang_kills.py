from pathlib import Path

from benchmarks.sglang_rows import Row


async def kill_rows(server, root: Path, *, turns: int, kills: int) -> list[Row]:
    return []
