"""The QueryFiles port in memory: paths below one folder that no disk has."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pandora_dagster.contracts.batches import RejectedLine, WaitingFile
from pandora_dagster.errors import InputError


@dataclass
class MemoryQueryFiles:
    """`QueryFiles` over a dictionary: path -> bytes and the number of the write, which stands for the time of change."""

    folder: Path = Path("memory/inbox")
    largest: int = 1_000
    stored: dict[Path, tuple[bytes, int]] = field(default_factory=dict[Path, tuple[bytes, int]])
    _writes: int = 0

    def write(self, path: Path, data: bytes) -> None:
        """What a user does who puts a file there."""
        self._writes += 1
        self.stored[path] = data, self._writes

    def files(self) -> tuple[WaitingFile, ...]:
        waiting = sorted(path for path in self.stored if path.parent == self.folder and _is_queries(path.name))
        return tuple(WaitingFile(path.name, len(self.stored[path][0]), self.stored[path][1]) for path in waiting)

    def path(self, name: str) -> Path:
        if name not in {waiting.name for waiting in self.files()}:
            raise InputError(f"{self.folder}: {name[:100]!r}: expected the name of a .jsonl file in this folder")
        return self.folder / name

    def finish(self, name: str, day: str, digest: str, rejected: Sequence[RejectedLine] = ()) -> Path | None:
        source, target = self.path(name), self.folder / "done" / day / name
        if target in self.stored:
            target = target.with_name(f"{target.stem}.{digest[:12]}.jsonl")
        beside = self.keep_rejected(target, rejected)
        self.stored[target] = self.stored.pop(source)
        return beside

    def read(self, path: Path) -> bytes:
        if path not in self.stored:
            raise InputError(f"{path}: cannot be read: expected queries as JSON lines")
        data, _ = self.stored[path]
        if len(data) > self.largest:
            raise InputError(f"{path}: over {self.largest:,} bytes: expected at most that")
        return data

    def keep_rejected(self, path: Path, rejected: Sequence[RejectedLine]) -> Path | None:
        if not rejected:
            return None
        beside = path.with_name(f"{path.name.removesuffix('.jsonl')}.rejected.jsonl")
        lines = [json.dumps(line.model_dump(), ensure_ascii=False) + "\n" for line in rejected]
        self.write(beside, "".join(lines).encode(errors="replace"))
        return beside


def _is_queries(name: str) -> bool:
    return name.endswith(".jsonl") and not name.endswith(".rejected.jsonl") and not name.startswith(".")
