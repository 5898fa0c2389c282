"""What one turn does to the disk of a store that holds earlier turns: documents opened for reading, fsyncs, documents written."""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from pandora_dagster.app import open_app
from pandora_dagster.defs.turn.turn_run import run_turn
from pandora_dagster.settings import load_settings
from tests.phases.rig import vocabulary

MOST_OPENED = 100
MOST_FSYNCS_BESIDE_DOCUMENTS = 15
EARLIER = ("Which desk did we order, and what did it cost?", "I live in Graz and my sister is called Maja.", "Which chair did we order?")
QUESTION = "Which order number does the desk have in the warehouse catalogue of Nordhus logistics?"
"""The history answers a part of it: the turn calls the search tool, as turns with more than one source do."""


class DiskUse:
    """Counts below one store root, by path relative to it, while `counted` is entered."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = str(root) + os.sep
        self._active = False
        self._fsync = os.fsync
        self.opened: Counter[str] = Counter()
        self.fsyncs: Counter[str] = Counter()
        self.written: Counter[str] = Counter()
        sys.addaudithook(self._on_event)
        monkeypatch.setattr(os, "fsync", self._count_fsync)

    @contextmanager
    def counted(self) -> Iterator[None]:
        self._active = True
        yield
        self._active = False

    def _on_event(self, event: str, args: tuple[object, ...]) -> None:
        if not self._active:
            return
        if event == "open" and isinstance(args[0], str) and isinstance(args[2], int):
            if not args[2] & (os.O_WRONLY | os.O_RDWR) and not Path(args[0]).is_dir():
                self._count(self.opened, str(Path(args[0]).absolute()))
        elif event == "os.rename":
            self._count(self.written, str(Path(str(args[1])).absolute()))

    def _count_fsync(self, descriptor: int) -> None:
        if self._active:
            self._count(self.fsyncs, str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        self._fsync(descriptor)

    def _count(self, counter: Counter[str], path: str) -> None:
        if path.startswith(self._root) and not path.startswith(f"{self._root}dagster{os.sep}"):
            counter[path.removeprefix(self._root)] += 1


def test_a_turn_reads_its_folder_once_and_little_else(tmp_path, monkeypatch):
    """The limits hold from the question to the answer, with the phases as Dagster assets."""
    root = tmp_path / "store"
    settings = load_settings({"PANDORA_ROOT": str(root)})
    app = open_app(settings, counter=vocabulary())
    app.transfer.import_example()
    for query in EARLIER:
        app.run_turn(app.start(query, user="example", session="demo"), on_report=lambda _: None)
    app.close()

    app = open_app(settings, counter=vocabulary())
    use = DiskUse(root, monkeypatch)
    with dg.DagsterInstance.ephemeral() as instance, use.counted():
        key = app.start(QUESTION, user="example", session="demo")
        outcome = run_turn(app, key, instance=instance)
        own = {path: count for path, count in use.opened.items() if f"/{key.turn_id}/" in path}
        answer = app.answer_of(key)
    app.close()

    assert outcome.success and "ORD-77120" in answer.response
    assert sum(use.opened.values()) <= MOST_OPENED, use.opened.most_common(20)
    assert set(own.values()) == {1} and len(own) <= 3, own
    assert sum(use.fsyncs.values()) <= len(use.written) + MOST_FSYNCS_BESIDE_DOCUMENTS, use.fsyncs
