"""An import of conversations, compared with the disk: the same bytes written to as many files, each with fsync.

Ours is the whole of `pandora import` in this process: store opened, lines read, turns and sessions written and indexed, partitions
added. The plain writing makes one flat folder and knows its bytes already.
"""

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

from pandora_dagster.app import open_app
from pandora_dagster.defs.turn.turn_run import report_import
from pandora_dagster.settings import load_settings

CONVERSATIONS = 136
VOCABULARY = """
flight seat bag fare change cancel refund certificate airport morning return passenger insurance upgrade economy
reservation booked please confirm total price policy agent travel date payment card gift membership delay
"""
WORDS = tuple(VOCABULARY.split())


@contextmanager
def import_pair(folder: Path, data: Path | None) -> Iterator[tuple[Callable[[], float], Callable[[], float]]]:
    """An import into a fresh store; the plain writing of the documents that it makes."""
    file = data.resolve() if data else generated(folder / "generated.jsonl")
    numbers = count()
    imported(file, folder / "sample")
    documents = [path.read_bytes() for path in sorted((folder / "sample" / "users").rglob("*")) if path.is_file()]
    shutil.rmtree(folder / "sample")
    yield lambda: imported_and_gone(file, folder / f"store-{next(numbers)}"), lambda: written(documents, folder / f"plain-{next(numbers)}")


def imported_and_gone(file: Path, root: Path) -> float:
    """One import into a store that is removed afterwards, outside the time."""
    took = imported(file, root)
    shutil.rmtree(root)
    return took


def imported(file: Path, root: Path) -> float:
    """Seconds of `pandora import` into a fresh store."""
    started = perf_counter()
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    with file.open("rb") as lines:
        report = app.transfer.import_conversations(lines, where=file.name)
    report_import(app, report, source=file.name)
    app.close()
    took = perf_counter() - started
    assert not report.faults and report.turns, report.faults
    return took


def written(documents: Sequence[bytes], folder: Path) -> float:
    """Seconds for as many files of the same bytes, each synced, in one folder."""
    started = perf_counter()
    folder.mkdir()
    for number, data in enumerate(documents):
        descriptor = os.open(folder / str(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(descriptor, data)
        os.fsync(descriptor)
        os.close(descriptor)
    took = perf_counter() - started
    shutil.rmtree(folder)
    return took


def generated(file: Path) -> Path:
    """Conversations shaped like a support desk's: a long policy first, about eight turns each, every second one with a tool."""
    chance = random.Random(7)
    with file.open("w", encoding="utf-8") as out:
        for number in range(CONVERSATIONS):
            out.write(json.dumps(_conversation(number, chance), ensure_ascii=False) + "\n")
    return file


def _conversation(number: int, chance: random.Random) -> dict[str, Any]:
    messages = [{"role": "system", "content": _text(chance, 900)}]
    for turn in range(chance.randint(5, 10)):
        messages.append({"role": "user", "content": _text(chance, 35)})
        if turn % 2:
            messages += _tool_use(f"call_{number}_{turn}", chance)
        messages.append({"role": "assistant", "content": _text(chance, 80)})
    created = f"2026-03-{1 + number % 28:02}T09:00:00Z"
    return {"id": f"conversation_{number}", "user_id": f"person_{number % 40}", "created_at": created, "messages": messages}


def _tool_use(call: str, chance: random.Random) -> list[dict[str, Any]]:
    function = {"name": "get_reservation", "arguments": json.dumps({"reservation_id": f"R{chance.randint(10_000, 99_999)}"})}
    answer = json.dumps({word: chance.randint(1, 900) for word in chance.sample(WORDS, 20)})
    asked = {"role": "assistant", "content": None, "tool_calls": [{"id": call, "type": "function", "function": function}]}
    return [asked, {"role": "tool", "tool_call_id": call, "content": answer}]


def _text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words)) + "."
